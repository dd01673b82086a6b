//! The list of all commands, in the order of the manifest and the help.

use std::sync::LazyLock;

use crate::commands::{
    Command, CommandList, agents, answer, apply, cancel, cleanup_registry, cloud, completions, config, demo,
    diff, discard, doctor, env, events, fleet, help, history, import, init, local, logs, man, manifest,
    notify, prepare, queue, read, restore, retry, review, schema, send, setup, show, usage, version, worker,
    worktrees,
};
use crate::mcp::{dashboard, serve};
use crate::spec::catalog::Catalog;
use crate::watch;

pub fn commands() -> CommandList {
    static LIST: LazyLock<CommandList> = LazyLock::new(|| CommandList::new(COMMANDS.to_vec()));
    *LIST
}

pub fn catalog() -> Catalog {
    commands().catalog
}

/// Commands, each from its spec and its handler.
macro_rules! commands {
    ($($spec:path => $handler:path,)*) => {
        &[$(Command::new(&$spec, |input| prepare(input, $handler)),)*]
    };
}

pub const COMMANDS: &[Command] = commands! {
    local::run::SPEC => local::run::run,
    local::exec::SPEC => local::exec::run,
    local::resume::SPEC => local::resume::run,
    local::status::SPEC => local::status_watch::run,
    local::wait::SPEC => local::wait::run,
    local::results::SPEC => local::results::run,
    local::cancel::SPEC => local::cancel::run,
    cloud::submit::SPEC => cloud::submit::run,
    cloud::status::SPEC => cloud::status::run,
    cloud::WAIT => local::wait::run,
    cloud::RESULTS => local::results::run,
    cloud::CANCEL => local::cancel::run,
    cloud::LIST_ENVIRONMENTS => env::check::run,
    cloud::github_setup::SPEC => cloud::github_setup::run,
    cleanup_registry::SPEC => cleanup_registry::run,
    cloud::apply::SPEC => cloud::apply::run,
    serve::SPEC => serve::run,
    dashboard::SPEC => dashboard::run,
    dashboard::sessions::SPEC => dashboard::sessions::run,
    demo::SPEC => demo::run,
    watch::SPEC => watch::run,
    logs::SPEC => logs::run,
    retry::SPEC => retry::run,
    review::SPEC => review::run,
    cancel::SPEC => cancel::run,
    read::SPEC => read::run,
    queue::PAUSE => queue::pause,
    queue::RESUME => queue::resume,
    send::SPEC => send::run,
    answer::SPEC => answer::run,
    diff::SPEC => diff::run,
    apply::SPEC => apply::run,
    discard::SPEC => discard::run,
    worktrees::SPEC => worktrees::run,
    worktrees::prune::SPEC => worktrees::prune::run,
    restore::SPEC => restore::run,
    restore::undo::SPEC => restore::undo::run,
    show::SPEC => show::run,
    history::SPEC => history::run,
    usage::SPEC => usage::run,
    events::normalize::SPEC => events::normalize::run,
    events::summarize::SPEC => events::summarize::run,
    events::follow::SPEC => events::follow::run,
    import::SPEC => import::run,
    worker::SPEC => worker::run,
    fleet::status::SPEC => fleet::status::run,
    fleet::tasks::SPEC => fleet::tasks::run,
    fleet::cancel::SPEC => fleet::cancel::run,
    fleet::migrate::SPEC => fleet::migrate::run,
    fleet::claiming::PAUSE => fleet::claiming::pause,
    fleet::claiming::RESUME => fleet::claiming::resume,
    fleet::claiming::DRAIN => fleet::claiming::drain,
    fleet::grant::SPEC => fleet::grant::run,
    env::add::SPEC => env::add::run,
    env::remove::SPEC => env::remove::run,
    env::check::SPEC => env::check::run,
    init::SPEC => init::run,
    setup::SPEC => setup::run,
    notify::SPEC => notify::run,
    doctor::SPEC => doctor::run,
    agents::list::SPEC => agents::list::run,
    agents::choose::SPEC => agents::choose::run,
    config::show::SPEC => config::show::run,
    config::get::SPEC => config::get::run,
    config::set::SPEC => config::set::run,
    config::unset::SPEC => config::unset::run,
    config::edit::SPEC => config::edit::run,
    config::path::SPEC => config::path::run,
    schema::SPEC => schema::run,
    manifest::SPEC => manifest::run,
    completions::SPEC => completions::run,
    man::SPEC => man::run,
    help::SPEC => help::run,
    version::SPEC => version::run,
};
