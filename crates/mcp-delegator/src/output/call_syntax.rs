//! Renders suggested calls in the syntax of the reader: shell commands, or calls of the served tools.

use delegator_domain::task::{TaskId, TaskLocation};
use serde_json::Value;

use crate::error::AppError;
use crate::error::suggestion::{CALL, NextCall, Suggestion};
use crate::spec::ServedTools;
use crate::spec::catalog::short_path;
use crate::spec::shell::shell_word;
use crate::spec::version::PROGRAM;

const INPUT: &str = "{input:";
const SET: &str = "{set:";
/// `Sign in` for a person; a model has to ask one.
pub const SIGN_IN: &str = "{sign_in}";
/// An input that is a flag even if it is the first one.
const AGENT: &str = "agent";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallSyntax<'a> {
    /// Shell commands.
    Commands,
    /// Calls of these tools.
    Tools(&'a ServedTools),
}

impl CallSyntax<'_> {
    /// The call; `None` if its tool is not served.
    pub fn render(self, call: &NextCall) -> Option<String> {
        match self {
            CallSyntax::Commands => Some(shell_command(call)),
            CallSyntax::Tools(served) => {
                let name = |path: &[&str]| served.prefixed_name(&path.join("_").replace('-', "_"));
                // Both tools take any task; a model looks for the cloud tool if the task is a cloud task.
                let cloud = cloud_path(call).and_then(|path| name(&path));
                let name = cloud.or_else(|| name(call.path))?;
                Some(if call.input.is_empty() {
                    name
                } else {
                    format!("{name} {}", Value::Object(call.input.clone()))
                })
            }
        }
    }

    /// The sentence with its call. A command without a served tool stays a command: the user may still run
    /// it.
    pub fn sentence(self, suggestion: &Suggestion) -> String {
        let text = self.name_inputs(&suggestion.text);
        let Some(call) = &suggestion.call else { return text };
        let tool_call = match self {
            CallSyntax::Commands => None,
            CallSyntax::Tools(_) => self.render(call),
        };
        let rendered = tool_call.unwrap_or_else(|| {
            if text.ends_with(CALL) { shell_command(call) } else { format!("'{}'", shell_command(call)) }
        });
        text.replace(CALL, &rendered)
    }

    /// Names the inputs in all texts of the error as the caller does. Applied once, before the error is
    /// presented.
    pub fn name_inputs_of(self, error: &mut AppError) {
        let name = |text: &mut String| *text = self.name_inputs(text);
        name(&mut error.message);
        error.summary.iter_mut().for_each(|summary| name(&mut summary.first));
        error.suggestion.iter_mut().for_each(|suggestion| name(&mut suggestion.text));
        for problem in &mut error.problems {
            name(&mut problem.problem);
            // The permission is a sentence of the suggestion from here on.
            problem.suggestion = problem.hint();
            problem.permitted_by = None;
            problem.suggestion.iter_mut().chain(&mut problem.permitted).for_each(name);
        }
    }

    /// Replaces `{input:NAME}` by the name that the caller uses, a flag or the input of a tool, `{set:NAME}` by
    /// the request to set a boolean input, and [`SIGN_IN`].
    fn name_inputs(self, text: &str) -> String {
        let sign_in = match self {
            CallSyntax::Commands => "Sign in",
            CallSyntax::Tools(_) => "Ask the user to sign in",
        };
        let text = text.replace(SIGN_IN, sign_in);
        let mut named = String::new();
        let mut rest = text.as_str();
        while let Some(at) = [SET, INPUT].into_iter().filter_map(|marker| rest.find(marker)).min() {
            let (before, marked) = rest.split_at(at);
            named.push_str(before);
            let (marker, after) = marked.split_once(':').unwrap_or((marked, ""));
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let flag = format!("--{}", name.replace('_', "-"));
            named.push_str(&match (self, SET.starts_with(marker)) {
                (CallSyntax::Commands, false) => flag,
                (CallSyntax::Commands, true) => format!("give {flag}"),
                (CallSyntax::Tools(_), false) => name.to_owned(),
                (CallSyntax::Tools(_), true) => format!("set {name} to true"),
            });
            rest = after;
        }
        named + rest
    }
}

/// The cloud command for a call of its local namesake that concerns only cloud tasks.
fn cloud_path(call: &NextCall) -> Option<[&'static str; 2]> {
    let ["local", command @ ("status" | "wait" | "results" | "cancel")] = call.path else { return None };
    let ids = match (call.input.get("task_id"), call.input.get("task_ids")) {
        (Some(id), _) => std::slice::from_ref(id),
        (None, Some(Value::Array(ids))) => ids,
        _ => return None,
    };
    let id = |id: &Value| id.as_str().and_then(|id| id.parse::<TaskId>().ok());
    let is_cloud = |value: &Value| id(value).is_some_and(|id| id.location() == TaskLocation::Cloud);
    (!ids.is_empty() && ids.iter().all(is_cloud)).then_some(["cloud", command])
}

fn shell_command(call: &NextCall) -> String {
    let mut words = vec![PROGRAM.to_owned()];
    let path = match call.path {
        // `cancel` takes the same inputs, for one task or several.
        ["local", "cancel"] => &["cancel"],
        path => short_path(path).unwrap_or(path),
    };
    words.extend(path.iter().map(|word| (*word).to_owned()));
    for (at, (name, value)) in call.input.iter().enumerate() {
        let flag = format!("--{}", name.replace('_', "-"));
        match value {
            Value::Bool(true) => words.push(flag),
            Value::Array(ids) if at == 0 && name == "task_ids" => {
                words.extend(ids.iter().map(|id| shell_word(&text_of(id))));
            }
            Value::Array(items) => {
                words.extend(items.iter().flat_map(|item| [flag.clone(), shell_word(&text_of(item))]));
            }
            Value::Object(pairs) => {
                let pair = |(key, value): (&String, &Value)| shell_word(&format!("{key}={}", text_of(value)));
                words.extend(pairs.iter().flat_map(|entry| [flag.clone(), pair(entry)]));
            }
            value if at == 0 && name != AGENT => words.push(shell_word(&text_of(value))),
            value => words.extend([flag, shell_word(&text_of(value))]),
        }
    }
    words.join(" ")
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(name: &str) -> ServedTools {
        ServedTools { prefix: "_codex_".to_owned(), names: vec![name.to_owned()] }
    }

    #[test]
    fn call_uses_the_syntax_of_the_reader() {
        let wait = NextCall::new(&["local", "wait"]);
        let one = wait.clone().with("task_id", "T-1").with("timeout_sec", 9);
        let several = wait.with("task_ids", json!(["T-1", "T-2"])).with("until", "any");
        let resume = NextCall::new(&["local", "resume"]).with("task", "Go on.").with("task_id", "T-1");
        let labels = json!({"team": "parser", "x": "a b"});
        let labelled = NextCall::new(&["local", "status"]).with("labels", labels);
        let aside = NextCall::new(&["doctor"]).with("set_aside_damaged", true);
        for (call, expected) in [
            (&one, "mcp-delegator wait T-1 --timeout-sec 9"),
            (&several, "mcp-delegator wait T-1 T-2 --until any"),
            (&resume, "mcp-delegator resume 'Go on.' --task-id T-1"),
            (&aside, "mcp-delegator doctor --set-aside-damaged"),
            (&labelled, "mcp-delegator status --labels team=parser --labels 'x=a b'"),
        ] {
            assert_eq!(CallSyntax::Commands.render(call).as_deref(), Some(expected));
        }
        let as_tool = CallSyntax::Tools(&tools("local_wait")).render(&one);
        assert_eq!(as_tool.as_deref(), Some(r#"_codex_local_wait {"task_id":"T-1","timeout_sec":9}"#));
        assert_eq!(CallSyntax::Tools(&tools("local_exec")).render(&one), None);
    }

    #[test]
    fn the_tool_for_cloud_tasks_is_the_cloud_tool_if_it_is_served() {
        let [cloud, other, local] = ["T-cloud-k3m9x2a7b4", "T-cloud-0123456789", "T-local-0123456789"];
        let wait = NextCall::new(&["local", "wait"]);
        let one = wait.clone().with("task_id", cloud);
        let several = wait.clone().with("task_ids", json!([cloud, other]));
        let mixed = wait.with("task_ids", json!([cloud, local]));
        let resume = NextCall::new(&["local", "resume"]).with("task_id", cloud);
        let names = ["local_wait", "cloud_wait", "local_resume"].map(str::to_owned).to_vec();
        let both = ServedTools { prefix: "_codex_".to_owned(), names };
        let tool = |served: &ServedTools, call: &NextCall| {
            let rendered = CallSyntax::Tools(served).render(call).unwrap();
            rendered.split(' ').next().unwrap().to_owned()
        };
        for (call, expected) in [
            (&one, "_codex_cloud_wait"),
            (&several, "_codex_cloud_wait"),
            (&mixed, "_codex_local_wait"),
            (&resume, "_codex_local_resume"),
        ] {
            assert_eq!(tool(&both, call), expected);
        }
        assert_eq!(tool(&tools("local_wait"), &one), "_codex_local_wait");
        assert_eq!(tool(&tools("cloud_wait"), &one), "_codex_cloud_wait");
        assert_eq!(CallSyntax::Commands.render(&one).unwrap(), format!("mcp-delegator wait {cloud}"));
    }

    #[test]
    fn a_model_asks_the_user_to_sign_in() {
        let suggestion = Suggestion::from(format!("{SIGN_IN}: codex login"));
        assert_eq!(CallSyntax::Commands.sentence(&suggestion), "Sign in: codex login");
        let for_a_model = CallSyntax::Tools(&tools("local_wait")).sentence(&suggestion);
        assert_eq!(for_a_model, "Ask the user to sign in: codex login");
    }

    #[test]
    fn sentence_names_the_served_tool_or_the_command() {
        let list =
            Suggestion::with_call("Run {call} to list the tasks.", NextCall::new(&["local", "status"]));
        let wait = NextCall::new(&["local", "wait"]).with("task_id", "T-1");
        let wait = Suggestion::with_call("Wait for it first: {call}", wait);
        let status = tools("local_status");
        for (suggestion, syntax, expected) in [
            (&list, CallSyntax::Commands, "Run 'mcp-delegator status' to list the tasks."),
            (&list, CallSyntax::Tools(&status), "Run _codex_local_status to list the tasks."),
            (&wait, CallSyntax::Commands, "Wait for it first: mcp-delegator wait T-1"),
            (&wait, CallSyntax::Tools(&status), "Wait for it first: mcp-delegator wait T-1"),
            (
                &wait,
                CallSyntax::Tools(&tools("local_wait")),
                r#"Wait for it first: _codex_local_wait {"task_id":"T-1"}"#,
            ),
            (&Suggestion::from("Give {call}."), CallSyntax::Commands, "Give {call}."),
            (&Suggestion::from("Pass {input:a_b} 2."), CallSyntax::Commands, "Pass --a-b 2."),
            (&Suggestion::from("Pass {input:a_b} 2."), CallSyntax::Tools(&status), "Pass a_b 2."),
            (&Suggestion::from("Or {set:a_b}."), CallSyntax::Commands, "Or give --a-b."),
            (&Suggestion::from("Or {set:a_b}."), CallSyntax::Tools(&status), "Or set a_b to true."),
        ] {
            assert_eq!(syntax.sentence(suggestion), expected);
        }
    }
}
