//! The MCP clients of this machine: which are installed, and what each of them starts as this server.
//!
//! Only reads. A client counts as installed if its configuration file or the directory of that file exists.

use std::fs;
use std::io;

use delegator_domain::named_enum;

use crate::commands::prelude::*;
use crate::commands::setup::hosts::{Host, HostDirs, permissions};
use crate::spec::process::Process;

named_enum! {
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ClientState {
        NotFound = "not-found",
        NotRegistered = "not-registered",
        Registered = "registered",
        /// The client connects to a server that runs already, and starts none.
        RegisteredByUrl = "registered-by-url",
        /// The file cannot be read or understood.
        Unreadable = "unreadable",
    }
}

/// One client and its entry for this server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Client {
    pub host: Host,
    /// Name of the program
    pub title: &'static str,
    pub state: ClientState,
    /// Configuration file of the client
    pub file: String,
    /// Program that the client starts as this server
    pub command: Option<String>,
    /// The client calls the tools without asking; null without such a setting, or if it cannot be read
    pub has_tool_approval: Option<bool>,
    pub problem: Option<String>,
}

impl Client {
    pub fn is_editable(&self) -> bool {
        matches!(self.state, ClientState::NotRegistered | ClientState::Registered)
    }

    /// Whether the user may be asked to let it call the tools without asking: not if it does so, or if the
    /// file of its permissions cannot be read. Codex has the setting in the entry, which may be missing.
    pub fn lacks_approval(&self) -> bool {
        let is_unknown = || self.has_tool_approval.is_none() && self.host == Host::Codex;
        self.is_editable() && (self.has_tool_approval == Some(false) || is_unknown())
    }
}

pub fn all(process: &Process) -> Result<Vec<Client>, AppError> {
    Host::ALL.into_iter().map(|host| find(process, host)).collect()
}

pub fn find(process: &Process, host: Host) -> Result<Client, AppError> {
    let client = inspect(host, &config_file(process, host)?);
    let settings = settings_file(process, host)?.filter(|_| client.state != ClientState::NotFound);
    let has_tool_approval = settings.map_or(client.has_tool_approval, |file| is_allowed(&file));
    Ok(Client { has_tool_approval, ..client })
}

/// `None` if the file cannot be read.
fn is_allowed(settings: &Path) -> Option<bool> {
    match fs::read_to_string(settings) {
        Ok(text) => permissions::is_allowed(&text).ok(),
        Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(false),
    }
}

fn inspect(host: Host, file: &Path) -> Client {
    let client = |state| Client {
        host,
        title: host.title(),
        state,
        file: file.display().to_string(),
        command: None,
        has_tool_approval: None,
        problem: None,
    };
    let unreadable = |problem: String| Client { problem: Some(problem), ..client(ClientState::Unreadable) };
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return unreadable(error.to_string()),
        Err(_) if is_host_directory(file) => return client(ClientState::NotRegistered),
        Err(_) => return client(ClientState::NotFound),
    };
    match host.registered_entry(&text) {
        Ok(None) => client(ClientState::NotRegistered),
        Ok(Some(entry)) => {
            let state = match entry.command {
                Some(_) => ClientState::Registered,
                None => ClientState::RegisteredByUrl,
            };
            let has_tool_approval = (host == Host::Codex).then_some(entry.approves_tools);
            Client { command: entry.command, has_tool_approval, ..client(state) }
        }
        Err(error) => unreadable(error.to_string()),
    }
}

pub fn config_file(process: &Process, host: Host) -> Result<PathBuf, AppError> {
    Ok(host.config_file(directories(process)?))
}

pub fn settings_file(process: &Process, host: Host) -> Result<Option<PathBuf>, AppError> {
    Ok(host.settings_file(directories(process)?))
}

fn directories(process: &Process) -> Result<HostDirs<'_>, AppError> {
    let directory = |name: &str| process.variable(name).map(Path::new).filter(|path| path.is_absolute());
    let home = directory("HOME").ok_or_else(|| {
        AppError::new(
            ErrorCode::ConfigInvalid,
            "The client's configuration file is unknown, because HOME is not set.",
        )
    })?;
    let (config, codex, claude) =
        (directory("XDG_CONFIG_HOME"), directory("CODEX_HOME"), directory("CLAUDE_CONFIG_DIR"));
    Ok(HostDirs { home, config, codex, claude })
}

/// Whether the directory of a missing file shows that the client is installed.
pub fn is_host_directory(file: &Path) -> bool {
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    // A hidden file lies directly in the home directory, which is not the host's own.
    !file.file_name().is_some_and(is_hidden) && file.parent().is_some_and(Path::is_dir)
}
