//! `GET /tasks`: the tasks that a person looks at, filtered and paged. Older ones are found by `GET /history`.

use delegator_domain::attention::Section;
use delegator_engine::{LiveState, LiveTask};
use jiff::Timestamp;
use schemars::{Schema, SchemaGenerator};

use crate::commands::inputs::choices;
use crate::commands::prelude::*;
use crate::output::data::live_task::{LiveOverallData, LiveTaskData};
use crate::output::data::task_line::Clock;
use crate::spec::paging::{Paging, paginate};

fn sections(_: &mut SchemaGenerator) -> Schema {
    choices(Section::NAMES)
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Tasks {
    /// Only tasks that a person looks for there; a task of a group or chain is where that is
    #[serde(default)]
    #[schemars(schema_with = "sections", extend("default" = null))]
    pub section: Option<String>,
    /// Only tasks in or below this directory
    #[schemars(length(min = 1, max = 4096))]
    pub repo: Option<String>,
    /// Only tasks of this agent
    #[schemars(length(min = 1, max = 64))]
    pub agent: Option<String>,
    /// Only tasks with these labels
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub label: BTreeMap<String, String>,
    /// Only tasks with this text in their id, title, question or activity
    #[schemars(length(min = 1, max = 1000))]
    pub q: Option<String>,
    #[serde(flatten)]
    pub paging: Paging,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskList {
    /// Running ones, queued ones, then ended ones: the unread and those of the last day.
    pub tasks: Vec<LiveTaskData>,
    pub overall: LiveOverallData,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("tasks"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<Tasks, TaskList>(&["tasks"], "List the tasks that a person looks at")
};

impl Tasks {
    fn includes(&self, task: &LiveTaskData) -> bool {
        let is_below = |dir: &String| Path::new(&task.task.working_dir).starts_with(dir);
        let has_text = |text: &String| {
            let text = text.to_lowercase();
            [&task.task.title, &task.line, &task.task.task_id]
                .iter()
                .any(|shown| shown.to_lowercase().contains(&text))
        };
        let section = task.submission_section.unwrap_or(task.task.section);
        self.section.as_ref().is_none_or(|wanted| wanted == section)
            && self.repo.as_ref().is_none_or(is_below)
            && self.agent.as_ref().is_none_or(|agent| *agent == task.agent)
            && self.label.iter().all(|(key, value)| task.task.labels.get(key) == Some(value))
            && self.q.as_ref().is_none_or(has_text)
    }
}

impl Tasks {
    pub fn is_filtered(&self) -> bool {
        let given = [&self.section, &self.repo, &self.agent, &self.q];
        given.iter().any(|filter| filter.is_some()) || !self.label.is_empty()
    }

    /// The tasks of all pages.
    pub fn select<'a>(&self, state: &'a LiveState, context: &Context<'_>) -> Vec<&'a LiveTask> {
        let variables = variables(context);
        let clock = Clock { now_ms: Timestamp::now().as_millisecond(), variables: &variables };
        let is_paused = state.overall.is_queue_paused;
        let is_selected = |task: &&LiveTask| {
            !self.is_filtered() || self.includes(&LiveTaskData::of(task, is_paused, clock))
        };
        state.in_order().into_iter().map(AsRef::as_ref).filter(is_selected).collect()
    }
}

pub fn run(context: &Context<'_>, input: Tasks) -> Result<CommandOutput, AppError> {
    let TaskList { mut tasks, overall } = TaskList::of(&LiveState::now(&engine(context)?)?, context);
    tasks.retain(|task| input.includes(task));
    // The list changes all the time, so a cursor is a place in the list as it is then.
    let query = json!(["tasks", input.section, input.repo, input.agent, input.label, input.q]);
    let (tasks, page) = paginate(tasks, &input.paging, &query)?;
    Ok(CommandOutput::done(TaskList { tasks, overall }).with_page("tasks", page))
}

impl TaskList {
    pub fn of(state: &LiveState, context: &Context<'_>) -> TaskList {
        let variables = variables(context);
        let clock = Clock { now_ms: Timestamp::now().as_millisecond(), variables: &variables };
        let is_paused = state.overall.is_queue_paused;
        let tasks = state.in_order().into_iter();
        TaskList {
            tasks: tasks.map(|task| LiveTaskData::of(task, is_paused, clock)).collect(),
            overall: state.overall.as_ref().into(),
        }
    }
}

impl CommandData for TaskList {}
