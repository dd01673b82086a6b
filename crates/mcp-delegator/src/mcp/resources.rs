//! MCP resources: the published schemas, environment templates, and tasks with their events.

use std::collections::BTreeMap;

use delegator_registry::{Filter, TaskFile};
use delegator_transcript::without_repeated_keys;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde::Serialize;
use serde_json::json;

use crate::commands::cloud::environment_template::{self, Template};
use crate::commands::context::Context;
use crate::commands::diff::find_diff;
use crate::commands::local::tasks::engine;
use crate::commands::schema::{SCHEMA_URI, find_schema};
use crate::error::{AppError, ErrorCode};
use crate::output::data::conversation::Conversation;
use crate::output::data::remote::shorten;
use crate::output::data::status::RunningTask;
use crate::output::data::task::TaskResult;
use crate::output::documents::document::pretty;
use crate::output::values::UtcTime;
use crate::spec::Category;

const JSON: &str = "application/json";
const JSON_SCHEMA: &str = "application/schema+json";
const TEMPLATE: &str = "codex://environment-template/";
const TASK: &str = "codex://task/";
const EVENTS: &str = "/events";
const DIFF: &str = "/diff";
const DIFF_TYPE: &str = "text/x-diff";
const MAX_LISTED_TASKS: u32 = 50;
/// The last bytes of the events of a task that are returned.
const MAX_EVENT_BYTES: usize = 1 << 20;
/// A longer diff is shortened; its files share the space.
const MAX_DIFF_BYTES: usize = 1 << 20;

pub fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str, kind: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(kind)
    };
    vec![
        template(
            "codex://schema/v3.6/{name}/v1",
            "schema",
            "An envelope, or the inputs and answers of a command such as local.status",
            JSON,
        ),
        template(
            "codex://environment-template/{name}",
            "environment_template",
            "An environment template with its scripts",
            JSON,
        ),
        template("codex://task/{id}", "task", "A task and its results", JSON),
        template(
            "codex://task/{id}/events",
            "task_events",
            "The events of a task's agent, one per line",
            "application/x-ndjson",
        ),
        template("codex://task/{id}/diff", "task_diff", "What a task changed, as a unified diff", DIFF_TYPE),
    ]
}

pub fn list(context: &Context<'_>) -> Vec<Resource> {
    let resource = |uri: String, name: &str, about: String, kind: &str| {
        Resource::new(uri, name).with_description(about).with_mime_type(kind)
    };
    let schema = |name: &str, about: String| {
        resource(format!("{SCHEMA_URI}{name}/v1"), &format!("schema_{name}"), about, JSON_SCHEMA)
    };
    let envelopes =
        Category::NAMES.into_iter().map(|name| schema(name, format!("Envelope of {name} responses")));
    let error = schema("error", "Envelope of every error".to_owned());
    let templates = environment_template::ALL.iter().map(|template| {
        resource(format!("{TEMPLATE}{}", template.name), template.name, template.about.to_owned(), JSON)
    });
    let newest = engine(context)
        .and_then(|engine| Ok(engine.results().newest(&Filter::default(), MAX_LISTED_TASKS)?));
    // Without a registry there are no tasks, but the other resources exist. A tool call reports the problem.
    let tasks = newest.unwrap_or_default().into_iter().map(|task| {
        let about = format!("{}: {}", task.state.public_name(), task.title);
        resource(format!("{TASK}{}", task.id), task.id.as_str(), about, JSON)
    });
    envelopes.chain([error]).chain(templates).chain(tasks).collect()
}

pub fn complete_task_ids(context: &Context<'_>, prefix: &str) -> Result<Vec<String>, AppError> {
    let newest = engine(context)?.results().newest(&Filter::default(), 1_000)?;
    let ids = newest.into_iter().map(|task| task.id.to_string());
    Ok(ids.filter(|id| id.starts_with(prefix)).take(100).collect())
}

pub fn read(context: &Context<'_>, uri: &str) -> Result<ResourceContents, AppError> {
    if uri.starts_with(SCHEMA_URI) {
        let schema = find_schema(context, uri)?;
        // A command has several schemas, so the document that contains them is not one itself.
        let kind = if schema.get("$schema").is_some() { JSON_SCHEMA } else { JSON };
        return Ok(contents(uri, kind, pretty(&schema)));
    }
    if let Some(name) = uri.strip_prefix(TEMPLATE) {
        let template = Template::named(name).ok_or_else(|| unknown(uri))?;
        return Ok(contents(uri, JSON, pretty(&template.to_value())));
    }
    let path = uri.strip_prefix(TASK).ok_or_else(|| unknown(uri))?;
    let engine = engine(context)?;
    let find_task = |id: &str| engine.results().task(&engine.results().resolve(id)?);
    if let Some(id) = path.strip_suffix(EVENTS) {
        let task = find_task(id)?;
        engine.remote().fetch_events(&task)?;
        let stored = engine.results().read_stored(&task.id, TaskFile::Events)?;
        let stored = String::from_utf8_lossy(last_lines(&stored));
        let text: String = stored.split_inclusive('\n').map(without_repeated_keys).collect();
        return Ok(contents(uri, "application/x-ndjson", text));
    }
    if let Some(id) = path.strip_suffix(DIFF) {
        let task = find_task(id)?;
        let diff = find_diff(context, &engine, &task, 1)?;
        let text = String::from_utf8_lossy(&diff.text).into_owned();
        return Ok(contents(uri, DIFF_TYPE, shorten(&text, MAX_DIFF_BYTES).unwrap_or(text)));
    }
    let task = find_task(path)?;
    let files = engine.results().files(&task.id)?;
    let report = if task.state.is_terminal() {
        engine.results().mark_read(&task.id)?;
        ReportedTask::Ended(Box::new(TaskResult::of(
            &task,
            &files,
            None,
            context.config.settings.max_mode,
            context.screen.presentation.call_syntax(),
        )))
    } else {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let conversation = Conversation::of(&files.open_questions, &files.messages);
        let running = delegator_engine::RunningTask { task: (&task).into(), snapshot: files.snapshot };
        ReportedTask::Running(Box::new(RunningTask::of(running, conversation, now_ms)))
    };
    let resource = TaskResource {
        report,
        title: &task.title,
        working_dir: &task.working_dir,
        mode: task.mode.name(),
        labels: &task.labels,
        created_ts: UtcTime::from_ms(task.created_at_ms),
    };
    Ok(contents(uri, JSON, pretty(&json!(resource))))
}

#[derive(Debug, Serialize)]
struct TaskResource<'a> {
    #[serde(flatten)]
    report: ReportedTask,
    title: &'a str,
    working_dir: &'a str,
    mode: &'static str,
    labels: &'a BTreeMap<String, String>,
    created_ts: UtcTime,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ReportedTask {
    Ended(Box<TaskResult>),
    Running(Box<RunningTask>),
}

/// The last `MAX_EVENT_BYTES`, from the beginning of a line.
fn last_lines(stored: &[u8]) -> &[u8] {
    let from = stored.len().saturating_sub(MAX_EVENT_BYTES);
    if from == 0 {
        return stored;
    }
    let begin = memchr::memchr(b'\n', &stored[from..]).map_or(stored.len(), |at| from + at + 1);
    &stored[begin..]
}

fn contents(uri: &str, kind: &str, text: String) -> ResourceContents {
    ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(kind.to_owned()),
        text,
        meta: None,
    }
}

fn unknown(uri: &str) -> AppError {
    AppError::new(ErrorCode::NotFound, format!("There is no resource {uri}.")).context("uri", uri)
}
