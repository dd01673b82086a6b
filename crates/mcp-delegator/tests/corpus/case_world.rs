//! Builds the world of a case: its project, and the agent that works in it.

use std::path::{Path, PathBuf};

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::fake_model::{FakeModel, Reply, codex_config, command, message, patch};
use delegator_testkit::program::World;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::case::{Agent, CallSequence, Case, ModelStep, Project, recording};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// Output of an agent that cannot start a sandbox.
const NO_SANDBOX: &str = "if [ \"$1\" = sandbox ]; then echo 'bwrap: No permissions'; exit 1; fi";
/// A reserved port on which no service runs. A free port could be taken by another process.
const UNUSED_PORT: u16 = 1;
/// Codex offers its plan tool to the model only with this setting.
const WITH_PLANS: &str = "[tools.update_plan]\nenabled = true\n";

pub(crate) struct CaseWorld {
    pub(crate) stage: Stage,
    /// Dropping the model stops its server.
    _model: Option<FakeModel>,
}

impl CaseWorld {
    pub(crate) fn for_case(case: &Case) -> CaseWorld {
        let (world, model) = match &case.agent {
            Agent::Codex(steps) => {
                let model = start_model(case, steps);
                let port = model.as_ref().map_or(UNUSED_PORT, |model| model.port);
                (world_with_codex(PROGRAM, &format!("{}{WITH_PLANS}", codex_config(port))), model)
            }
            Agent::Scripted(_) | Agent::Stream(_) => (scripted_world(), None),
        };
        let world = case.variables.iter().fold(world, |world, (name, value)| world.variable(name, value));
        let case_world = CaseWorld { stage: Stage { world }, _model: model };
        case_world.build(&case.project);
        case_world
    }

    pub(crate) fn working_dir(&self, case: &Case) -> PathBuf {
        self.stage.world.project().join(&case.project.folder)
    }

    fn build(&self, project: &Project) {
        for (path, text) in &project.files {
            self.write(path, text);
        }
        for (path, which) in &project.recorded {
            self.write(path, &recording(which));
        }
        if project.git {
            self.shell(
                "git init -q -b main && git config user.name Tester && git config user.email tester@localhost \
                 && git add . && git commit -q --allow-empty -m First",
            );
        }
        for (path, text) in &project.dirty {
            self.write(path, text);
        }
        if let Some(text) = &project.prepare {
            self.shell(text);
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = format!("project/{path}");
        match text.starts_with("#!") {
            true => drop(self.stage.write_program(&path, text)),
            false => self.stage.world.write(&path, text),
        }
    }

    fn shell(&self, text: &str) {
        let run = self.stage.world.run_as(Path::new("/bin/sh"), ["-c", text]);
        assert_eq!(run.exit, Some(0), "{text}: {run:?}");
    }
}

fn scripted_world() -> World {
    let stage = Stage::with_script_after(NO_SANDBOX, PROGRAM, json!([]));
    stage.variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true").world
}

/// A complete script: with `whole`, the steps as they are; otherwise preceded by the start of thread and turn.
pub(crate) fn script(steps: &[Value], whole: bool) -> Value {
    let start = [json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    let start = if whole { &[] } else { &start[..] };
    json!([start, steps].concat())
}

/// Starts the fake model, unless the case has no responses for it.
fn start_model(case: &Case, steps: &[ModelStep]) -> Option<FakeModel> {
    let earlier: Vec<ModelStep> = match &case.calls {
        CallSequence::Resume(steps) => {
            steps.iter().map(|step| serde_json::from_value(step.clone()).expect("a model's step")).collect()
        }
        _ => Vec::new(),
    };
    let all: Vec<Reply> = earlier.iter().chain(steps).enumerate().map(model_step).collect();
    (!all.is_empty()).then(|| FakeModel::start(all))
}

fn model_step((number, step): (usize, &ModelStep)) -> Reply {
    match step {
        ModelStep::Refuse { status, body } => Reply::HttpError { status: *status, body: body.clone() },
        ModelStep::Together(steps) => {
            let items =
                steps.iter().enumerate().map(|(part, step)| model_item(&format!("{number}_{part}"), step));
            Reply::Output(items.collect())
        }
        single => Reply::Output(vec![model_item(&number.to_string(), single)]),
    }
}

/// Every call gets an id of its own, as from a real model.
fn model_item(number: &str, step: &ModelStep) -> Value {
    let mut item = match step {
        ModelStep::Message(text) => return message(text),
        ModelStep::Command(text) => command(text),
        ModelStep::Patch(text) => patch(text),
        ModelStep::Plan { steps, done } => plan(steps, *done),
        ModelStep::Together(_) | ModelStep::Refuse { .. } => panic!("{step:?} is no item"),
    };
    item["id"] = format!("item_{number}").into();
    item["call_id"] = format!("call_{number}").into();
    item
}

fn plan(steps: &[String], done: usize) -> Value {
    let status = |number: usize| match number.cmp(&done) {
        std::cmp::Ordering::Less => "completed",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    let items =
        steps.iter().enumerate().map(|(number, step)| json!({"step": step, "status": status(number)}));
    let plan: Vec<Value> = items.collect();
    json!({"type": "function_call", "name": "update_plan", "arguments": json!({"plan": plan}).to_string()})
}
