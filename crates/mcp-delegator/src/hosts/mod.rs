//! Programs that can call us, and the entry each wants in its configuration.
//!
//! Those files are other people's: an edit puts one entry in, or mends the command of the one that is there, and leaves
//! every other byte as it was. `json_entry` and `toml_entry` are pure, text to text; what they cannot do without
//! rewriting the file, they do not do.

pub mod json_entry;
pub mod toml_entry;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Our name in every host.
pub const SERVER: &str = "mcp-delegator";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    ClaudeCode,
    Codex,
    Cursor,
    Vscode,
    ClaudeDesktop,
}

/// Where a host keeps things.
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

/// Why an entry cannot be put in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("this is not valid {format}: {words}")]
    Unreadable { format: &'static str, words: String },
    /// It is valid, and yet written in a way that an entry cannot be put into.
    #[error("{words}")]
    CannotEdit { words: String },
}

/// What an edit would make of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The entry is there and starts this very program.
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

    /// The object in the file that holds the servers.
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

    /// A file with nothing but our entry.
    pub fn sample(self, command: &str) -> String {
        match self {
            Host::Codex => toml_entry::table(SERVER, command),
            _ => {
                let whole = json!({self.servers_key(): {SERVER: self.entry(command)}});
                serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
            }
        }
    }

    /// The file with our entry in it.
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
