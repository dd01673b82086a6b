//! The commands: one file per command, with its inputs, spec, handler and document.

pub mod cancel;
pub mod cleanup_registry;
pub mod cloud;
pub mod completions;
pub mod config_show;
pub mod declared;
pub mod demo;
pub mod doctor;
pub mod env;
pub mod events;
pub mod help;
pub mod import;
pub mod inputs;
pub mod local;
pub mod logs;
pub mod man;
pub mod manifest;
pub mod preflight;
pub mod queue;
pub mod restore;
pub mod retry;
pub mod schema;
pub mod serve;
pub mod setup;
pub mod version;

use crate::spec::CommandSpec;

pub const ALL: &[&CommandSpec] = &[
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
