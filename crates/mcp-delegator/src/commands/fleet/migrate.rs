//! `fleet migrate`: create or upgrade the tables of the fleet.

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::prelude::*;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MigratedTables {
    /// Version of the tables before; 0 if there were none.
    pub from_version: String,
    pub to_version: String,
    pub is_changed: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Several at once wait for each other. A worker does the same at its start, if its role may.",
    shape: Shape::Action("fleet_migrated"),
    idempotent: true,
    network: true,
    toolset: Toolset::Hidden,
    ..CommandSpec::new::<DatabaseInput, MigratedTables>(
        &["fleet", "migrate"],
        "Create or upgrade the tables of the fleet",
    )
};

pub fn run(context: &Context<'_>, input: DatabaseInput) -> Result<CommandOutput, AppError> {
    let migrated = database_from(context, &input)?.migrate()?;
    Ok(CommandOutput::done(MigratedTables {
        from_version: migrated.before.to_string(),
        to_version: migrated.after.to_string(),
        is_changed: migrated.before != migrated.after,
    }))
}

impl CommandData for MigratedTables {
    fn document(&self) -> Document {
        let version = &self.to_version;
        Document::titled(match (self.is_changed, self.from_version.as_str()) {
            (false, _) => format!("The tables are current: version {version}"),
            (true, "0") => format!("The tables were created: version {version}"),
            (true, _) => format!("The tables were upgraded to version {version}"),
        })
    }
}
