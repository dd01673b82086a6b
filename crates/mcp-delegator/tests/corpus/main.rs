//! The corpus: finished tasks with hand-written truth, and whether what we extract is that truth.
//!
//! ```text
//! cases/NAME.json ─ case ─▶ stage (a project, an agent) ─ play ─▶ answers ─ fields ─▶ compare ◀─ the case's truth
//! ```
//!
//! Each case is a test of its own. `docs/extraction.md` is the account of it.

#![expect(clippy::expect_used, reason = "a test stops where its world is not as expected")]

mod case;
mod case_world;
mod compare;
mod fields;
mod page;
mod run;

use std::collections::BTreeSet;

use delegator_testkit::generated::assert_up_to_date;
use serde_json::json;

/// Names of files in `cases/`, each of them a test.
macro_rules! cases {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            hold(stringify!($name));
        })*
    };
}

cases! {
    edits_adds_and_deletes
    does_nothing
    claims_without_change
    changes_without_claim
    changes_by_command
    renames
    renames_and_edits
    deletes_by_command
    writes_an_ignored_file
    edits_what_was_dirty
    undoes_its_own_change
    works_outside_of_git
    works_in_a_folder_below
    writes_binary_files
    writes_a_big_file
    makes_a_link
    commits_its_work
    switches_the_branch
    writes_though_it_may_only_read
    tests_fail_in_pytest
    tests_are_fixed_in_cargo
    tests_are_rerun_by_name
    tests_of_several_runners
    tests_in_unittest
    tests_in_go_count_only_failures
    tests_in_nextest_and_vitest
    no_tests_ran
    tests_do_not_compile
    lies_about_tests
    echoes_are_no_tests
    build_fails_in_rust
    build_fails_in_typescript
    python_traceback
    agent_exits_after_gcc
    failure_was_repaired
    failing_tests_end_the_task
    a_search_without_a_find
    usage_limit
    rate_limit
    not_signed_in
    network_is_gone
    no_such_model
    no_sandbox
    gives_up
    agent_exits
    agent_ends_without_a_word
    agent_is_killed
    cancelled_on_its_way
    idle_limit
    hard_limit
    thread_is_not_kept
    resumes_another_thread
    resumes_its_thread
    verified
    verify_fails
    verify_is_not_run
    secrets_are_hidden
    secrets_in_a_good_task
    secrets_in_test_names
    answers_in_shape
    answers_in_a_fence
    answers_out_of_shape
    answers_in_prose
    speaks_dialect_003
    speaks_as_codex_did_before_0_44
    plans_and_speaks_twice
    codex_adds_a_file
    codex_updates_deletes_and_renames
    codex_changes_files_by_command
    codex_gets_over_a_failed_command
    codex_runs_tests
    codex_fixes_tests
    codex_commits
    codex_may_only_read
    codex_patch_does_not_fit
    codex_answers_in_shape
    codex_answers_out_of_shape
    codex_resumes
    codex_model_refuses
    codex_build_fails
    codex_is_not_signed_in
    codex_finds_nobody
    codex_plans
    codex_is_verified
    codex_is_cancelled
    codex_lies
    changes_only_a_mode
    lines_without_an_end
    a_folder_in_the_place_of_a_file
    odd_names
    the_first_commit
    amends_a_commit
    resets_a_commit
    stashes_what_was_dirty
    commits_on_no_branch
    commits_what_was_dirty
    a_repository_inside
    edits_an_untracked_file
    shows_an_old_log
    tests_through_tail
    tests_of_two_runners_in_one_command
    tests_through_make
    tests_in_another_folder
    tests_break_after_they_passed
    tests_in_rspec_and_go
    build_fails_in_another_folder
    build_fails_at_an_absolute_path
    two_commands_fail
    gets_over_a_broken_connection
    two_turns
    a_turn_that_was_tried_again
    completes_and_exits_badly
    owes_an_answer_and_says_nothing
    fails_and_owes_no_answer
    verify_cannot_start
    verify_changes_files
    codex_does_two_things_at_once
    codex_patches_from_the_shell
    codex_may_not_commit
    codex_has_no_credits
    codex_knows_no_such_model
    codex_fails_after_its_work
    codex_hides_secrets
    tests_by_a_script
    tests_with_a_log_beside
    old_words_in_the_history
    pytest_ends_the_task
    node_throws
    eslint_complains
    timeout_after_tests
    cancelled_before_its_check
    a_change_that_looks_like_none
    hides_a_change_from_git
    untracks_a_file
    switches_to_other_files
    a_link_becomes_a_file
    makes_an_empty_folder
    a_change_that_failed
    tells_no_usage
    tells_usage_as_before_0_125
    prints_what_is_no_event
    answers_with_a_list
    build_fails_in_a_member
    edits_a_tracked_file_that_is_ignored
    tests_first_some_then_all
    tests_in_a_log_of_the_same_command
    tests_in_a_log_shown_later
    touches_a_file_outside_of_git
    ignores_its_own_file
    codex_renames_outside_of_git
}

#[track_caller]
fn hold(name: &str) {
    let case = case::read(name);
    let theatre = case_world::CaseWorld::for_case(&case);
    let told = run::run_case(&case, &theatre);
    let differences = compare::differences(&case, &told, &theatre.working_dir(&case));
    assert!(differences.is_empty(), "{name}:\n  {}\n{told:#?}", differences.join("\n  "));
}

#[test]
fn every_case_file_is_a_test_and_states_enough_fields() {
    let files = std::fs::read_dir(case::folder()).expect("a folder of cases");
    let names = files.map(|file| file.expect("a file").path().file_stem().expect("a name").to_owned());
    let there: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    let played: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(there, played);
    for name in NAMES {
        let truth = case::read(name).truth;
        assert!(truth.len() >= 5 && truth.contains_key("state"), "{name} states too little");
    }
}

#[test]
fn every_field_is_stated_in_at_least_three_cases() {
    let cases: Vec<case::Case> = NAMES.iter().map(|name| case::read(name)).collect();
    for field in fields::FIELDS {
        let stated: Vec<_> = cases.iter().filter_map(|case| case.truth.get(field.name)).collect();
        assert!(stated.len() >= 3, "{}: {} cases", field.name, stated.len());
        assert!(stated.iter().any(|truth| !page::is_empty_truth(truth)), "{} is never there", field.name);
    }
}

#[test]
fn a_wrong_truth_is_reported_for_every_field() {
    let mut case = case::read("secrets_are_hidden");
    let theatre = case_world::CaseWorld::for_case(&case);
    let told = run::run_case(&case, &theatre);
    let working_dir = theatre.working_dir(&case);
    for field in fields::FIELDS {
        case.truth = json!({field.name: "certainly not"}).as_object().expect("an object").clone();
        let found = compare::differences(&case, &told, &working_dir);
        assert!(!found.is_empty() && found.iter().all(|words| words.starts_with(field.name)), "{found:?}");
    }
    for untrue in [
        json!({"never_told": ["REDACTED"]}),
        json!({"no_such_field": null}),
        json!({"modified_files": ["not-there.txt"]}),
        json!({"artifacts": [{"ref": "not-there.txt", "size": 1, "sha256": ""}]}),
    ] {
        case.truth = untrue.as_object().expect("an object").clone();
        assert!(!compare::differences(&case, &told, &working_dir).is_empty(), "{untrue}");
    }
}

#[test]
fn the_extraction_page_is_up_to_date() {
    let cases: Vec<(&str, case::Case)> = NAMES.iter().map(|name| (*name, case::read(name))).collect();
    assert_up_to_date("docs/extraction.md", &page::page(&cases));
}
