//! MCP hosts and the entry that registers this server in their configuration.
//!
//! The files belong to the user. An edit adds one entry, or updates some values of an existing entry, and
//! changes no other byte. `json_entry`, `toml_entry` and `permissions` are pure functions from text to text; an
//! edit that would require rewriting the file is refused.

pub mod json_entry;
pub mod permissions;
pub mod toml_entry;

use delegator_domain::named_enum;

use crate::commands::prelude::*;
use crate::commands::setup::hosts::json_entry::Syntax;

pub const SERVER: &str = "mcp-delegator";

named_enum! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Host {
        ClaudeCode = "claude-code",
        Codex = "codex",
        Cursor = "cursor",
        Vscode = "vscode",
        ClaudeDesktop = "claude-desktop",
    }
}

#[derive(Debug, Clone, Copy)]
pub struct HostDirs<'a> {
    pub home: &'a Path,
    /// `$XDG_CONFIG_HOME`.
    pub config: Option<&'a Path>,
    /// `$CODEX_HOME`.
    pub codex: Option<&'a Path>,
    /// `$CLAUDE_CONFIG_DIR`.
    pub claude: Option<&'a Path>,
}

/// What a client's entry for this server contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub command: String,
    pub args: Vec<String>,
    /// Replace the arguments of an existing entry, too. Otherwise they are the user's.
    pub replaces_args: bool,
    /// Let the client call the tools without asking. Codex has such a setting in the entry, Claude Code in
    /// another file.
    pub approves_tools: bool,
}

/// This server's entry as a client's file contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Program that the client starts; `None` if it connects in another way, as by URL.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// The entry itself lets the client call the tools without asking.
    pub approves_tools: bool,
}

impl From<Entry> for Registration {
    fn from(entry: Entry) -> Registration {
        Registration {
            command: entry.command.unwrap_or_default(),
            args: entry.args,
            replaces_args: false,
            approves_tools: entry.approves_tools,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the file is not valid {format}: {message}")]
    Unreadable { format: &'static str, message: String },
    #[error("{entry} has no command: the client connects by URL, and setup does not change that")]
    WithoutCommand { entry: String },
    /// The file is valid, but the entry cannot be added without rewriting it.
    #[error("{message}")]
    CannotEdit { message: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The entry exists and starts this program.
    Unchanged,
    Changed(String),
}

impl Host {
    pub fn title(self) -> &'static str {
        match self {
            Host::ClaudeCode => "Claude Code",
            Host::Codex => "Codex",
            Host::Cursor => "Cursor",
            Host::Vscode => "VS Code",
            Host::ClaudeDesktop => "Claude Desktop",
        }
    }

    pub fn config_file(self, dirs: HostDirs<'_>) -> PathBuf {
        let config = dirs.config.map_or_else(|| dirs.home.join(".config"), Path::to_owned);
        match self {
            Host::ClaudeCode => dirs.claude.unwrap_or(dirs.home).join(".claude.json"),
            Host::Codex => {
                dirs.codex.map_or_else(|| dirs.home.join(".codex"), Path::to_owned).join("config.toml")
            }
            Host::Cursor => dirs.home.join(".cursor/mcp.json"),
            Host::Vscode => config.join("Code/User/mcp.json"),
            Host::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
        }
    }

    /// The file with the client's permissions, if they are not in the server's entry.
    pub fn settings_file(self, dirs: HostDirs<'_>) -> Option<PathBuf> {
        let directory = dirs.claude.map_or_else(|| dirs.home.join(".claude"), Path::to_owned);
        (self == Host::ClaudeCode).then(|| directory.join("settings.json"))
    }

    /// The command that runs the client without a user. Only for clients that ask the user before a call and
    /// have a setting against it.
    pub fn unattended_command(self) -> Option<&'static str> {
        match self {
            Host::ClaudeCode => Some("claude -p"),
            Host::Codex => Some("codex exec"),
            Host::Cursor | Host::Vscode | Host::ClaudeDesktop => None,
        }
    }

    fn syntax(self) -> Syntax {
        match self {
            Host::Vscode | Host::Cursor => Syntax::JsonWithComments,
            Host::ClaudeCode | Host::ClaudeDesktop | Host::Codex => Syntax::Json,
        }
    }

    fn servers_key(self) -> &'static str {
        match self {
            Host::Vscode => "servers",
            Host::Codex => "mcp_servers",
            Host::ClaudeCode | Host::Cursor | Host::ClaudeDesktop => "mcpServers",
        }
    }

    fn entry(self, new: &Registration) -> Value {
        match self {
            Host::ClaudeCode | Host::Vscode => {
                json!({"type": "stdio", "command": new.command, "args": new.args})
            }
            Host::Codex | Host::Cursor | Host::ClaudeDesktop => {
                json!({"command": new.command, "args": new.args})
            }
        }
    }

    pub fn registered_entry(self, text: &str) -> Result<Option<Entry>, EntryError> {
        match self {
            Host::Codex => toml_entry::read(text, SERVER),
            _ if text.trim().is_empty() => Ok(None),
            _ => Ok(json_entry::read(&self.syntax().parse(text)?, self.servers_key(), SERVER)),
        }
    }

    pub fn sample(self, new: &Registration) -> String {
        match self {
            Host::Codex => toml_entry::table(SERVER, new),
            _ => {
                let whole = json!({self.servers_key(): {SERVER: self.entry(new)}});
                serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
            }
        }
    }

    pub fn remove(self, text: &str) -> Result<Edit, EntryError> {
        match self {
            Host::Codex => toml_entry::remove_entry(text, SERVER),
            _ if text.trim().is_empty() => Ok(Edit::Unchanged),
            _ => json_entry::remove_entry(text, self.syntax(), [self.servers_key(), SERVER]),
        }
    }

    pub fn edit(self, text: &str, new: &Registration) -> Result<Edit, EntryError> {
        match self {
            Host::Codex => toml_entry::upsert_entry(text, SERVER, new),
            _ if text.trim().is_empty() => Ok(Edit::Changed(self.sample(new))),
            _ => {
                let replaced: &[&str] = if new.replaces_args { &["command", "args"] } else { &["command"] };
                let path = [self.servers_key(), SERVER];
                json_entry::upsert_entry(text, self.syntax(), path, &self.entry(new), replaced)
            }
        }
    }
}

#[cfg(test)]
mod tests;
