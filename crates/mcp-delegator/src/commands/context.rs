//! What a command handler receives besides its input.

use std::path::PathBuf;
use std::time::Duration;

use delegator_config::{Config, ConfigError, Sources};
use delegator_engine::{ConnectionPool, Variables, processors};
use delegator_fleet::DatabasePool;

use crate::commands::CommandList;
use crate::output::screen::Screen;
use crate::spec::Surface;
use crate::spec::process::Process;

#[derive(Debug)]
pub struct Context<'a> {
    pub commands: CommandList,
    pub config: &'a Config,
    /// The problems of the configuration; only for commands that use its valid part.
    pub config_error: Option<&'a ConfigError>,
    pub state_dir: Option<PathBuf>,
    pub process: &'a Process,
    pub screen: Screen<'a>,
    pub surface: Surface,
    /// Default time limit of a call that waits for a task. Set for MCP clients, which give up after about a
    /// minute; `None` on the command line.
    pub call_budget: Option<Duration>,
    /// Connections to the registry that are reused: by a command, and by a server between calls.
    pub connections: ConnectionPool,
    /// The same for the database of the fleet.
    pub fleet: DatabasePool,
}

pub fn sources(process: &Process) -> Sources {
    Sources {
        environment: process.environment.clone(),
        current_dir: process.current_dir.clone(),
        flags: Vec::new(),
        cores: processors(),
    }
}

pub fn variables(context: &Context<'_>) -> Variables {
    context.process.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
