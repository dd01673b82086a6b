//! Answers a request of the HTTP API.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use delegator_engine::LiveFeed;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::commands::Started;
use crate::commands::sign_in::Scope;
use crate::error::{AppError, ErrorCode, Problem, catch_panics, io_error};
use crate::mcp::api::audit::{Audit, AuditLine};
use crate::mcp::api::problem::{self, ProblemDocument};
use crate::mcp::api::routes::{self, BASE, Call, Found, Route, Target};
use crate::mcp::api::{openapi, session, stream};
use crate::mcp::server::{Server, run_blocking};
use crate::mcp::sign_in::{Caller, CallerSession, RateLimit};
use crate::mcp::tools::server_state::{AdmittedCall, ServerState, ToolCall};
use crate::mcp::transport::http::{Body, sends_json};
use crate::output::outcome::CommandOutput;
use crate::spec::formats::Format;

/// Of the callers of one scope. Each may hold a snapshot of all tasks that its reader has not taken.
const MAX_STREAMS: usize = 64;

#[derive(Debug, Clone)]
pub struct Api {
    server: Server,
    live: LiveFeed,
    audit: Audit,
    /// Of all sessions of a scope together: who may only read must not use up what others need.
    actions: Arc<[RateLimit; Scope::ALL.len()]>,
    /// The description of the API, written for the first request.
    openapi: Arc<OnceLock<String>>,
    streams: [Arc<Semaphore>; Scope::ALL.len()],
}

/// Actions of sessions at once; then one in each interval.
const MOST_ACTIONS: u32 = 300;
const ACTION_INTERVAL: Duration = Duration::from_millis(200);

/// What is sent to the client.
struct Reply {
    status: StatusCode,
    kind: &'static str,
    body: String,
    /// The outcome for the audit file, and the request id.
    outcome: (String, Option<String>),
}

impl Api {
    pub fn new(server: Server, live: LiveFeed, state_dir: &Path) -> Api {
        let streams = std::array::from_fn(|_| Arc::new(Semaphore::new(MAX_STREAMS)));
        let actions = Arc::new(std::array::from_fn(|_| RateLimit::new(MOST_ACTIONS, ACTION_INTERVAL)));
        Api { server, live, audit: Audit::new(state_dir), actions, openapi: Arc::default(), streams }
    }

    pub fn live(&self) -> &LiveFeed {
        &self.live
    }

    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Answers a request of someone who has signed in or sent the token.
    pub async fn respond(&self, head: &Parts, body: Bytes, caller: &Caller) -> Response<Body> {
        let path = head.uri.path().strip_prefix(BASE).unwrap_or_default();
        match routes::find(&head.method, path) {
            Found::Nothing => {
                let text = format!("There is no path {} in this API.", head.uri.path());
                refusal(StatusCode::NOT_FOUND, &text)
            }
            Found::OtherMethods(methods) => {
                let methods: Vec<&str> = methods.into_iter().map(Method::as_str).collect();
                let allowed = methods.join(", ");
                let text = format!("{} can be requested with {allowed}.", head.uri.path());
                let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &text);
                let allowed = HeaderValue::from_str(&allowed);
                allowed
                    .into_iter()
                    .for_each(|allowed| drop(response.headers_mut().insert(header::ALLOW, allowed)));
                response
            }
            Found::Route { route, id } => self.follow(route, id, (head, body), caller).await,
        }
    }

    async fn follow(
        &self,
        route: &'static Route,
        id: Option<String>,
        (head, body): (&Parts, Bytes),
        caller: &Caller,
    ) -> Response<Body> {
        let call = match &route.target {
            Target::Session => {
                let (_, body) = self.server.state.envelope(&session::call(), Ok(session::output(caller)));
                return json(StatusCode::OK, "application/json", body);
            }
            Target::SignOut => {
                self.audit.record(&AuditLine::now(caller, "dashboard.sign_out".to_owned()));
                let ended = caller.session.as_ref().map_or(Ok(()), CallerSession::end);
                let failed = |error: std::io::Error| failure(&io_error("Ending the session", &error));
                return ended
                    .map_or_else(failed, |()| json(StatusCode::OK, "application/json", "{}".to_owned()));
            }
            Target::Stream => {
                let Ok(permit) = Arc::clone(&self.streams[caller.scope as usize]).try_acquire_owned() else {
                    return refusal(StatusCode::SERVICE_UNAVAILABLE, "Too many streams are open.");
                };
                let opened =
                    stream::open(&self.server, &self.live, head, (permit, caller.session.clone())).await;
                return opened.unwrap_or_else(|error| failure(&error));
            }
            Target::OpenApi => {
                let write = || openapi::document((&self.server.state.config.settings).into()).to_string();
                return json(StatusCode::OK, "application/json", self.openapi.get_or_init(write).clone());
            }
            Target::Command(call) => call,
        };
        let is_action = route.method == Method::POST;
        if is_action && !(body.is_empty() || sends_json(&head.headers)) {
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.");
        }
        if is_action && caller.session.is_some() && !self.actions[caller.scope as usize].admit() {
            return too_many("Too many actions in a short time.");
        }
        let query = head.uri.query().map(str::to_owned);
        let (api, caller) = (self.clone(), caller.clone());
        // All of it on a blocking thread, which also ends if the client does not wait for the response.
        let reply = run_blocking(move || {
            let reply = match refused_scope(route, caller.scope) {
                Some(refused) => refused,
                None => api.reply(call, id.clone(), query.as_deref(), &body),
            };
            if is_action {
                let (outcome, request_id) = &reply.outcome;
                let line = AuditLine::now(&caller, call.spec.name());
                api.audit.record(&AuditLine {
                    task: id.as_deref(),
                    outcome,
                    request_id: request_id.clone(),
                    ..line
                });
            }
            Ok(reply)
        })
        .await;
        let Reply { status, kind, body, .. } = reply.unwrap_or_else(|error| Reply::failed(&error));
        json(status, kind, body)
    }

    fn reply(&self, call: &'static Call, id: Option<String>, query: Option<&str>, body: &[u8]) -> Reply {
        match input(call, id, query, body) {
            Ok(object) => run_call(&self.server.state, call, object),
            Err(error) => Reply::failed(&error),
        }
    }
}

fn refused_scope(route: &Route, scope: Scope) -> Option<Reply> {
    (scope < route.scope).then(|| {
        let (needed, given) = (route.scope.name(), scope.name());
        let text = format!("This needs the scope {needed}; the caller has {given}.");
        Reply::failed(&AppError::new(ErrorCode::PolicyBlocked, text))
    })
}

/// Validates and runs a command, and writes its envelope or what went wrong.
fn run_call(state: &ServerState, call: &'static Call, object: Map<String, Value>) -> Reply {
    let admit = || Ok(state.admit_with(call.spec, call.prepare, object));
    let (tool_call, output) = match catch_panics(admit) {
        Ok(Ok(AdmittedCall { call, prepared })) => {
            (call, state.with_context(|context| prepared.run(context)))
        }
        Ok(Err(refused)) => (refused.call, Err(*refused.error)),
        Err(error) => (ToolCall::new(call.spec, Format::Json), Err(error)),
    };
    let output: Result<CommandOutput, AppError> = output.and_then(|started| match started {
        Started::Finished(output) => Ok(*output),
        Started::Waiting(..) => {
            Err(AppError::new(ErrorCode::Internal, "This command waits, which the API does not."))
        }
    });
    let (outcome, body) = state.envelope(&tool_call, output);
    let request_id = Some(outcome.request_id.to_string());
    match outcome.error() {
        None => Reply {
            status: StatusCode::OK,
            kind: "application/json",
            body,
            outcome: ("ok".to_owned(), request_id),
        },
        Some(error) => {
            let document = ProblemDocument::of(&error, Some(&outcome));
            let reply = Reply::of(&document);
            let body = state.printer.redact(&reply.body);
            Reply { body, outcome: (document.code.to_owned(), request_id), ..reply }
        }
    }
}

/// The input of the command, from a body that is empty or a JSON object.
fn input(
    call: &Call,
    id: Option<String>,
    query: Option<&str>,
    body: &[u8],
) -> Result<Map<String, Value>, AppError> {
    let object = if body.is_empty() {
        Map::new()
    } else {
        serde_json::from_slice(body).map_err(|error| {
            AppError::from(Problem::invalid("body", format!("is not a JSON object: {error}")))
        })?
    };
    let query = routes::query_pairs(query)?;
    call.input(id, query, object).map_err(AppError::from_problems)
}

impl Reply {
    fn of(document: &ProblemDocument) -> Reply {
        Reply {
            status: document.status(),
            kind: problem::MEDIA_TYPE,
            body: text(document),
            outcome: (document.code.to_owned(), None),
        }
    }

    fn failed(error: &AppError) -> Reply {
        Reply::of(&ProblemDocument::of(error, None))
    }
}

fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

fn failure(error: &AppError) -> Response<Body> {
    let Reply { status, kind, body, .. } = Reply::failed(error);
    json(status, kind, body)
}

/// The response to a request that calls no command.
pub fn refusal(status: StatusCode, detail: &str) -> Response<Body> {
    let code = match status {
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::UNAUTHORIZED => ErrorCode::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorCode::PolicyBlocked,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => ErrorCode::ResourceShortage,
        _ => ErrorCode::InvalidValue,
    };
    let document = ProblemDocument::of(&AppError::new(code, detail.trim_end()), None).with_status(status);
    let mut response = json(status, problem::MEDIA_TYPE, text(&document));
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The client may try again soon.
pub fn too_many(detail: &str) -> Response<Body> {
    let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, detail);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

fn json(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
