//! `add`, `remove`, `enable`, `disable`: changes to the configuration file.

use std::path::PathBuf;

use toolcrib_core::{code::Code, target::Target};

use super::{
    args::{Add, Global, Named},
    inspect::{apply, given},
    setup::{Setup, dirs},
};
use crate::{
    config::edit::{self, EditError},
    failure::{Failure, Outcome},
    show::Talk,
};

pub(crate) fn add(global: &Global, args: Add) -> Outcome {
    let mut config = given(&args.command, args.url.as_deref());
    if let Target::Http(endpoint) = &config.target
        && !endpoint.url.contains("://")
    {
        return Err(Failure::usage(format!("{:?} is no URL", endpoint.url))
            .hint("a URL begins with http:// or https://; a command goes after --"));
    }
    config.name = args.name;
    apply(&args.reach, &mut config);
    let file = destination(global)?;
    edit::add(&file, &config, args.force)?;
    Talk::say(format!("added {} to {}", config.name, file.display()));
    Ok(Code::Ok)
}

pub(crate) fn remove(global: &Global, args: Named) -> Outcome {
    let Held { file, written } = holder(global, &args.name)?;
    edit::remove(&file, &written)?;
    Talk::say(format!("removed {} from {}", args.name, file.display()));
    Ok(Code::Ok)
}

pub(crate) fn set_enabled(global: &Global, args: Named, enabled: bool) -> Outcome {
    let Held { file, written } = holder(global, &args.name)?;
    edit::set_enabled(&file, &written, enabled)?;
    let word = if enabled { "enabled" } else { "disabled" };
    Talk::say(format!("{word} {} in {}", args.name, file.display()));
    Ok(Code::Ok)
}

/// The file that is changed: the one given, or the user's own.
pub(crate) fn destination(global: &Global) -> Result<PathBuf, Failure> {
    match global.config.as_slice() {
        [] => Ok(dirs()?.user_config()),
        [file] => Ok(file.clone()),
        _ => Err(Failure::usage("only one file can be changed: give --config once")),
    }
}

/// Where a server stands.
struct Held {
    file: PathBuf,
    /// Its name as it is written there.
    written: String,
}

/// Finds the file in which a server stands, also when its entry cannot be used.
fn holder(global: &Global, name: &str) -> Result<Held, Failure> {
    let setup = Setup::load(global)?;
    if let Some((_, origin)) = setup.loaded.find(name) {
        return Ok(Held { file: origin.file.clone(), written: origin.written.clone() });
    }
    match setup.broken(name) {
        Some(problem) => Ok(Held { file: problem.file.clone(), written: name.to_owned() }),
        None => Err(setup.server(name).err().unwrap_or_else(|| {
            Failure::new(Code::UnknownName, format!("no server is called {name:?}"))
        })),
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::config(error.to_string())
    }
}
