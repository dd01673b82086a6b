//! The database of the fleet, as the configuration or a command names it.

use std::path::PathBuf;

use delegator_fleet::Database;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::commands::context::Context;
use crate::error::fleet::SET_DATABASE;
use crate::error::{AppError, ErrorCode};
use crate::spec::Marker;

/// Inputs that name another database than the configuration. A model cannot choose one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
pub struct DatabaseInput {
    /// Database URL, without a password
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::CommandLineOnly]))]
    pub database_url: Option<String>,
    /// File whose first line is the database URL
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::CommandLineOnly]))]
    pub database_url_file: Option<PathBuf>,
}

/// The configured database. Nothing connects before the first call.
pub fn database(context: &Context<'_>) -> Result<Database, AppError> {
    database_from(context, &DatabaseInput::default())
}

pub fn database_from(context: &Context<'_>, input: &DatabaseInput) -> Result<Database, AppError> {
    let file = input.database_url_file.as_ref().map(|file| context.process.current_dir.join(file));
    let file = file.map(|file| ("database_url_file", file.display().to_string()));
    let url = input.database_url.clone().map(|url| ("database_url", url));
    let flags: Vec<_> = url.into_iter().chain(file).map(|(key, text)| (key.to_owned(), text)).collect();
    let url = if flags.is_empty() {
        context.config.database_url()?
    } else {
        context.config.with_flags(&flags)?.database_url()?
    };
    let url = url.ok_or_else(|| {
        AppError::new(ErrorCode::ConfigInvalid, "No database of a fleet is configured.").suggest(SET_DATABASE)
    })?;
    Ok(context.fleet.database(url.reveal())?)
}
