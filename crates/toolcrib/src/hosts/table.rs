//! The hosts: which files each has, on Linux and on macOS, and of which shape. One line in
//! [`HOSTS`] and one or two places make a new one.
//!
//! Nothing is read here; whether a file is there is only looked at.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::shape::{self, Shape};

/// A program that people use MCP servers with.
#[derive(Debug)]
pub(crate) struct Host {
    /// What it is called on the command line.
    pub(crate) id: &'static str,
    /// What it calls itself.
    pub(crate) name: &'static str,
    /// How its files are written.
    pub(crate) format: Format,
    /// How its entries are written.
    pub(crate) shape: &'static Shape,
    /// Where the tables of servers stand in its files; a new entry goes into the first.
    /// `*` is any key.
    pub(crate) sections: &'static [&'static [&'static str]],
    /// Where a list with the names of disabled servers stands.
    pub(crate) disabled: Option<&'static [&'static str]>,
    /// The files of a person, the one to make first.
    files: &'static [Spot],
    /// Files that it has read servers from in earlier versions; never written.
    older: &'static [Spot],
    /// The files of a project, relative to its folder, likewise.
    project: &'static [&'static str],
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// A file of a host: the folder it starts at, and its path in there.
#[derive(Debug)]
pub(crate) struct Spot(Base, &'static str);

/// A folder of the person.
#[derive(Debug)]
enum Base {
    /// The home folder.
    Home,
    /// `~/.config`, or as `XDG_CONFIG_HOME` says, on every system.
    Config,
    /// Where the system keeps settings of applications.
    Applications,
    /// As this variable says, else this folder in the home folder.
    Variable(&'static str, &'static str),
}

const MCP_SERVERS: &[&[&str]] = &[&["mcpServers"]];

/// All hosts, in the order of their names.
pub(crate) static HOSTS: [Host; 12] = [
    Host {
        id: "claude-code",
        name: "Claude Code",
        format: Format::Json,
        shape: &shape::CLAUDE_CODE,
        sections: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
        disabled: None,
        files: &[Spot(Base::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json")],
        older: &[],
        project: &[".mcp.json"],
    },
    Host {
        id: "claude-desktop",
        name: "Claude Desktop",
        format: Format::Json,
        shape: &shape::CLAUDE_DESKTOP,
        sections: MCP_SERVERS,
        disabled: None,
        files: &[Spot(Base::Applications, "Claude/claude_desktop_config.json")],
        older: &[],
        project: &[],
    },
    Host {
        id: "cline",
        name: "Cline",
        format: Format::Json,
        shape: &shape::CLINE,
        sections: MCP_SERVERS,
        disabled: None,
        files: &[
            Spot(
                Base::Applications,
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            Spot(Base::Home, ".cline/data/settings/cline_mcp_settings.json"),
        ],
        older: &[],
        project: &[],
    },
    Host {
        id: "codex",
        name: "Codex",
        format: Format::Toml,
        shape: &shape::CODEX,
        sections: &[&["mcp_servers"]],
        disabled: None,
        files: &[Spot(Base::Variable("CODEX_HOME", ".codex"), "config.toml")],
        older: &[],
        project: &[".codex/config.toml"],
    },
    Host {
        id: "cursor",
        name: "Cursor",
        format: Format::Json,
        shape: &shape::CURSOR,
        sections: MCP_SERVERS,
        disabled: None,
        files: &[Spot(Base::Home, ".cursor/mcp.json")],
        older: &[],
        project: &[".cursor/mcp.json"],
    },
    Host {
        id: "gemini",
        name: "Gemini CLI",
        format: Format::Json,
        shape: &shape::GEMINI,
        sections: MCP_SERVERS,
        disabled: Some(&["mcp", "excluded"]),
        files: &[Spot(Base::Home, ".gemini/settings.json")],
        older: &[],
        project: &[".gemini/settings.json"],
    },
    Host {
        id: "goose",
        name: "Goose",
        format: Format::Yaml,
        shape: &shape::GOOSE,
        sections: &[&["extensions"]],
        disabled: None,
        files: &[Spot(Base::Config, "goose/config.yaml")],
        older: &[],
        project: &[],
    },
    Host {
        id: "lmstudio",
        name: "LM Studio",
        format: Format::Json,
        shape: &shape::LM_STUDIO,
        sections: MCP_SERVERS,
        disabled: None,
        files: &[Spot(Base::Home, ".lmstudio/mcp.json")],
        older: &[],
        project: &[],
    },
    Host {
        id: "opencode",
        name: "OpenCode",
        format: Format::Json,
        shape: &shape::OPENCODE,
        // Version 2 nests them one deeper than version 1.
        sections: &[&["mcp", "servers"], &["mcp"]],
        disabled: None,
        files: &[
            Spot(Base::Config, "opencode/opencode.json"),
            Spot(Base::Config, "opencode/opencode.jsonc"),
        ],
        older: &[],
        project: &["opencode.json", "opencode.jsonc"],
    },
    Host {
        id: "vscode",
        name: "VS Code",
        format: Format::Json,
        shape: &shape::VSCODE,
        // Settings of 2025 keep them one level down.
        sections: &[&["servers"], &["mcp", "servers"]],
        disabled: None,
        files: &[Spot(Base::Applications, "Code/User/mcp.json")],
        older: &[Spot(Base::Applications, "Code/User/settings.json")],
        project: &[".vscode/mcp.json"],
    },
    Host {
        id: "windsurf",
        name: "Windsurf",
        format: Format::Json,
        shape: &shape::WINDSURF,
        sections: MCP_SERVERS,
        disabled: None,
        files: &[Spot(Base::Home, ".codeium/windsurf/mcp_config.json")],
        older: &[],
        project: &[],
    },
    Host {
        id: "zed",
        name: "Zed",
        format: Format::Json,
        shape: &shape::ZED,
        sections: &[&["context_servers"]],
        disabled: None,
        files: &[Spot(Base::Config, "zed/settings.json")],
        older: &[],
        project: &[".zed/settings.json"],
    },
];

/// The folders of a person.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders {
    /// The home folder.
    pub(crate) home: PathBuf,
    /// The value of `XDG_CONFIG_HOME`.
    pub(crate) config: Option<PathBuf>,
    /// True on macOS.
    pub(crate) mac: bool,
    /// Values of the variables that move a host's folder.
    pub(crate) moved: Vec<(&'static str, PathBuf)>,
}

impl Folders {
    /// Those of this process; `None` when there is no home folder.
    pub(crate) fn find() -> Option<Self> {
        let folder = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        let moved = ["CLAUDE_CONFIG_DIR", "CODEX_HOME"]
            .into_iter()
            .filter_map(|name| Some((name, folder(env::var_os(name)?)?)))
            .collect();
        Some(Self {
            home: directories::BaseDirs::new()?.home_dir().to_owned(),
            config: env::var_os("XDG_CONFIG_HOME").and_then(folder),
            mac: cfg!(target_os = "macos"),
            moved,
        })
    }

    fn path(&self, Spot(base, rest): &Spot) -> PathBuf {
        let config = || self.config.clone().unwrap_or_else(|| self.home.join(".config"));
        let folder = match base {
            Base::Home => self.home.clone(),
            Base::Config => config(),
            Base::Applications if self.mac => self.home.join("Library/Application Support"),
            Base::Applications => config(),
            Base::Variable(name, folder) => {
                let moved = self.moved.iter().find(|(variable, _)| variable == name);
                moved.map_or_else(|| self.home.join(folder), |(_, folder)| folder.clone())
            }
        };
        folder.join(rest)
    }
}

/// Whose file is meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The person's own, in these folders.
    Person(&'a Folders),
    /// That of the project in this folder.
    Project(&'a Path),
}

impl Host {
    /// The host of this id.
    pub(crate) fn find(id: &str) -> Option<&'static Self> {
        HOSTS.iter().find(|host| host.id == id)
    }

    /// The files it has now, whether they are there or not, the one to make first.
    pub(crate) fn paths(&self, scope: Scope<'_>) -> Vec<PathBuf> {
        match scope {
            Scope::Person(folders) => self.files.iter().map(|spot| folders.path(spot)).collect(),
            Scope::Project(folder) => self.project.iter().map(|path| folder.join(path)).collect(),
        }
    }

    /// The files with servers that are there, those of earlier versions too.
    pub(crate) fn present(&self, scope: Scope<'_>) -> Vec<PathBuf> {
        let mut paths = self.paths(scope);
        if let Scope::Person(folders) = scope {
            paths.extend(self.older.iter().map(|spot| folders.path(spot)));
        }
        paths.retain(|path| path.exists());
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_where_each_system_has_them() {
        let shown = |folders: &Folders| {
            let lines = HOSTS.iter().map(|host| {
                let paths = host.paths(Scope::Person(folders));
                let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
                format!("{}: {}", host.id, paths.join(", "))
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let linux = Folders { home: "/h".into(), ..Folders::default() };
        insta::assert_snapshot!("hosts_linux", shown(&linux));
        insta::assert_snapshot!("hosts_macos", shown(&Folders { mac: true, ..linux.clone() }));
        let moved = Folders {
            config: Some("/x".into()),
            moved: vec![("CODEX_HOME", "/c".into())],
            ..linux
        };
        insta::assert_snapshot!("hosts_moved", shown(&moved));
    }

    #[test]
    fn ids_are_sorted_and_known() {
        assert!(HOSTS.is_sorted_by_key(|host| host.id));
        assert!(HOSTS.iter().all(|host| Host::find(host.id).is_some()));
    }
}
