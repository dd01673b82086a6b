//! The extraction corpus: finished tasks with hand-written expected values, compared with the values we extract.
//!
//! ```text
//! cases/NAME.json ─ case ─▶ case_world (project, agent) ─ run ─▶ envelopes ─ fields ─▶ compare ◀─ expected values
//! ```
//!
//! Each case is a test of its own. `docs/reports/extraction.md` is generated from the cases.

#![expect(clippy::expect_used, reason = "a test panics when its setup is not as expected")]

mod case;
mod case_world;
mod compare;
mod fields;
mod page;
mod run;

use std::collections::BTreeSet;

use delegator_testkit::generated::assert_up_to_date;
use serde_json::json;

/// Declares one test per file in `cases/`.
macro_rules! cases {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            check_case(stringify!($name));
        })*
    };
}

cases! {
    edits_adds_and_deletes
    changes_nothing
    claims_without_change
    changes_without_claim
    changes_by_command
    renames
    renames_and_edits
    deletes_by_command
    writes_an_ignored_file
    edits_a_modified_file
    undoes_its_own_change
    works_outside_of_git
    works_in_a_subdirectory
    writes_binary_files
    writes_a_big_file
    creates_a_symlink
    commits_its_work
    switches_the_branch
    writes_in_read_only_mode
    tests_fail_in_pytest
    tests_are_fixed_in_cargo
    tests_are_rerun_by_name
    tests_of_several_runners
    tests_in_unittest
    tests_in_go_count_only_failures
    tests_in_nextest_and_vitest
    no_tests_ran
    tests_do_not_compile
    claims_tests_that_never_ran
    echoed_summary_is_not_a_test_run
    build_fails_in_rust
    build_fails_in_typescript
    python_traceback
    agent_exits_after_gcc
    failure_was_repaired
    failing_tests_end_the_task
    search_without_a_match
    usage_limit
    rate_limit
    not_signed_in
    network_error
    unknown_model
    sandbox_is_unavailable
    agent_gives_up
    agent_exits
    agent_exits_without_terminal_event
    agent_is_killed
    cancelled_while_running
    idle_limit
    hard_limit
    thread_does_not_exist
    resumes_another_thread
    resumes_its_thread
    verification_passes
    verification_fails
    verification_is_skipped_after_a_failure
    secrets_are_redacted
    secrets_in_a_completed_task
    secrets_in_test_names
    answers_with_valid_output
    answers_in_a_code_fence
    answers_with_invalid_output
    answers_in_prose
    uses_the_idle_dialect
    uses_events_of_codex_before_0_44
    plan_and_two_messages
    codex_adds_a_file
    codex_updates_deletes_and_renames
    codex_changes_files_by_command
    codex_continues_after_a_failed_command
    codex_runs_tests
    codex_fixes_tests
    codex_commits
    codex_in_read_only_mode
    codex_patch_does_not_apply
    codex_answers_with_valid_output
    codex_answers_with_invalid_output
    codex_resumes
    codex_model_refuses
    codex_build_fails
    codex_is_not_signed_in
    codex_cannot_reach_the_model
    codex_plans
    codex_verification_in_its_sandbox
    codex_is_cancelled
    codex_claims_tests_that_never_ran
    changes_a_file_mode
    file_without_a_final_newline
    file_replaced_by_a_directory
    unusual_file_names
    the_first_commit
    amends_a_commit
    resets_a_commit
    stashes_uncommitted_changes
    commits_on_a_detached_head
    commits_uncommitted_changes
    creates_an_inner_repository
    edits_an_untracked_file
    old_log_is_not_a_test_run
    tests_through_tail
    tests_of_two_runners_in_one_command
    tests_through_make
    tests_in_another_directory
    tests_break_after_they_passed
    tests_in_rspec_and_go
    build_fails_in_another_directory
    build_fails_at_an_absolute_path
    two_commands_fail
    recovers_from_a_broken_connection
    usage_and_message_of_two_turns
    turn_is_retried
    completes_with_a_nonzero_exit_code
    output_schema_without_a_message
    output_schema_in_a_failed_task
    verification_cannot_start
    verification_changes_files
    codex_runs_two_commands_in_one_response
    codex_patches_from_the_shell
    codex_sandbox_denies_a_commit
    codex_reaches_its_usage_limit
    codex_has_an_unknown_model
    codex_fails_after_its_work
    codex_secrets_are_redacted
    tests_by_a_script
    tests_with_timeout_and_tee
    commit_message_is_not_a_test_run
    pytest_failures_end_the_task
    node_stack_trace
    eslint_error
    timeout_after_tests
    cancelled_before_verification
    change_with_same_size_and_old_time
    hides_a_change_from_git
    untracks_a_file
    switches_to_other_files
    symlink_replaced_by_a_file
    creates_an_empty_directory
    failed_file_change
    reports_no_token_usage
    reports_usage_of_codex_before_0_125
    prints_lines_that_are_not_events
    answers_with_a_list
    build_fails_in_a_workspace_member
    edits_a_tracked_file_that_is_ignored
    wider_test_run_replaces_a_narrower_one
    tests_in_a_log_of_the_same_command
    tests_in_a_log_shown_later
    touches_a_file_outside_of_git
    ignores_its_own_file
    codex_renames_outside_of_git
}

#[track_caller]
fn check_case(name: &str) {
    let case = case::read(name);
    let world = case_world::CaseWorld::for_case(&case);
    let outputs = run::run_case(&case, &world);
    let differences = compare::differences(&case, &outputs, &world.working_dir(&case));
    assert!(differences.is_empty(), "{name}:\n  {}\n{outputs:#?}", differences.join("\n  "));
}

#[test]
fn every_case_file_is_a_test_and_states_enough_fields() {
    let files = std::fs::read_dir(case::folder()).expect("the cases directory");
    let names = files.map(|file| file.expect("a file").path().file_stem().expect("a name").to_owned());
    let files_found: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    let names_tested: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files_found, names_tested);
    for name in NAMES {
        let truth = case::read(name).truth;
        assert!(truth.len() >= 5 && truth.contains_key("state"), "{name} states too few fields");
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
    let mut case = case::read("secrets_are_redacted");
    let world = case_world::CaseWorld::for_case(&case);
    let outputs = run::run_case(&case, &world);
    let working_dir = world.working_dir(&case);
    for field in fields::FIELDS {
        case.truth = json!({field.name: "certainly not"}).as_object().expect("an object").clone();
        let found = compare::differences(&case, &outputs, &working_dir);
        assert!(
            !found.is_empty() && found.iter().all(|difference| difference.starts_with(field.name)),
            "{found:?}"
        );
    }
    for wrong_truth in [
        json!({"never_shown": ["REDACTED"]}),
        json!({"no_such_field": null}),
        json!({"modified_files": ["not-there.txt"]}),
        json!({"artifacts": [{"ref": "not-there.txt", "size": 1, "sha256": ""}]}),
    ] {
        case.truth = wrong_truth.as_object().expect("an object").clone();
        assert!(!compare::differences(&case, &outputs, &working_dir).is_empty(), "{wrong_truth}");
    }
}

#[test]
fn the_extraction_page_is_up_to_date() {
    let cases: Vec<(&str, case::Case)> = NAMES.iter().map(|name| (*name, case::read(name))).collect();
    assert_up_to_date("docs/reports/extraction.md", &page::page(&cases));
}
