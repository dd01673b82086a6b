//! Which command a method and path call, and how the path, the query and the body become its input.

use delegator_domain::task::Mode;
use http::Method;
use serde_json::{Map, Value};

use crate::commands::local::task_input::unconfirmed_problem;
use crate::commands::sign_in::Scope;
use crate::commands::{
    Prepare, agents, answer, apply, diff, discard, fleet, history, local, prepare, read, restore, retry,
    review, send, show, usage, worktrees,
};
use crate::error::Problem;
use crate::input::argv::parse_value;
use crate::mcp::api::queries;
use crate::spec::CommandSpec;
use crate::spec::input_schema::{InputSchema, MODE, Marker, Property, PropertyType};

/// The consent to a task without a sandbox.
pub(super) const CONFIRM: &str = "confirm";

/// Begins the path of every route.
pub const BASE: &str = "/api/v1";

pub(super) struct Route {
    pub(super) method: Method,
    /// Below the base; `{id}` is one segment.
    pub(super) path: &'static str,
    pub(super) scope: Scope,
    pub(super) target: Target,
}

pub(super) enum Target {
    Command(Call),
    /// Server-sent events.
    Stream,
    /// The description of the API.
    OpenApi,
    /// Who the caller is.
    Session,
    /// Ends the session of the caller.
    SignOut,
}

pub(super) struct Call {
    pub(super) spec: &'static CommandSpec,
    pub(super) prepare: Prepare,
    /// The input that is in the path.
    pub(super) id: Option<&'static str>,
    /// The input that `?check=true` sets: report what would happen, and change nothing.
    pub(super) check: Option<&'static str>,
}

/// A method, a path, its scope, the command and its handler, the input in the path and that of a check.
macro_rules! calls {
    ($($method:ident $path:literal $scope:ident $spec:path => $handler:path $(, id $id:literal)? $(, check $check:literal)?;)*) => {
        [$(Route {
            method: Method::$method,
            path: $path,
            scope: Scope::$scope,
            target: Target::Command(Call {
                spec: &$spec,
                prepare: |input| prepare(input, $handler),
                id: [$(Some($id),)? None][0],
                check: [$(Some($check),)? None][0],
            }),
        },)*]
    };
}

const CALLS: [Route; 27] = calls! {
    GET "/tasks" Read queries::tasks::SPEC => queries::tasks::run;
    POST "/tasks" Write local::exec::SPEC => local::exec::run;
    GET "/tasks/{id}" Read show::SPEC => show::run, id "task_id";
    GET "/tasks/{id}/events" Read queries::events::SPEC => queries::events::run, id "task_id";
    GET "/tasks/{id}/log" Read queries::log::SPEC => queries::log::run, id "task_id";
    GET "/tasks/{id}/timeline" Read queries::log::TIMELINE => queries::log::run_timeline, id "task_id";
    GET "/tasks/{id}/messages" Read queries::messages::SPEC => queries::messages::run, id "task_id";
    GET "/tasks/{id}/diff" Read diff::SPEC => diff::run, id "task_id";
    POST "/tasks/{id}/cancel" Write local::cancel::SPEC => local::cancel::run, id "task_id";
    POST "/tasks/{id}/send" Answer send::SPEC => send::run, id "task_id";
    POST "/tasks/{id}/answer" Answer answer::SPEC => answer::run, id "task_id";
    POST "/tasks/{id}/read" Answer read::SPEC => read::run, id "task_ids";
    POST "/tasks/{id}/apply" Write apply::SPEC => apply::run, id "task_id", check "check";
    POST "/tasks/{id}/discard" Write discard::SPEC => discard::run, id "task_id";
    POST "/tasks/{id}/undo" Write restore::undo::SPEC => restore::undo::run, id "task_id", check "dry_run";
    POST "/tasks/{id}/retry" Write retry::SPEC => retry::run, id "task_id";
    POST "/tasks/{id}/resume" Write local::resume::SPEC => local::resume::run, id "task_id";
    POST "/tasks/{id}/review" Write review::SPEC => review::run, id "task_id";
    GET "/groups/{id}" Read local::results::SPEC => local::results::run, id "task_id";
    POST "/groups/{id}/cancel" Write local::cancel::SPEC => local::cancel::run, id "task_id";
    POST "/groups/{id}/apply" Write apply::SPEC => apply::run, id "task_id", check "check";
    POST "/groups/{id}/discard" Write discard::SPEC => discard::run, id "task_id";
    GET "/history" Read history::SPEC => history::run;
    GET "/worktrees" Read worktrees::SPEC => worktrees::run;
    GET "/usage" Read usage::SPEC => usage::run;
    GET "/agents" Read agents::list::SPEC => agents::list::run;
    GET "/fleet" Read fleet::status::SPEC => fleet::status::run;
};

const OTHERS: [Route; 4] = [
    Route { method: Method::POST, path: "/session/end", scope: Scope::Read, target: Target::SignOut },
    Route { method: Method::GET, path: "/session", scope: Scope::Read, target: Target::Session },
    Route { method: Method::GET, path: "/stream", scope: Scope::Read, target: Target::Stream },
    Route { method: Method::GET, path: "/openapi.json", scope: Scope::Read, target: Target::OpenApi },
];

static ROUTES: std::sync::LazyLock<Vec<Route>> =
    std::sync::LazyLock::new(|| CALLS.into_iter().chain(OTHERS).collect());

pub(super) fn all() -> &'static [Route] {
    &ROUTES
}

/// Whether the API answers requests to this path.
pub fn serves(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) enum Found<'a> {
    Route {
        route: &'static Route,
        /// The segment at `{id}`, decoded.
        id: Option<String>,
    },
    /// The path exists, with these methods.
    OtherMethods(Vec<&'a Method>),
    Nothing,
}

/// The route of a request; `path` is below the base.
pub(super) fn find(method: &Method, path: &str) -> Found<'static> {
    let matching: Vec<(&Route, Option<String>)> =
        all().iter().filter_map(|route| Some((route, match_path(route.path, path)?))).collect();
    let methods = matching.iter().map(|(route, _)| &route.method).collect();
    match matching.into_iter().find(|(route, _)| route.method == *method) {
        Some((route, id)) => Found::Route { route, id },
        None if Vec::<&Method>::is_empty(&methods) => Found::Nothing,
        None => Found::OtherMethods(methods),
    }
}

/// Whether a path has the form of a pattern, and its id.
fn match_path(pattern: &str, path: &str) -> Option<Option<String>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut id = None;
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(id),
            (Some("{id}"), Some(segment)) if !segment.is_empty() => id = Some(decode(segment)?),
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

/// The names and values of a query. What is not UTF-8 is refused.
pub fn query_pairs(query: Option<&str>) -> Result<Vec<(String, String)>, Problem> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let split = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let [name, value] = [name, value].map(|text| decode(&text.replace('+', " ")));
        name.zip(value).ok_or_else(|| Problem::invalid("query", format!("{pair} is not encoded text")))
    };
    pairs.map(split).collect()
}

/// Text without its percent encoding.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

impl Call {
    /// Takes `confirm` out of the input: the server knows no such input, because there `max_mode` decides alone. Here a
    /// task without a sandbox needs it as on the command line.
    fn take_consent(&self, object: &mut Map<String, Value>) -> Option<Problem> {
        let has_consent = |input: &Property| input.has(&Marker::Consent);
        InputSchema::of(self.spec).get(CONFIRM).filter(|input| has_consent(input))?;
        match object.shift_remove(CONFIRM) {
            Some(Value::Bool(true)) => None,
            Some(Value::Bool(false)) | None => {
                let mode = object.get(MODE).and_then(Value::as_str).and_then(Mode::from_name)?;
                unconfirmed_problem(mode)
            }
            Some(other) => Some(Problem::invalid(CONFIRM, "must be true or false").value(other)),
        }
    }

    /// The input of the command: the body, then the query, then the id.
    pub(super) fn input(
        &self,
        id: Option<String>,
        query: Vec<(String, String)>,
        body: Map<String, Value>,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        let name = |(name, value): (String, String)| match self.check {
            Some(check) if name == "check" => (check.to_owned(), value),
            _ => (name, value),
        };
        let query = query.into_iter().map(name).collect();
        let (mut object, mut problems) = input_of_query(self.spec, query, body);
        problems.extend(self.take_consent(&mut object));
        if let Some((name, id)) = self.id.zip(id) {
            if object.contains_key(name) {
                problems.push(Problem::invalid(name, "is in the path already"));
            }
            let is_list = |input: &Property| input.kind == PropertyType::List;
            let is_list = InputSchema::of(self.spec).get(name).is_some_and(is_list);
            let value = if is_list { vec![id].into() } else { id.into() };
            object.insert(name.to_owned(), value);
        }
        if problems.is_empty() { Ok(object) } else { Err(problems) }
    }
}

/// Adds a query to the input of a command.
pub fn input_of_query(
    spec: &CommandSpec,
    query: Vec<(String, String)>,
    mut object: Map<String, Value>,
) -> (Map<String, Value>, Vec<Problem>) {
    let (inputs, mut problems) = (InputSchema::of(spec), Vec::new());
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in query {
        match texts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => texts.push((name, vec![value])),
        }
    }
    for (name, values) in texts {
        match inputs.get(&name).map(|input| parse_value(input, values)) {
            Some(Ok(value)) => drop(object.insert(name, value)),
            Some(Err(problem)) => problems.push(problem),
            None => problems.push(Problem::invalid(name, "is not a parameter of this path")),
        }
    }
    (object, problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(method: Method, path: &str) -> String {
        match find(&method, path) {
            Found::Route { route, id } => format!("{} {}", route.path, id.unwrap_or_default()),
            Found::OtherMethods(methods) => format!("{methods:?}"),
            Found::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn a_path_has_exactly_its_segments() {
        for (method, path, expected) in [
            (Method::GET, "/tasks", "/tasks "),
            (Method::HEAD, "/tasks", "[GET, POST]"),
            (Method::GET, "/tasks/T-1", "/tasks/{id} T-1"),
            (Method::GET, "/tasks/T%2D1", "/tasks/{id} T-1"),
            (Method::GET, "/tasks/T-1/diff", "/tasks/{id}/diff T-1"),
            (Method::POST, "/tasks/T-1", "[GET]"),
            (Method::DELETE, "/tasks", "[GET, POST]"),
            (Method::GET, "/tasks/", "nothing"),
            (Method::GET, "/tasks//diff", "nothing"),
            (Method::GET, "/tasks/T-1/diff/more", "nothing"),
            (Method::GET, "/tasks/%ff", "nothing"),
            (Method::GET, "/tasks/%2", "nothing"),
            (Method::GET, "", "nothing"),
        ] {
            assert_eq!(found(method, path), expected, "{path}");
        }
    }

    fn input(path: &str, query: &str, body: &Value) -> Result<Value, String> {
        let Found::Route { route: Route { target: Target::Command(call), .. }, id } =
            find(if body.is_null() { &Method::GET } else { &Method::POST }, path)
        else {
            panic!("{path} calls no command");
        };
        let pairs = query_pairs(Some(query)).unwrap();
        let body = body.as_object().cloned().unwrap_or_default();
        let problem = |problems: Vec<Problem>| format!("{}: {}", problems[0].field, problems[0].problem);
        call.input(id, pairs, body).map(Value::Object).map_err(problem)
    }

    #[test]
    fn path_query_and_body_are_one_input() {
        let expected = json!({"limit": 5, "agent": "a b", "verified": true});
        assert_eq!(input("/history", "limit=5&agent=a+b&verified=true", &Value::Null), Ok(expected));
        let expected = json!({"task_id": "T-1", "path": ["a", "b"]});
        assert_eq!(input("/tasks/T-1/diff", "path=a&path=b", &Value::Null), Ok(expected));
        let expected = json!({"task_ids": ["T-1"]});
        assert_eq!(input("/tasks/T-1/read", "", &json!({})), Ok(expected));
        let expected = json!({"task_id": "T-1", "dry_run": true});
        assert_eq!(input("/tasks/T-1/undo", "check=true", &json!({})), Ok(expected));
        for (path, query, body, expected) in [
            ("/tasks/T-1/diff", "colour=red", Value::Null, "colour: is not a parameter of this path"),
            ("/tasks/T-1/cancel", "check=true", json!({}), "check: is not a parameter of this path"),
            ("/tasks/T-1/cancel", "", json!({"task_id": "T-2"}), "task_id: is in the path already"),
            ("/history", "limit=1&limit=2", Value::Null, "limit: is given more than once"),
        ] {
            assert_eq!(input(path, query, &body), Err(expected.to_owned()));
        }
        assert!(query_pairs(Some("a=%zz")).is_err() && query_pairs(Some("a=%ff")).is_err());
    }

    #[test]
    fn what_changes_something_is_a_post_and_needs_more_than_reading() {
        for route in all() {
            let Target::Command(call) = &route.target else { continue };
            let is_get = route.method == Method::GET;
            assert_eq!(is_get, route.scope == Scope::Read, "{}", route.path);
            assert_eq!(is_get, call.spec.is_safe(), "{}", route.path);
            let inputs = InputSchema::of(call.spec);
            for name in call.id.iter().chain(&call.check) {
                assert!(inputs.get(name).is_some(), "{} has no input {name}", route.path);
            }
        }
    }
}
