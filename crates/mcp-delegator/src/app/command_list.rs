//! The list of all commands, in the order of the manifest and the help.

use std::sync::LazyLock;

use crate::commands::{
    Command, CommandList, answer, apply, cancel, cleanup_registry, cloud, completions, config_show, demo,
    diff, discard, doctor, env, events, fleet, help, import, init, local, logs, man, manifest, notify, queue,
    restore, retry, review, schema, send, setup, version, worker,
};
use crate::mcp::serve;
use crate::spec::catalog::Catalog;

pub fn commands() -> CommandList {
    static LIST: LazyLock<CommandList> = LazyLock::new(|| CommandList::new(COMMANDS.to_vec()));
    *LIST
}

pub fn catalog() -> Catalog {
    commands().catalog()
}

pub const COMMANDS: &[Command] = &[
    local::run::COMMAND,
    local::exec::COMMAND,
    local::resume::COMMAND,
    local::status::COMMAND,
    local::wait::COMMAND,
    local::results::COMMAND,
    local::cancel::COMMAND,
    cloud::submit::COMMAND,
    cloud::status::COMMAND,
    cloud::WAIT,
    cloud::RESULTS,
    cloud::CANCEL,
    cloud::LIST_ENVIRONMENTS,
    cloud::github_setup::COMMAND,
    cleanup_registry::COMMAND,
    cloud::apply::COMMAND,
    serve::COMMAND,
    demo::COMMAND,
    logs::COMMAND,
    retry::COMMAND,
    review::COMMAND,
    cancel::COMMAND,
    queue::PAUSE_COMMAND,
    queue::RESUME_COMMAND,
    send::COMMAND,
    answer::COMMAND,
    diff::COMMAND,
    apply::COMMAND,
    discard::COMMAND,
    restore::COMMAND,
    events::normalize::COMMAND,
    events::summarize::COMMAND,
    events::follow::COMMAND,
    import::COMMAND,
    worker::COMMAND,
    fleet::status::COMMAND,
    fleet::tasks::COMMAND,
    fleet::cancel::COMMAND,
    fleet::migrate::COMMAND,
    fleet::claiming::PAUSE_COMMAND,
    fleet::claiming::RESUME_COMMAND,
    fleet::drain::COMMAND,
    fleet::grant::COMMAND,
    env::add::COMMAND,
    env::remove::COMMAND,
    env::check::COMMAND,
    init::COMMAND,
    setup::COMMAND,
    notify::COMMAND,
    doctor::COMMAND,
    config_show::COMMAND,
    schema::COMMAND,
    manifest::COMMAND,
    completions::COMMAND,
    man::COMMAND,
    help::COMMAND,
    version::COMMAND,
];
