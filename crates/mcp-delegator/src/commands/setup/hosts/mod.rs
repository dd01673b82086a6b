//! MCP hosts and the entry that registers this server in their configuration.
//!
//! The files belong to the user. An edit adds one entry, or updates the command of an existing entry, and changes no
//! other byte. `json_entry` and `toml_entry` are pure functions from text to text; an edit that would require rewriting
//! the file is refused.

pub mod json_entry;
pub mod toml_entry;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Name of this server in every host.
pub const SERVER: &str = "mcp-delegator";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    ClaudeCode,
    Codex,
    Cursor,
    Vscode,
    ClaudeDesktop,
}

/// Directories that determine the hosts' configuration files.
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

/// Why an entry could not be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the file is not valid {format}: {message}")]
    Unreadable { format: &'static str, message: String },
    /// The file is valid, but the entry cannot be added without rewriting it.
    #[error("{message}")]
    CannotEdit { message: String },
}

/// Result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The entry exists and starts this program.
    Unchanged,
    Changed(String),
}

impl Host {
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

    /// Key of the object that contains the servers.
    fn servers_key(self) -> &'static str {
        match self {
            Host::Vscode => "servers",
            Host::Codex => "mcp_servers",
            Host::ClaudeCode | Host::Cursor | Host::ClaudeDesktop => "mcpServers",
        }
    }

    fn entry(self, command: &str) -> Value {
        match self {
            Host::ClaudeCode | Host::Vscode => {
                json!({"type": "stdio", "command": command, "args": ["serve"]})
            }
            Host::Codex | Host::Cursor | Host::ClaudeDesktop => {
                json!({"command": command, "args": ["serve"]})
            }
        }
    }

    /// A file that contains only this server's entry.
    pub fn sample(self, command: &str) -> String {
        match self {
            Host::Codex => toml_entry::table(SERVER, command),
            _ => {
                let whole = json!({self.servers_key(): {SERVER: self.entry(command)}});
                serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
            }
        }
    }

    /// The text of the file with this server's entry.
    pub fn edit(self, text: &str, command: &str) -> Result<Edit, EntryError> {
        match self {
            Host::Codex => toml_entry::upsert_entry(text, SERVER, command),
            _ if text.trim().is_empty() => Ok(Edit::Changed(self.sample(command))),
            _ => json_entry::upsert_entry(text, self.servers_key(), SERVER, &self.entry(command)),
        }
    }
}

#[cfg(test)]
mod tests;
