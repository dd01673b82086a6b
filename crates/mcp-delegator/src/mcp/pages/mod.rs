//! The pages of the dashboard: HTML from the same typed data as every other face of a command.
//!
//! ```text
//! gate ▸ sign_in (a link with a code) ┐
//!        routes (path ▸ page) ▸ input ▸ query of a command ▸ template ▸ layout ▸ compression
//! ```
//!
//! A page can be read without its script. The script follows the stream of the API, requests the main part of the page
//! again when something in it has changed, and sends actions to the API. No page changes anything, except that the
//! result of a task that it shows whole counts as read.

mod assets;
mod attempts;
mod change_check;
mod chart;
mod comparison;
mod diff;
mod diff_lines;
mod evidence;
mod fleet;
mod forms;
mod history;
mod layout;
mod log;
mod new_task;
pub mod paths;
mod question;
mod reply;
mod request;
mod response;
mod routes;
mod signed_out;
mod task;
mod task_list;
mod task_row;
mod usage;
mod view;
mod word_diff;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use delegator_engine::LiveFeed;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::commands::sign_in::Sessions;
use crate::error::AppError;
use crate::mcp::api::{Api, Audit, AuditLine, too_many};
use crate::mcp::pages::request::{PageRequest, is_prefetch};
use crate::mcp::server::Server;
use crate::mcp::sign_in::{Caller, RateLimit, SessionCookie};
use crate::mcp::transport::http::Body;

/// Links with a wrong code at once; then one in each interval.
const MOST_WRONG_CODES: u32 = 10;
const WRONG_CODE_INTERVAL: Duration = Duration::from_secs(6);

#[derive(Debug)]
pub struct Pages {
    server: Server,
    live: LiveFeed,
    sessions: Sessions,
    cookie: SessionCookie,
    wrong_codes: Arc<RateLimit>,
    audit: Audit,
}

impl Pages {
    pub fn new(server: Server, api: &Api, sessions: Sessions, cookie: SessionCookie) -> Pages {
        let (live, audit) = (api.live().clone(), api.audit().clone());
        let wrong_codes = Arc::new(RateLimit::new(MOST_WRONG_CODES, WRONG_CODE_INTERVAL));
        Pages { server, live, sessions, cookie, wrong_codes, audit }
    }

    /// Answers a link with a code; `None` if the request is another one. The code is used up, and whether a session
    /// begins is decided by it alone; the session that the browser had before ends then. `refused` checks whether the
    /// client may use this server at all.
    pub async fn sign_in<F: Future<Output = Option<Response<Body>>>>(
        &self,
        head: &Parts,
        signed_in: Option<&Caller>,
        refused: impl FnOnce() -> F,
    ) -> Option<Response<Body>> {
        let (code, target) = signed_out::link_of(head)?;
        // A browser that only prepares the page must not use up the code.
        if head.method != Method::GET || is_prefetch(&head.headers) {
            return Some(response::plain(StatusCode::METHOD_NOT_ALLOWED, "Open this link in a browser.\n"));
        }
        match self.sessions.has_code(&code) {
            Ok(true) => {}
            Ok(false) if signed_in.is_some() => return Some(signed_out::redirect(&target, None)),
            Ok(false) if !self.wrong_codes.admit() => {
                return Some(too_many("Too many links that are not valid."));
            }
            Ok(false) => return Some(signed_out::expired(head)),
            Err(error) => return Some(self.broken(&error)),
        }
        if let Some(refusal) = refused().await {
            return Some(refusal);
        }
        let device = head.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let begun = self.sessions.take_code(&code).and_then(|scope| match scope {
            Some(scope) => {
                if let Some(earlier) = signed_in.and_then(|caller| caller.session.as_ref()) {
                    earlier.end()?;
                }
                Ok(Some((scope, self.sessions.begin(scope, device.unwrap_or("unknown"))?)))
            }
            None => Ok(None),
        });
        Some(match begun {
            Ok(Some((scope, (secret, session)))) => {
                self.audit.record(&AuditLine::of_sign_in(scope, &session));
                signed_out::redirect(&target, self.cookie.set(secret.expose()))
            }
            Ok(None) => signed_out::expired(head),
            Err(error) => self.broken(&error),
        })
    }

    fn broken(&self, error: &std::io::Error) -> Response<Body> {
        tracing::error!(%error, "could not begin a session");
        response::plain(StatusCode::INTERNAL_SERVER_ERROR, "The session could not be stored.\n")
    }

    /// What someone without a session gets: files without data, or the way to sign in.
    pub fn respond_signed_out(&self, head: &Parts) -> Response<Body> {
        assets::find(head).unwrap_or_else(|| signed_out::page(head))
    }

    pub async fn respond(&self, head: &Parts, caller: Caller) -> Response<Body> {
        if let Some(asset) = assets::find(head) {
            return asset;
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            return response::plain(StatusCode::METHOD_NOT_ALLOWED, "Pages are only read.\n");
        }
        let own_secret = caller.session.as_ref().map(|session| session.secret.clone());
        let request = match PageRequest::of(head, caller) {
            Ok(request) => Arc::new(request),
            Err(problem) => {
                return response::plain(StatusCode::BAD_REQUEST, &format!("{}\n", problem.message));
            }
        };
        let (state, live, asked) = (Arc::clone(&self.server.state), self.live.clone(), Arc::clone(&request));
        let written =
            crate::mcp::server::run_blocking(move || Ok(routes::write(&state, &live, &asked))).await;
        let (status, html) = written.unwrap_or_else(|error: AppError| {
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("<p>{}</p>", maud::html! { (error.message) }.into_string()),
            )
        });
        let mut response = response::html(status, html, head);
        // The cookie lasts as long as its session, which this request has prolonged.
        let cookie = own_secret.and_then(|secret| self.cookie.set(secret.expose()));
        if let Some(cookie) = cookie {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        if request.is_fragment {
            response.headers_mut().insert(header::VARY, HeaderValue::from_static("x-fragment"));
        }
        response
    }
}
