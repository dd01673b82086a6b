//! Declared commands: their names and inputs are fixed, but they are not implemented yet.
//!
//! Declaring them reserves the names and makes calls fail with UNSUPPORTED. Each moves to its own file when it is
//! implemented.

use schemars::JsonSchema;

use crate::spec::{CommandSpec, Danger, Toolset};

macro_rules! inputs {
    ($(#[$about:meta])* $name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, JsonSchema)]
        pub struct $name { $($(#[$meta])* pub $field: $type,)* }
    };
}

inputs!(Watch {
    /// Only these tasks
    #[serde(default)]
    #[schemars(extend("x-positional" = true, "default" = null))]
    task_ids: Vec<String>,
});

inputs!(Dashboard {
    /// Port on the loopback address
    #[schemars(range(min = 1, max = 65_535))]
    port: Option<u32>,
});

pub const WATCH: CommandSpec = CommandSpec {
    danger: Danger::Safe,
    open_ended: true,
    toolset: Toolset::Hidden,
    ..CommandSpec::declare::<Watch>(&["watch"], "Show tasks live in the terminal")
};
pub const DASHBOARD: CommandSpec = CommandSpec {
    danger: Danger::Safe,
    open_ended: true,
    toolset: Toolset::Hidden,
    ..CommandSpec::declare::<Dashboard>(&["dashboard"], "Show tasks live in the browser")
};
