//! Checks of the fleet's database, if one is configured: reachable, tables that fit, a connection that others
//! cannot read.

use super::check::Check;
use crate::commands::fleet::database::database;
use crate::commands::prelude::*;

const NAME: &str = "fleet";

pub fn checks(context: &Context<'_>) -> Vec<Check> {
    match context.config.database_url() {
        Ok(None) => return Vec::new(),
        Ok(Some(_)) => {}
        Err(error) => return vec![Check::failed(context, NAME, AppError::from(error))],
    }
    let url_file = context.config.database_url_file();
    let readable =
        url_file.and_then(|file| Check::readable_by_others("database_url_file", file, "the database URL"));
    std::iter::once(connection(context)).chain(readable).collect()
}

fn connection(context: &Context<'_>) -> Check {
    let status = || {
        let database = database(context)?;
        let status = database.status()?;
        Ok((database.url().clone(), status))
    };
    let (url, status) = match status() {
        Ok(found) => found,
        Err(error) => return Check::failed(context, NAME, error),
    };
    let message = format!(
        "{url}, tables of version {}, {} running, {} queued",
        status.schema,
        plural(status.workers.len(), "worker"),
        status.queued
    );
    if status.has_excess_rights {
        return Check::warning(
            NAME,
            format!("{message}; the role can change tasks that are not its own"),
            "Upgrade all workers, then let the owner of the tables run the SQL of: mcp-delegator fleet grant",
        );
    }
    if url.is_on_this_machine() || url.verifies_server() {
        return Check::ok(NAME, message);
    }
    Check::warning(
        NAME,
        format!("{message}; the connection to another machine is not verified"),
        "Use sslmode=verify-full in the URL: others on the network can read or change tasks.",
    )
}
