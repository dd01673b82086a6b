//! `local results`: the results of a finished task.
//!
//! The data comes from the stored record of the run. An unfinished task is an error that suggests `wait`.

use delegator_domain::task::GroupId;
use delegator_engine::{Target, TaskFiles};
use delegator_registry::{LastLines, TaskFile};
use delegator_transcript::without_repeated_keys;

use crate::commands::local::attempts::compare;
use crate::commands::local::tasks::task_result;
use crate::commands::prelude::*;
use crate::output::data::events::EventsPage;
use crate::output::data::group::GroupData;
use crate::output::data::stored_task::RunTimes;
use crate::output::data::task::{ResultMeta, ResultSet, ResultsData};
use crate::output::data::{events, stored_task as task_data, warnings};
use crate::spec::paging::{cursor_positions, position_cursor};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Results {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Include output (always if failed)
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::SelfExplanatory]))]
    pub include_output: bool,
    /// Last 50 events
    #[serde(default)]
    pub include_events: bool,
    /// Output limit
    #[serde(default = "super::output_budget")]
    #[schemars(range(min = 1024, max = 1_048_576), extend("x-markers" = [Marker::SelfExplanatory]))]
    pub max_output_bytes: u32,
    /// Older events: events.next_cursor
    #[schemars(length(min = 1, max = 512))]
    pub events_cursor: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Like wait, with output and events on request.",
    category: Category::ResultSet,
    shape: Shape::Show("task"),
    other_shape: Some(Shape::Show("group")),
    toolset: Toolset::Local,
    config: ConfigUse::ValidPart,
    failures: &[ErrorCode::NotReady],
    ..CommandSpec::read_only::<Results, ResultsData>(
        &["local", "results"],
        "Show the result of a finished task",
    )
};

const MAX_EVENTS: usize = 50;

pub fn run(context: &Context<'_>, input: Results) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = match engine.results().resolve_target(input.task.task_id.as_str())? {
        Target::Task(id) => id,
        Target::Group(group) => return group_output(context, &engine, &group),
    };
    let task = ended(engine.results().task(&id)?)?;
    let files = engine.results().files(&task.id)?;
    let events = events_page(&engine, &task, &files, &input)?;
    let times = RunTimes::of(&task);
    let results = ResultSet {
        result: task_result(context, &engine, &task, &files, input.include_output, input.max_output_bytes)?,
        duration_seconds: times.duration_seconds(),
        completed_ts: UtcTime::from_ms(times.ended_ms),
        events,
    };
    let output = CommandOutput::done(results).with_facts(ResultMeta { count: 1 });
    let output = output.warn(warnings::for_task(&task, &files)).warn(mark_read(&engine, &task.id));
    Ok(CommandOutput { child: task_data::child_exit(&task), ..output })
}

fn group_output(context: &Context<'_>, engine: &Engine, group: &GroupId) -> Result<CommandOutput, AppError> {
    let compared = compare(context, engine, group)?;
    let count = compared.attempts.len() as u64;
    let output = CommandOutput::done(GroupData::of_compared(group, &compared))
        .with_facts(ResultMeta { count })
        .warn(compared.attempts.iter().filter_map(|attempt| mark_read(engine, &attempt.task.id)));
    Ok(CommandOutput { shape: Some(Shape::Show("group")), ..output })
}

fn events_page(
    engine: &Engine,
    task: &Task,
    files: &TaskFiles,
    input: &Results,
) -> Result<EventsPage, AppError> {
    let count = files.record.as_ref().map(|record| record.report.counts.lines);
    if !input.include_events && input.events_cursor.is_none() {
        let reason = Some("Events excluded by default (use include_events=true)");
        let count = count.unwrap_or(0);
        return Ok(EventsPage { included: false, count, reason, items: None, next_cursor: None });
    }
    engine.remote().fetch_events(task)?;
    let query = events::cursor_query(task.id.as_str());
    let until = match &input.events_cursor {
        Some(cursor) => {
            let [position] = cursor_positions("events_cursor", cursor, &query)?;
            u64::try_from(position).unwrap_or(0)
        }
        None => u64::MAX,
    };
    let LastLines { lines, first, total } = engine
        .results()
        .read_dir(&task.id, |dir| dir.read_last_lines(TaskFile::Events, until, MAX_EVENTS))?;
    // A line that is not JSON is returned as a string.
    let items: Vec<Value> = lines
        .iter()
        .map(|line| {
            let text = String::from_utf8_lossy(line);
            serde_json::from_str(&without_repeated_keys(&text)).unwrap_or_else(|_| text.into())
        })
        .collect();
    Ok(EventsPage {
        included: true,
        count: count.unwrap_or(total),
        reason: None,
        items: Some(items),
        next_cursor: (first > 0).then(|| position_cursor([i64::try_from(first).unwrap_or(i64::MAX)], &query)),
    })
}
