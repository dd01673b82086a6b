//! `GET /stream`: the live view as server-sent events.
//!
//! A reader gets a snapshot and then changes, each with an id from which it can continue after a break
//! (`Last-Event-ID`). If it was away for too long, a `gap` comes before the next snapshot. With `?task=` it also gets
//! the events of that task, by number, all of them: those are read from the stored stream, so a slow reader misses
//! none. Of what a reader does not take, one part waits for it; it only falls behind.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use delegator_domain::task::TaskId;
use delegator_engine::{Cursor, EventPlace, LiveChange, LiveFeed, LiveReader, Update};
use http::request::Parts;
use http::{HeaderValue, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};

use crate::commands::context::{Context, variables};
use crate::commands::local::tasks::engine;
use crate::error::{AppError, Problem};
use crate::mcp::api::queries::events::NumberedEvent;
use crate::mcp::api::queries::tasks::TaskList;
use crate::mcp::api::routes::query_pairs;
use crate::mcp::server::Server;
use crate::mcp::sign_in::CallerSession;
use crate::mcp::transport::http::Body;
use crate::output::data::live_task::{LiveOverallData, LiveTaskData};
use crate::output::data::task_line::Clock;
use crate::output::printer::Printer;

const MEDIA_TYPE: &str = "text/event-stream";
/// So that a reader and everything between notice a broken connection.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// How soon a revoked session reads nothing more.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Parts of a response that wait for their reader.
const WAITING_PARTS: usize = 1;
/// Events of a task that are sent in one part.
const EVENTS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 256 << 10;

/// The data of `change`: one of them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeData {
    Task(Box<LiveTaskData>),
    /// The id of a task that is not shown any more.
    Removed(String),
    Overall(LiveOverallData),
}

/// The data of `task_event`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct TaskEvent {
    task_id: String,
    #[serde(flatten)]
    event: NumberedEvent,
}

/// The data of `task_restarted`: the numbers of its events begin with 1 again.
#[derive(Debug, Serialize)]
struct TaskRestarted {
    task_id: String,
}

/// What the client asked for.
struct Request {
    cursor: Option<Cursor>,
    task: Option<String>,
    from: u64,
}

impl Request {
    fn of(head: &Parts) -> Result<Request, AppError> {
        let last = head.headers.get("last-event-id").and_then(|id| id.to_str().ok());
        // An id that is not ours is one of another server: the reader gets a snapshot.
        let mut request = Request { cursor: last.and_then(|id| id.parse().ok()), task: None, from: 1 };
        for (name, value) in query_pairs(head.uri.query())? {
            match name.as_str() {
                "task" if request.task.is_none() => request.task = Some(value),
                "task" => return Err(Problem::invalid("task", "is given more than once").into()),
                "from" => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    request.from =
                        number.ok_or_else(|| Problem::invalid("from", "is not a number above 0"))?;
                }
                _ => return Err(Problem::invalid(name, "is not a parameter of this path").into()),
            }
        }
        Ok(request)
    }
}

struct Subscription {
    server: Server,
    live: LiveReader,
    /// The task whose events are sent, too, and how far they are.
    followed: Option<Followed>,
    wake: Arc<Notify>,
    parts: mpsc::Sender<Bytes>,
    /// One of the streams that may be open at once.
    _permit: OwnedSemaphorePermit,
    /// `None`: the reader has the bearer token.
    session: Option<CallerSession>,
    last_ping: Instant,
}

#[derive(Clone)]
struct Followed {
    task: TaskId,
    skip: u64,
    place: EventPlace,
}

pub(super) async fn open(
    server: &Server,
    feed: &LiveFeed,
    head: &Parts,
    (permit, session): (OwnedSemaphorePermit, Option<CallerSession>),
) -> Result<Response<Body>, AppError> {
    let Request { cursor, task, from } = Request::of(head)?;
    let followed = match task {
        None => None,
        Some(given) => {
            let resolve = move |context: &Context<'_>| Ok(engine(context)?.results().resolve(&given)?);
            let task = server.with_context(resolve).await?;
            Some(Followed { task, skip: from - 1, place: EventPlace::default() })
        }
    };
    let wake = Arc::new(Notify::new());
    let waker = Arc::clone(&wake);
    let live = feed.reader(cursor, Box::new(move || waker.notify_one()))?;
    let (parts, receiver) = mpsc::channel(WAITING_PARTS);
    let (server, last_ping) = (server.clone(), Instant::now());
    let subscription =
        Subscription { server, live, followed, wake, parts, _permit: permit, session, last_ping };
    tokio::spawn(subscription.run());
    let mut response = Response::new(StreamBody(receiver).boxed());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The body of a response that ends with its sender.
struct StreamBody(mpsc::Receiver<Bytes>);

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(task).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Subscription {
    /// Sends until the reader is gone.
    async fn run(mut self) {
        loop {
            if self.session.as_ref().is_some_and(CallerSession::has_ended) {
                return;
            }
            let mut is_idle = true;
            if let Some(update) = self.live.take_update() {
                is_idle = false;
                let Some(part) = self.write(update).await else { return };
                if self.parts.send(part).await.is_err() {
                    return;
                }
            }
            if let Some(followed) = self.followed.clone() {
                let Some((part, followed)) = self.events(followed).await else { return };
                self.followed = Some(followed);
                if !part.is_empty() {
                    is_idle = false;
                    if self.parts.send(part).await.is_err() {
                        return;
                    }
                }
            }
            if is_idle {
                tokio::select! {
                    () = self.wake.notified() => {}
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                    () = self.parts.closed() => return,
                }
                if self.last_ping.elapsed() >= PING_INTERVAL {
                    self.last_ping = Instant::now();
                    let ping = Bytes::from_static(b"event: ping\ndata: {}\n\n");
                    if self.parts.send(ping).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    async fn write(&self, update: Update) -> Option<Bytes> {
        let printer = Arc::clone(&self.server.state.printer);
        let write = move |context: &Context<'_>| Ok(Bytes::from(text(&update, context, &printer)));
        self.log_failure(self.server.with_context(write).await)
    }

    async fn events(&self, followed: Followed) -> Option<(Bytes, Followed)> {
        let printer = Arc::clone(&self.server.state.printer);
        let read = move |context: &Context<'_>| {
            let engine = engine(context)?;
            let Followed { task, skip, place } = followed;
            // A provider that cannot be reached is asked again after the next change.
            let _ = engine.remote().fetch_events(&engine.results().recorded_task(&task)?);
            let range = engine.results().event_range(&task, place, skip, EVENTS_AT_ONCE, BYTES_AT_ONCE)?;
            let mut text = String::new();
            if range.is_restarted {
                let restarted = TaskRestarted { task_id: task.to_string() };
                push(&mut text, "task_restarted", None, &restarted, &printer);
            }
            for stored in &range.events {
                let event = TaskEvent { task_id: task.to_string(), event: stored.into() };
                push(&mut text, "task_event", None, &event, &printer);
            }
            // The numbers of another attempt begin with 1 again.
            let skip = if range.is_restarted { 0 } else { skip };
            Ok((Bytes::from(text), Followed { task, skip, place: range.end }))
        };
        self.log_failure(self.server.with_context(read).await)
    }

    fn log_failure<T>(&self, result: Result<T, AppError>) -> Option<T> {
        let log = |error: &AppError| tracing::warn!(error = error.message, "a stream of the API ended");
        result.inspect_err(log).ok()
    }
}

/// The update as server-sent events.
fn text(update: &Update, context: &Context<'_>, printer: &Printer) -> String {
    let mut text = String::new();
    match update {
        Update::Snapshot { state, has_gap, cursor } => {
            if *has_gap {
                push(&mut text, "gap", None, &serde_json::Map::new(), printer);
            }
            push(&mut text, "snapshot", Some(*cursor), &TaskList::of(state, context), printer);
        }
        Update::Changes { changes, overall, .. } => {
            let variables = variables(context);
            let clock = Clock { now_ms: Timestamp::now().as_millisecond(), variables: &variables };
            for (cursor, change) in changes {
                let data = match change {
                    LiveChange::Task(task) => {
                        ChangeData::Task(Box::new(LiveTaskData::of(task, overall.is_queue_paused, clock)))
                    }
                    LiveChange::Removed(id) => ChangeData::Removed(id.to_string()),
                    LiveChange::Overall(overall) => ChangeData::Overall(overall.as_ref().into()),
                };
                push(&mut text, "change", Some(*cursor), &data, printer);
            }
        }
    }
    text
}

fn push(text: &mut String, event: &str, id: Option<Cursor>, data: &impl Serialize, printer: &Printer) {
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    // JSON of serde has no line breaks.
    let data = printer.redact(&serde_json::to_string(data).unwrap_or_default());
    text.push_str(&format!("event: {event}\ndata: {data}\n\n"));
}
