//! Our side: a session and the surface it shows, without checks, catalog or store.

use std::path::Path;

use toolcrib_core::{
    surface::{Listing, Surface, Tool},
    target::{Command, ServerConfig, Target},
    version::EraPolicy,
};
use toolcrib_link::{Connecting, Session, connect};

use crate::measure::Result;

/// A stdio server that is spoken to in the modern era, the same as the peer does.
pub(crate) fn config(name: &str, program: &Path, args: &[String]) -> ServerConfig {
    let command = Command {
        program: program.to_string_lossy().into_owned(),
        args: args.to_vec(),
        ..Command::default()
    };
    let mut config = ServerConfig::new(name, Target::Command(command));
    config.era = EraPolicy::Modern;
    config
}

/// Starts a stdio server and shakes hands.
///
/// # Errors
/// It does not start or agree.
pub(crate) async fn open(program: &Path, args: &[String]) -> Result<Session> {
    let config = config("script", program, args);
    Ok(connect(&config, &|_| None, Connecting::default()).await?)
}

/// Reads what the server shows.
///
/// # Errors
/// A list is not complete: the measurement would be of something else.
pub(crate) async fn surface(session: &Session) -> Result<Surface> {
    let mut surface = Surface::new((*session.negotiated()).clone());
    let walked = session.list::<Tool>().await;
    surface.tools = walked.listing;
    surface.findings.extend(walked.findings);
    if !Listing::is_complete(&surface.tools) {
        return Err(format!("the list ended early: {:?}", surface.tools.state).into());
    }
    Ok(surface)
}
