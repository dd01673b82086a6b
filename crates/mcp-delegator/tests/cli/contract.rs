//! Every command in every envelope, and every error code in every envelope, validated against the published schemas.

use std::collections::BTreeSet;
use std::time::Duration;

use delegator_domain::warning_code::WarningCode;
use delegator_testkit::generated::{assert_up_to_date, workspace};
use delegator_testkit::program::World;
use jiff::Timestamp;
use mcp_delegator::app::command_list::catalog;
use mcp_delegator::commands;
use mcp_delegator::error::{AppError, ErrorCode, ExitCode, Problem, Redirect, SideEffects};
use mcp_delegator::output::batch::Batch;
use mcp_delegator::output::call_syntax::CallSyntax;
use mcp_delegator::output::command_data::CommandData;
use mcp_delegator::output::envelopes::schema as envelope_schema;
use mcp_delegator::output::envelopes::schema::{answer_schema, check, violations};
use mcp_delegator::output::envelopes::{
    cli as cli_envelope, standard as standard_envelope, tool as tool_envelope,
};
use mcp_delegator::output::outcome::{
    ChildExit, CommandOutput, Completion, IncompleteReason, Outcome, Warning,
};
use mcp_delegator::output::values::TruncationMeta;
use mcp_delegator::spec::command_exit_codes::exit_codes;
use mcp_delegator::spec::formats::Envelope;
use mcp_delegator::spec::paging::Page;
use mcp_delegator::spec::{self, Category, CommandSpec, Shape};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::PROGRAM;

fn outcome(command: &'static CommandSpec, output: CommandOutput) -> Outcome {
    let started = Timestamp::from_millisecond(1_763_460_322_000).unwrap();
    Outcome {
        command,
        started,
        emitted: started,
        duration: Duration::from_millis(1234),
        request_id: Uuid::nil(),
        output,
        truncated: None,
    }
}

/// Renders all three envelopes, validates each against its schema, and returns them.
fn render_and_validate(outcome: &Outcome) -> [Value; 3] {
    let rendered = [
        cli_envelope::render(outcome),
        standard_envelope::render(outcome),
        tool_envelope::render(outcome, "_codex_", CallSyntax::Commands),
    ];
    for (envelope, value) in [Envelope::Agent, Envelope::Standard, Envelope::Tool].into_iter().zip(&rendered)
    {
        assert_eq!(check(envelope, outcome.command, value), Vec::<String>::new(), "{envelope:?}: {value}");
    }
    rendered
}

/// Data of any form.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
struct AnyJson(Value);

impl CommandData for AnyJson {}

#[test]
fn the_cli_envelope_schema_is_the_published_file() {
    // The published file is the contract. If this fails, restore the file instead of changing the digest.
    let digest =
        mcp_delegator::spec::paging::fingerprint(&Value::from(include_str!("../../schemas/agent.json")));
    assert_eq!(digest, "614c2046525ce08340cf6e68");
    assert_eq!(envelope_schema::agent()["required"], json!(["ok", "data", "error", "warnings", "meta"]));
}

#[test]
fn every_command_in_every_envelope_validates() {
    // `serve` writes only protocol messages to stdout.
    for spec in catalog().iter().filter(|spec| spec.path != ["serve"]) {
        for envelope in ["agent", "standard", "tool"] {
            let input = valid_input(spec);
            let mut args: Vec<String> = spec.path.iter().map(|word| (*word).to_owned()).collect();
            args.extend(["--input-json".into(), "-".into(), "--envelope".into(), envelope.into()]);
            let world = World::new(PROGRAM);
            let run = world.run_with_input(&args, input.to_string().as_bytes());
            let value = run.document();
            let exit = run.exit.unwrap().to_string();
            assert!(
                exit_codes(spec).contains_key(&exit),
                "{args:?} ended with {exit}, which it does not declare: {value}"
            );
            let exit_code = ["/meta/exit_code", "/metadata/exit_code", "/error/details/cli_exit_code"];
            let exit_code =
                exit_code.iter().find_map(|path| value.pointer(path)).cloned().unwrap_or(json!(0));
            assert_eq!(exit_code, json!(run.exit), "{args:?}");
            if envelope == "agent" {
                assert_ne!(value["error"]["code"], "UNSUPPORTED", "{args:?}: {value}");
            }
        }
    }
}

/// The minimal valid input of a command.
fn valid_input(spec: &CommandSpec) -> Value {
    let mut input: serde_json::Map<String, Value> = spec
        .inputs()
        .properties
        .iter()
        .filter(|property| property.required)
        .map(|property| {
            let value = match (property.name.as_str(), property.choices().first()) {
                (_, Some(choice)) => json!(choice),
                ("task_id", None) => json!("T-local-0123456789"),
                ("repo_url" | "repository", None) => json!("https://github.com/owner/name"),
                ("git_user_email", None) => json!("me@example.org"),
                _ => json!("text"),
            };
            (property.name.clone(), value)
        })
        .collect();
    match spec.path {
        ["local", "resume"] => drop(input.insert("thread_id".into(), json!("thread-1"))),
        // An unknown task, because it would serve otherwise.
        ["dashboard"] | [_, "wait"] => drop(input.insert("task_id".into(), json!("T-local-0123456789"))),
        _ => {}
    }
    Value::Object(input)
}

#[test]
fn every_error_code_maps_to_every_envelope() {
    let mut exits = BTreeSet::new();
    let (mut types, mut codes) = (BTreeSet::new(), BTreeSet::new());
    for code in ErrorCode::ALL {
        exits.insert(code.facts().exit);
        // The other envelopes have no error code for a partial failure; it has a test of its own.
        if *code == ErrorCode::PartialFailure {
            continue;
        }
        let error = AppError::new(*code, "It did not work.")
            .detail("more words")
            .suggest("Try this.")
            .fix_command("mcp-delegator help")
            .context("fact", 1);
        // A read-only and a writing command of different categories: the rendering of an error depends on nothing else.
        for spec in [&commands::local::status::SPEC, &commands::local::run::SPEC] {
            let [agent, standard, tool] = render_and_validate(&outcome(spec, error.clone().into()));
            assert_eq!(agent["ok"], false);
            assert_eq!(agent["meta"]["error_context"]["kind"], code.facts().kind.name());
            assert_eq!(tool["error"]["details"]["kind"], code.facts().kind.name());
            types.insert(standard["error"]["type"].as_str().unwrap().to_owned());
            codes.insert(tool["error"]["code"].as_str().unwrap().to_owned());
        }
    }
    exits.insert(ExitCode::Success);
    assert_eq!(exits.into_iter().collect::<Vec<_>>(), ExitCode::ALL, "an exit code without an error code");
    assert_eq!(types.len(), 8, "{types:?}");
    assert_eq!(codes.len(), 6, "{codes:?}");
}

#[test]
fn a_retryable_exit_code_has_no_side_effects() {
    for spec in catalog().iter() {
        let map = exit_codes(spec);
        assert_eq!(map["0"].side_effects, "complete");
        for (number, entry) in &map {
            assert!(!entry.retryable || entry.side_effects == "none", "{} {number}: {entry:?}", spec.name());
            assert!(entry.description.chars().count() <= 120);
            assert_eq!(entry.side_effects == "complete", number == "0");
        }
        assert_eq!(map["2"].side_effects, "none");
        assert!(!map["2"].retryable);
        assert!(map.get("3").is_none_or(|entry| !entry.retryable));
    }
    for code in ErrorCode::ALL {
        let facts = code.facts();
        if facts.exit == ExitCode::ArgError {
            assert_eq!(facts.side_effects, SideEffects::None, "{code:?}");
        }
    }
}

#[test]
fn retry_times_are_exact_in_milliseconds_and_rounded_up_in_seconds() {
    let mut error = AppError::new(ErrorCode::RateLimited, "Too many requests.");
    error.retry_after = Some(Duration::from_millis(1001));
    let [agent, standard, tool] = render_and_validate(&outcome(&commands::local::exec::SPEC, error.into()));
    assert_eq!(agent["error"]["retry_after"], 2);
    assert_eq!(agent["meta"]["retry_after_ms"], 1001);
    assert_eq!(standard["metadata"]["retry_after_ms"], 1001);
    assert_eq!(tool["error"]["retryable"], true);
}

#[test]
fn internal_errors_are_retryable_only_for_read_only_commands() {
    let retryable = |spec| {
        let [agent, _, tool] =
            render_and_validate(&outcome(spec, AppError::new(ErrorCode::Internal, "A bug.").into()));
        assert_eq!(agent["error"]["retryable"], tool["error"]["retryable"]);
        agent["error"]["retryable"].as_bool().unwrap()
    };
    assert!(retryable(&commands::local::status::SPEC));
    assert!(!retryable(&commands::local::exec::SPEC));
}

#[test]
fn problems_are_in_every_envelope() {
    let problems = vec![
        Problem::new(ErrorCode::InvalidValue, "mode", "must be one of a, b")
            .value(json!("c"))
            .suggest(Some("Use a.")),
        Problem::new(ErrorCode::MissingArgument, "task", "is missing"),
    ];
    let error = AppError::from_problems(problems);
    assert_eq!(error.code, ErrorCode::ArgError, "problems of two kinds have no common code");
    let [agent, standard, tool] = render_and_validate(&outcome(&commands::local::exec::SPEC, error.into()));
    assert_eq!(agent["meta"]["error_context"]["problems"].as_array().unwrap().len(), 2);
    assert_eq!(standard["error"]["details"]["field"], "mode");
    assert_eq!(standard["error"]["details"]["value"], "c");
    assert_eq!(standard["error"]["details"]["suggestion"], "Use a.");
    assert_eq!(tool["error"]["details"]["problems"][1]["field"], "task");
}

#[test]
fn a_redirect_is_in_every_envelope() {
    let error = AppError::new(ErrorCode::CommandRenamed, "It was renamed.").redirect(Redirect {
        command: "mcp-delegator run".into(),
        permanent: true,
        reason: "renamed",
    });
    let [agent, standard, tool] = render_and_validate(&outcome(&spec::ROOT, error.into()));
    assert_eq!(agent["error"]["redirect"]["command"], "mcp-delegator run");
    assert_eq!(standard["error"]["details"]["suggestion"], "mcp-delegator run");
    assert_eq!(tool["error"]["details"]["redirect"]["permanent"], true);
}

#[test]
fn a_partial_failure_follows_each_envelope_contract() {
    let mut batch = Batch::new(CallSyntax::Commands, false);
    batch.succeeded("a", json!({"state": "cancelled"}));
    batch.failed("b", AppError::new(ErrorCode::WrongState, "It has ended."));
    let result = batch.result();
    let data = commands::cancel::CancelledTasks {
        operation: "cancel",
        dry_run: false,
        count: 1,
        summary: "Cancelled 1 task; 1 failed".to_owned(),
        tasks: Vec::new(),
        batch: result,
    };
    let outcome = outcome(&commands::cancel::SPEC, batch.into_output(data));
    assert_eq!(outcome.exit(), ExitCode::PartialFailure);
    let [agent, standard, tool] = render_and_validate(&outcome);
    assert_eq!((&agent["ok"], &agent["error"]["code"]), (&json!(false), &json!("PARTIAL_FAILURE")));
    assert_eq!(agent["meta"]["failure_data"]["failed"], 1);
    assert_eq!((&standard["success"], &standard["data"]["partial_success"]), (&json!(true), &json!(true)));
    assert_eq!(standard["metadata"]["warnings"][0]["code"], "W_PARTIAL_001");
    assert_eq!((&tool["status"], &tool["meta"]["partial"]), (&json!("ok"), &json!(true)));
    assert_eq!(tool["data"]["partial_success"], true);
}

#[test]
fn a_batch_that_failed_completely_lists_its_items_in_every_envelope() {
    let mut batch = Batch::new(CallSyntax::Commands, false);
    for target in ["a", "b"] {
        batch.failed(target, AppError::new(ErrorCode::TaskNotFound, format!("There is no task {target}.")));
    }
    let result = batch.result();
    let outcome = outcome(&commands::local::wait::SPEC, batch.into_output(AnyJson(json!(result))));
    assert_eq!(outcome.exit(), ExitCode::NotFound);
    let [agent, standard, tool] = render_and_validate(&outcome);
    let results = json!(result.results);
    assert_eq!(agent["meta"]["failure_data"]["results"], results);
    assert_eq!((&standard["success"], &standard["error"]["code"]), (&json!(false), &json!("E_NOTFOUND_002")));
    assert_eq!(standard["error"]["details"]["failure_data"]["results"], results);
    assert_eq!((&tool["status"], &tool["error"]["details"]["results"]), (&json!("error"), &results));
}

#[test]
fn an_expired_wait_is_a_result_over_mcp_and_exit_14_elsewhere() {
    let data = json!({"task_id": "T-local-1", "state": "working", "progress": null});
    let outcome = outcome(
        &commands::local::wait::SPEC,
        CommandOutput::incomplete(AnyJson(data), IncompleteReason::CallExpired(None)),
    );
    assert_eq!(outcome.exit(), ExitCode::Incomplete);
    let [agent, standard, tool] = render_and_validate(&outcome);
    assert_eq!((&agent["ok"], &agent["error"]["code"]), (&json!(false), &json!("INCOMPLETE")));
    assert_eq!(agent["error"]["retryable"], true);
    assert_eq!(agent["meta"]["failure_data"]["state"], "working");
    assert_eq!(standard["error"]["code"], "E_TIMEOUT_004");
    assert_eq!((&tool["status"], &tool["meta"]["wait_expired"]), (&json!("ok"), &json!(true)));
    assert_eq!(tool["data"]["state"], "working");
}

#[test]
fn a_not_modified_response_has_no_data_in_any_envelope() {
    for spec in catalog().iter() {
        let [agent, standard, tool] = render_and_validate(&outcome(
            spec,
            CommandOutput::new(Completion::NotModified, None).fact("etag", "x"),
        ));
        assert_eq!(
            (&agent["ok"], &agent["data"], &agent["meta"]["not_modified"]),
            (&json!(true), &json!(null), &json!(true))
        );
        assert_eq!((&standard["data"], &standard["metadata"]["not_modified"]), (&json!(null), &json!(true)));
        assert_eq!((&tool["data"], &tool["meta"]["not_modified"]), (&json!({}), &json!(true)));
    }
}

#[test]
fn the_shapes_of_the_standard_envelope() {
    let data = |spec, data: Value| {
        render_and_validate(&outcome(spec, CommandOutput::done(AnyJson(data))))[1]["data"].clone()
    };
    let mut list = data(&commands::env::check::SPEC, json!({"environments": []}));
    list["page_size"].take();
    assert_eq!(
        list,
        json!({
            "environments": [], "total_count": 0, "filtered_count": 0, "page": 1, "page_size": null,
            "message": "No environments found"
        })
    );
    let version = json!({"name": "mcp-delegator", "version": "1", "envelope_version": "2"});
    assert_eq!(data(&commands::version::SPEC, version.clone()), json!({"version": version}));
    let queue = json!({"is_paused": true, "is_changed": true, "running_count": 1, "queued_count": 2});
    assert_eq!(
        data(&commands::queue::PAUSE, queue.clone()),
        json!({"action": "queue_paused", "result": queue, "duration": 1.234, "message": "queue paused"})
    );
}

#[test]
fn paging_warnings_and_truncation_are_in_every_envelope() {
    let schemas = json!({"schemas": [{"name": "a", "describes": "A"}]});
    let mut output =
        CommandOutput { shape: Some(Shape::List("schemas")), ..CommandOutput::done(AnyJson(json!(schemas))) };
    output.page = Some(Page {
        number: 2,
        size: 2,
        total: 9,
        filtered: 8,
        next_cursor: Some("abc".into()),
        list: "schemas",
        ..Page::default()
    });
    output.warnings = vec![Warning::new(WarningCode::LinesIgnored, "mind the gap")];
    let outcome = Outcome {
        truncated: Some(TruncationMeta {
            truncated: true,
            max_bytes: Some(100),
            max_characters: None,
            original_size: 1000,
        }),
        ..outcome(&commands::schema::SPEC, output)
    };
    let [agent, standard, tool] = render_and_validate(&outcome);
    assert_eq!((&agent["meta"]["cursor"], &agent["meta"]["truncated"]), (&json!("abc"), &json!(true)));
    assert_eq!((&agent["meta"]["max_bytes"], &tool["meta"]["original_size"]), (&json!(100), &json!(1000)));
    assert_eq!(
        (&standard["metadata"]["truncated"], &standard["metadata"]["max_bytes"]),
        (&json!(true), &json!(100))
    );
    assert_eq!(agent["warnings"], json!(["W_EVENTS_001: mind the gap"]));
    assert_eq!(agent["meta"]["warning_details"][0]["code"], "W_EVENTS_001");
    assert_eq!((&standard["data"]["page"], &standard["data"]["total_count"]), (&json!(2), &json!(9)));
    assert_eq!(standard["metadata"]["warnings"][0]["message"], "mind the gap");
    assert_eq!((&tool["meta"]["next_cursor"], &tool["meta"]["total"]), (&json!("abc"), &json!(9)));
}

#[test]
fn the_agents_exit_code_and_ours_have_different_keys() {
    let data = sample("wait_result")["data"].clone();
    let mut output = CommandOutput::done(AnyJson(data));
    output.child = Some(ChildExit { code: Some(3) });
    for (key, value) in sample("wait_result")["meta"].as_object().unwrap() {
        output.facts.insert(key.clone(), value.clone());
    }
    output.facts.shift_remove("exit_code");
    let [agent, standard, tool] = render_and_validate(&outcome(&commands::local::wait::SPEC, output));
    assert_eq!((&agent["meta"]["exit_code"], &agent["data"]["agent_exit_code"]), (&json!(0), &json!(3)));
    assert_eq!(standard["data"]["task"]["agent_exit_code"], 3);
    assert_eq!(tool["meta"]["exit_code"], 3);
}

/// An example from the published contract, verbatim.
fn sample(name: &str) -> Value {
    let path = workspace().join("crates/mcp-delegator/tests/samples").join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

#[test]
fn the_published_examples_validate() {
    for name in [
        "execution_ack",
        "wait_result",
        "status_snapshot",
        "result_set",
        "result_set_failed",
        "list_environments",
        "github_setup",
        "cleanup_registry",
        "timeout",
    ] {
        let envelope = sample(name);
        let category = Category::ALL.into_iter().find(|c| envelope["tool_category"] == c.name()).unwrap();
        assert_eq!(violations(&envelope_schema::tool(category), &envelope), Vec::<String>::new(), "{name}");
        if envelope["status"] == "error" {
            assert_eq!(violations(&envelope_schema::tool_error(), &envelope), Vec::<String>::new(), "{name}");
        }
    }
}

#[test]
fn the_schemas_reject_invalid_envelopes() {
    let refused = |name: &str, change: fn(&mut Value)| {
        let mut envelope = sample(name);
        change(&mut envelope);
        let category = Category::ALL.into_iter().find(|c| envelope["tool_category"] == c.name()).unwrap();
        assert!(!violations(&envelope_schema::tool(category), &envelope).is_empty(), "{name}: {envelope}");
    };
    refused("execution_ack", |envelope| drop(envelope.as_object_mut().unwrap().remove("meta")));
    refused("execution_ack", |envelope| drop(envelope.as_object_mut().unwrap().remove("data")));
    refused("execution_ack", |envelope| envelope["data"]["capability"] = json!("sideways"));
    refused("execution_ack", |envelope| drop(envelope["data"].as_object_mut().unwrap().remove("task_id")));
    refused("execution_ack", |envelope| envelope["schema_id"] = json!("codex/v3.6/error/v1"));
    refused("status_snapshot", |envelope| envelope["data"]["tasks"] = json!([]));
    refused("wait_result", |envelope| drop(envelope["meta"].as_object_mut().unwrap().remove("completed_ts")));
    refused("wait_result", |envelope| envelope["data"]["state"] = json!("canceled"));
    refused("result_set", |envelope| drop(envelope["data"].as_object_mut().unwrap().remove("metadata")));
    refused("timeout", |envelope| envelope["data"] = json!({}));
    refused("timeout", |envelope| envelope["error"]["code"] = json!("OOPS"));
}

/// Each answer schema must refuse wrong answers, or validating against it would mean nothing.
#[test]
fn the_answer_schemas_reject_wrong_data() {
    let status = json!({
        "summary": {"running": 0, "queued": 0, "recently_completed": 0},
        "tasks": [], "queue": [], "recently_completed": []
    });
    let facts = json!({"snapshot_ts": "2026-01-01T00:00:00.000Z", "total": 0});
    let output = CommandOutput::done(AnyJson(json!(status))).with_facts(facts);
    let rendered = render_and_validate(&outcome(&commands::local::status::SPEC, output));
    assert!(
        rendered[2]["data"].get("tasks").is_none(),
        "the tool envelope omits empty lists: {}",
        rendered[2]
    );
    let refused = |envelope: Envelope, answer: &Value, path: &str, value: Value| {
        let mut answer = answer.clone();
        *answer.pointer_mut(path).unwrap() = value;
        let schema = answer_schema(envelope, &commands::local::status::SPEC).unwrap();
        assert!(!violations(&schema, &answer).is_empty(), "{envelope:?} {path}: {answer}");
    };
    let [agent, standard, tool] = &rendered;
    refused(Envelope::Agent, agent, "/data", json!({}));
    refused(Envelope::Agent, agent, "/data", json!(null));
    refused(Envelope::Agent, agent, "/data/summary/running", json!(null));
    refused(Envelope::Agent, agent, "/meta/timestamp", json!("yesterday"));
    refused(Envelope::Standard, standard, "/data", json!({"snapshot": {}}));
    refused(Envelope::Standard, standard, "/data/snapshot/tasks", json!(null));
    refused(Envelope::Standard, standard, "/metadata/exit_code", json!("0"));
    refused(Envelope::Tool, tool, "/data", json!({"summary": {}}));
    refused(Envelope::Tool, tool, "/data", json!({"summary": {"running": 0, "queued": 0}, "tasks": []}));
}

#[test]
fn failure_data_has_the_published_shape() {
    let [agent, standard, _] = render_and_validate(&outcome(
        &commands::version::SPEC,
        CommandOutput::failed(
            AppError::new(ErrorCode::WarningsAsErrors, "A warning."),
            AnyJson(json!({"name": "mcp-delegator", "version": "1", "envelope_version": "2"})),
        ),
    ));
    assert_eq!(agent["meta"]["failure_data"]["version"], "1");
    assert_eq!(standard["error"]["details"]["failure_data"]["version"], "1");
    let mut wrong = agent;
    wrong["meta"]["failure_data"]["version"].take();
    let schema = answer_schema(Envelope::Agent, &commands::version::SPEC).unwrap();
    assert!(!violations(&schema, &wrong).is_empty(), "{wrong}");
}

#[test]
fn the_error_reference_is_up_to_date() {
    assert_up_to_date("docs/errors.md", &crate::reference::errors());
}
