//! Output of any size, within the limits of tools and of the command line.

use std::sync::Arc;

use delegator_domain::redact::Redactor;
use delegator_domain::warning_code::WarningCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::commands::cloud::LIST_ENVIRONMENTS;
use crate::commands::local::{results, run, wait};
use crate::error::{AppError, ErrorCode, Problem};
use crate::output::data::events::{EventsPage, LONG_BYTES, cursor_query};
use crate::output::data::files::FileOperations;
use crate::output::data::output::{self, MARK};
use crate::output::data::registry::{EnvironmentData, EnvironmentList};
use crate::output::data::stored_task::RunTimes;
use crate::output::data::task::{
    EndedItem, Metadata, ResultSet, TaskReport, TaskResult, WaitedTask, WaitedTasks,
};
use crate::output::outcome::CallClock;
use crate::output::truncation::*;
use crate::output::values::UtcTime;
use crate::spec::ServedTools;
use crate::spec::formats::Format;
use crate::spec::paging::{Paging, cursor_positions, paginate};

const SECRET: &str = "hunter-2-hunter-2";

fn served() -> Arc<ServedTools> {
    let names = ["local_wait", "local_results", "local_resume"].map(str::to_owned).to_vec();
    Arc::new(ServedTools { prefix: "_codex_".to_owned(), names })
}

fn printer() -> Printer {
    Printer::new(Redactor::builder().secret(SECRET).build())
}

fn tool_limit(printer: &Printer, max_size: usize) -> SizeLimit<'_> {
    SizeLimit { max_size, unit: SizeUnit::Characters, printer }
}

/// The data of `results`.
fn result(message: &str, streams: (&str, &str), events: Vec<Value>, files: usize) -> ResultSet {
    let modified_files = (0..files).map(|at| format!("src/a/rather/long/path/{at}.rs")).collect();
    let sizes = (streams.0.len() as u64, streams.1.len() as u64);
    let report = TaskReport {
        final_message: Some(message.to_owned()),
        metadata: Metadata {
            duration: 1,
            file_operations: FileOperations { modified_files, lines_changed: 1, ..FileOperations::default() },
            ..Metadata::default()
        },
        ..TaskReport::default()
    };
    ResultSet {
        result: TaskResult {
            task_id: "T-1".to_owned(),
            state: "completed",
            summary: "Done".to_owned(),
            working_dir: "/p".to_owned(),
            sandbox: None,
            remote: None,
            diff: None,
            follows: None,
            followers: Vec::new(),
            group: None,
            report,
            output: output::included(streams.0, streams.1, 65_536, sizes),
        },
        duration_seconds: 1,
        completed_ts: UtcTime::from_ms(0),
        events: EventsPage {
            included: true,
            count: events.len() as u64,
            reason: None,
            items: Some(events),
            next_cursor: None,
        },
    }
}

fn output_size(output: &Value) -> usize {
    ["stdout", "stderr"].iter().filter_map(|stream| output[*stream].as_str()).map(str::len).sum()
}

fn event(at: usize, length: usize) -> Value {
    let item = json!({"id": format!("item_{at}"), "type": "agent_message", "text": "x".repeat(length)});
    json!({"type": "item.completed", "item": item})
}

fn truncate_output(output: CommandOutput, format: Format, max_size: usize) -> (Outcome, String) {
    let (printer, command) = (printer(), &results::SPEC);
    let presentation = Presentation::for_tool(format, &served());
    let outcome = CallClock::begin().end(command, output.fact("count", 1));
    let (outcome, rendered) = truncate_to_fit(outcome, &presentation, tool_limit(&printer, max_size));
    (outcome, printer.redact(&rendered.body))
}

fn data(outcome: &Outcome) -> Value {
    outcome.data().unwrap().to_json()
}

fn warning(outcome: &Outcome) -> &str {
    outcome
        .output
        .warnings
        .iter()
        .find(|warning| warning.code == WarningCode::Truncated)
        .unwrap()
        .message
        .as_str()
}

#[test]
fn stdout_and_stderr_share_the_budget_equally() {
    let (out, err) = ("x".repeat(100_000), "y".repeat(100_000));
    for format in [Format::Json, Format::Markdown] {
        let whole = result("Done.", (&out, &err), vec![event(1, 5)], 2);
        let (outcome, text) = truncate_output(CommandOutput::done(whole.clone()), format, 48_000);
        assert!((47_900..=48_000).contains(&text.chars().count()), "{}", text.chars().count());
        let truncated_data = data(&outcome);
        let output = &truncated_data["output"];
        let budget = output["max_bytes"].as_u64().unwrap();
        for stream in ["stdout", "stderr"] {
            let length = output[stream].as_str().unwrap().len() as u64;
            assert!(length.abs_diff(budget / 2) <= 1, "{stream}: {length} of {budget}");
        }
        assert_eq!((&output["truncated"], &output["original_size"]), (&json!(true), &json!(200_000)));
        assert_eq!(data(&outcome)["events"], json!(whole.events));
        assert!(warning(&outcome).ends_with(" max_output_bytes returns more."), "{}", warning(&outcome));
    }
}

#[test]
fn tool_limits_count_characters() {
    let whole = result("Done.", (&"字".repeat(60_000), ""), Vec::new(), 0);
    let (outcome, text) = truncate_output(CommandOutput::done(whole), Format::Markdown, 20_000);
    assert!((19_900..=20_000).contains(&text.chars().count()), "{}", text.chars().count());
    assert!(data(&outcome)["output"]["max_bytes"].as_u64().unwrap() > 50_000);
}

#[test]
fn the_cursor_of_a_truncated_list_continues_after_the_last_row() {
    let environment = |at: usize| EnvironmentData {
        id: format!("env-{at}."),
        name: format!("Environment {at}"),
        repository: "https://github.com/example/project".to_owned(),
        tech_stack: "python".to_owned(),
        provider: "codex",
        created_at: None,
    };
    let page = |cursor: Option<&str>| {
        let paging = Paging { limit: None, cursor: cursor.map(str::to_owned) };
        paginate((0..200).map(environment).collect(), &paging, &json!("environments")).unwrap()
    };
    let printer = printer();
    for format in [Format::Json, Format::Markdown] {
        let (environments, first) = page(None);
        let output = CommandOutput::done(EnvironmentList { environments }).with_page("environments", first);
        let outcome = CallClock::begin().end(&LIST_ENVIRONMENTS, output.fact("count", 200));
        let presentation = Presentation::for_tool(format, &served());
        let (outcome, rendered) = truncate_to_fit(outcome, &presentation, tool_limit(&printer, 6_000));
        let shown = rendered.body.matches("env-").count();
        assert!(shown > 10 && rendered.body.chars().count() <= 6_000, "{}", rendered.body);
        let (rest, _) = page(outcome.output.next_cursor());
        assert_eq!(rest[0].id, format!("env-{shown}."), "{format:?}");
    }
}

#[test]
fn typed_data_that_cannot_fit_is_left_out() {
    let (printer, name) = (printer(), "n".repeat(5_000));
    for format in [Format::Json, Format::Markdown] {
        let environment = EnvironmentData {
            id: "env".to_owned(),
            name: name.clone(),
            repository: name.clone(),
            tech_stack: name.clone(),
            provider: "codex",
            created_at: None,
        };
        let output = CommandOutput::done(EnvironmentList { environments: vec![environment] });
        let outcome = CallClock::begin().end(&LIST_ENVIRONMENTS, output.fact("count", 1));
        let presentation = Presentation::for_tool(format, &served());
        for max_size in [3_000, 900] {
            let limit = tool_limit(&printer, max_size);
            let (_, rendered) = truncate_to_fit(outcome.clone(), &presentation, limit);
            let size = rendered.body.chars().count();
            assert!(size <= max_size, "{format:?}: {size} characters of {max_size}: {}", rendered.body);
        }
    }
}

#[test]
fn long_events_are_always_shortened_for_tools() {
    let whole = result("Done.", ("", ""), vec![event(1, 5), event(2, LONG_BYTES)], 0);
    let (outcome, _) = truncate_output(CommandOutput::done(whole.clone()), Format::Json, 48_000);
    let shortened = data(&outcome);
    let items = &shortened["events"]["items"];
    assert_eq!((&items[0], &items[1]["truncated"]), (&event(1, 5), &json!(true)));
    assert!(outcome.truncated.is_none() && outcome.output.warnings.is_empty());
    // On the command line long events are not shortened.
    let printer = printer();
    let limit = SizeLimit { max_size: 100_000, unit: SizeUnit::Bytes, printer: &printer };
    let output = CommandOutput::done(whole.clone()).fact("count", 1);
    let presentation = Presentation::for_tool(Format::Json, &served());
    let (outcome, _) = truncate_to_fit(CallClock::begin().end(&results::SPEC, output), &presentation, limit);
    assert_eq!(data(&outcome)["events"], json!(whole.events));
}

#[test]
fn newest_events_stay_and_the_cursor_leads_to_older_ones() {
    let events: Vec<Value> = (0..50).map(|at| event(at, 1_500)).collect();
    let (outcome, _) = truncate_output(
        CommandOutput::done(result("Done.", ("lost", ""), events.clone(), 0)),
        Format::Json,
        48_000,
    );
    let truncated_data = data(&outcome);
    let events_data = &truncated_data["events"];
    let items = events_data["items"].as_array().unwrap();
    assert!((25..35).contains(&items.len()), "{}", items.len());
    assert_eq!(items.as_slice(), &events[50 - items.len()..]);
    let cursor = events_data["next_cursor"].as_str().unwrap();
    let [position] = cursor_positions("events_cursor", cursor, &cursor_query("T-1")).unwrap();
    assert_eq!(usize::try_from(position).unwrap(), 50 - items.len());
    assert_eq!(data(&outcome)["final_message"], "Done.");
    assert!(warning(&outcome).contains("events_cursor returns the events before these"));
}

#[test]
fn errors_are_truncated_to_the_limit() {
    let printer = printer();
    let presentation = Presentation::for_tool(Format::Json, &served());
    let fit = |error: AppError, max_size: usize| {
        let outcome = CallClock::begin().end(&run::SPEC, error.into());
        let (outcome, rendered) = truncate_to_fit(outcome, &presentation, tool_limit(&printer, max_size));
        assert!(rendered.body.chars().count() <= max_size, "{}", rendered.body.len());
        (outcome, serde_json::from_str::<Value>(&rendered.body).unwrap())
    };
    let events: Vec<Value> = (0..50).map(|at| event(at, 3_000)).collect();
    let output = format!("{}the end", "字".repeat(20_000));
    let error = AppError::new(ErrorCode::TimeoutIdle, "Task exceeded idle timeout.")
        .context("partial_results", json!({"last_events": events, "last_output": output}))
        .context("task_id", "T-1");
    let (_, envelope) = fit(error, 10_000);
    let details = &envelope["error"]["details"];
    assert_eq!(details["task_id"], "T-1");
    let partial = &details["partial_results"];
    assert_eq!(partial["last_events"].as_array().unwrap().len(), 50);
    assert_eq!(partial["last_events"][49]["id"], "item_49");
    let last = partial["last_output"].as_str().unwrap();
    assert!(last.starts_with("[truncated] ") && last.ends_with("the end"), "{last}");
    assert_eq!(
        (&envelope["meta"]["truncated"], &envelope["meta"]["max_characters"]),
        (&json!(true), &json!(10_000))
    );

    let problem = |at: usize| Problem::new(ErrorCode::UnknownFlag, format!("key_{at}"), "is not an input");
    let (outcome, envelope) = fit(AppError::from_problems((0..2_000).map(problem).collect()), 10_000);
    let problem_count = envelope["error"]["details"]["problems"].as_array().unwrap().len();
    assert!((50..150).contains(&problem_count), "{problem_count}");
    assert!(!warning(&outcome).contains("max_output_bytes"), "run has no such input");
}

#[test]
fn every_task_of_several_retains_its_message() {
    let task = |at: usize| {
        let message = format!("{at}: {}", "m".repeat(7_000));
        let ResultSet { result, .. } = result(&message, (&"o".repeat(30_000), ""), Vec::new(), 3);
        let times = RunTimes { started_ms: 0, ended_ms: 1 }.into();
        WaitedTask::Ended(Box::new(EndedItem { result, times, agent_exit_code: Some(0) }))
    };
    let output = CommandOutput::done(WaitedTasks { tasks: (0..5).map(task).collect(), batch: None });
    let (printer, presentation) = (printer(), Presentation::for_tool(Format::Json, &served()));
    let fit = |max_size: usize| {
        let outcome = CallClock::begin().end(&wait::SPEC, output.clone());
        let (outcome, rendered) = truncate_to_fit(outcome, &presentation, tool_limit(&printer, max_size));
        assert!(rendered.body.chars().count() <= max_size);
        data(&outcome)["tasks"].as_array().unwrap().clone()
    };
    for task in fit(48_000) {
        assert!(task["final_message"].as_str().unwrap().len() > 7_000);
        let output = &task["output"];
        assert!(output["max_bytes"].as_u64().unwrap() >= 1_000 && output["truncated"] == true, "{output}");
    }
    let tasks = fit(20_000);
    assert_eq!(tasks.len(), 5);
    for task in tasks {
        let message = task["final_message"].as_str().unwrap();
        assert!((2_000..4_000).contains(&message.len()) && message.contains(MARK), "{}", message.len());
    }
}

/// Texts that grow when they are escaped, fenced or cleaned, and some that do not.
fn text(longest: usize) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["x", "\"", "\n", "字", "\u{1}", "```\n", "\u{202e}", "é", SECRET]);
    (piece, 0..longest).prop_map(|(piece, count)| piece.repeat(count))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_output_fits_and_truncation_is_marked(
        (out, err, message) in (text(12_000), text(12_000), text(3_000)),
        lengths in prop::collection::vec(0usize..4_000, 0..50),
        (files, max_size, is_json) in (0usize..300, 6_000usize..40_000, any::<bool>()),
    ) {
        let events: Vec<Value> = lengths.iter().enumerate().map(|(at, length)| event(at, *length)).collect();
        let whole = result(&message, (&out, &err), events.clone(), files);
        let format = if is_json { Format::Json } else { Format::Markdown };
        let (outcome, text) = truncate_output(CommandOutput::done(whole.clone()), format, max_size);
        let size = text.chars().count();
        prop_assert!(size <= max_size, "{} characters of {}", size, max_size);
        let truncated = data(&outcome);
        let items = truncated["events"]["items"].as_array().unwrap();
        if outcome.truncated.is_none() {
            prop_assert_eq!(&truncated["output"], &json!(whole.result.output));
            prop_assert_eq!(&truncated["metadata"], &json!(whole.result.report.metadata));
            prop_assert_eq!(items.len(), events.len());
        }
        // The newest events, in their order, each complete or shortened.
        for (item, event) in items.iter().zip(&events[events.len() - items.len()..]) {
            let size = event.to_string().len();
            let short = json!({
                "type": event["type"], "id": event["item"]["id"], "truncated": true, "size": size
            });
            prop_assert_eq!(item, if size > LONG_BYTES { &short } else { event });
        }
        let output = &truncated["output"];
        prop_assert_eq!(output["truncated"] == true, output_size(output) < out.len() + err.len());
        prop_assert!(output_size(output) as u64 <= output["max_bytes"].as_u64().unwrap());
        let dropped = events.len() - items.len();
        prop_assert_eq!(truncated["events"].get("next_cursor").is_some(), dropped > 0);
        if truncated["final_message"] != message {
            prop_assert!(truncated["final_message"].as_str().unwrap().contains(MARK));
            let smallest = (0, events.len().min(1));
            prop_assert_eq!((output_size(output), items.len()), smallest, "the message is truncated last");
        }
    }

    #[test]
    fn any_failure_fits(detail in text(10_000), output in text(10_000), is_json in any::<bool>()) {
        let printer = printer();
        let error = AppError::new(ErrorCode::AgentFailed, "The agent reported an error.")
            .context("agent_message", detail.clone())
            .context("partial_results", json!({"last_events": [], "last_output": output}))
            .detail(detail);
        let data = result("Done.", (&output, ""), Vec::new(), 3);
        let output = CommandOutput::failed(error, data);
        let presentation = Presentation::for_tool(if is_json { Format::Json } else { Format::Markdown }, &served());
        let (_, rendered) = truncate_to_fit(CallClock::begin().end(&run::SPEC, output), &presentation, tool_limit(&printer, 8_000));
        prop_assert!(printer.redact(&rendered.body).chars().count() <= 8_000);
    }
}
