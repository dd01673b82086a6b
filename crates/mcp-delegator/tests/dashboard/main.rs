//! The dashboard in a real browser: Chromium, driven by playwright-core. Each test is a scenario in `scenarios/`, a script
//! that starts the server, submits tasks and uses the pages as a person does.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod world;

use std::path::Path;

use delegator_testkit::program::wait_for_output;
use world::{TOOLS, run, stage, tool};

const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(&stage(), stringify!($name));
        })*
    };
}

scenarios! {
    every_page_is_accessible_and_fits_a_phone
    a_review_becomes_the_next_turn_and_is_applied
    comments_are_sent_once_and_with_the_line_they_are_on
    attempts_are_compared_and_one_is_adopted
    a_question_is_answered_on_a_phone
    nothing_is_missing_after_a_restart_of_the_server
    many_tabs_share_one_stream
    hostile_texts_stay_texts
    the_keyboard_alone_is_enough
    tasks_are_started_chosen_and_cancelled
    updates_keep_focus_selection_and_drafts
    a_session_permits_what_its_scope_allows_until_it_is_revoked
    pages_are_readable_without_scripts
    screenshots
}

/// The scripts are checked with types from their comments.
#[test]
fn the_scripts_have_no_type_errors() {
    let check = |file: &str, library: &str| {
        let mut command = tool("node");
        command.arg(Path::new(TOOLS).join("node_modules/typescript/bin/tsc"));
        command.args(["--noEmit", "--strict", "--checkJs", "--allowJs", "--moduleDetection", "force"]);
        command.args(["--target", "es2022", "--lib", library]);
        let run = wait_for_output(command.arg(Path::new(ASSETS).join(file)).spawn().unwrap());
        assert_eq!(run.exit, Some(0), "{}", run.stdout);
    };
    check("dashboard.js", "es2022,dom,dom.iterable");
    check("service-worker.js", "es2022,webworker");
}
