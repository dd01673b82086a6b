//! The list of all commands, in the order of the manifest and the help.

use crate::commands::{
    cancel, cleanup_registry, cloud, completions, config_show, declared, demo, doctor, env, events, help,
    import, local, logs, man, manifest, queue, restore, retry, schema, setup, version,
};
use crate::mcp::serve;
use crate::spec::CommandSpec;
use crate::spec::catalog::Catalog;

pub fn catalog() -> Catalog {
    Catalog(COMMANDS)
}

const COMMANDS: &[&CommandSpec] = &[
    &local::run::SPEC,
    &local::exec::SPEC,
    &local::resume::SPEC,
    &local::status::SPEC,
    &local::wait::SPEC,
    &local::results::SPEC,
    &local::cancel::SPEC,
    &cloud::submit::SPEC,
    &cloud::status::SPEC,
    &cloud::WAIT,
    &cloud::RESULTS,
    &cloud::CANCEL,
    &cloud::list_environments::SPEC,
    &cloud::github_setup::SPEC,
    &cleanup_registry::SPEC,
    &cloud::apply::SPEC,
    &serve::SPEC,
    &demo::SPEC,
    &logs::SPEC,
    &retry::SPEC,
    &cancel::SPEC,
    &queue::PAUSE,
    &queue::RESUME,
    &declared::SEND,
    &declared::ANSWER,
    &declared::DIFF,
    &declared::APPLY,
    &declared::DISCARD,
    &restore::SPEC,
    &events::normalize::SPEC,
    &events::summarize::SPEC,
    &events::follow::SPEC,
    &import::SPEC,
    &declared::WATCH,
    &declared::DASHBOARD,
    &declared::WORKER,
    &declared::FLEET_STATUS,
    &env::add::SPEC,
    &env::remove::SPEC,
    &env::check::SPEC,
    &setup::SPEC,
    &doctor::SPEC,
    &config_show::SPEC,
    &schema::SPEC,
    &manifest::SPEC,
    &completions::SPEC,
    &man::SPEC,
    &help::SPEC,
    &version::SPEC,
];
