//! What a browser without a session is shown, and the link that begins one.

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use crate::mcp::api::routes::query_pairs;
use crate::mcp::pages::response;
use crate::mcp::transport::http::Body;

/// The code of the link, and the path that it leads to.
pub(super) fn link_of(head: &Parts) -> Option<(String, String)> {
    if head.uri.path() != "/" {
        return None;
    }
    let pairs = query_pairs(head.uri.query()).ok()?;
    let value = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let target = value("to").filter(|path| is_page(path)).unwrap_or_else(|| "/".to_owned());
    Some((value("code")?, target))
}

/// Whether it is the path of one of our pages, and nothing that a browser takes for another host.
fn is_page(path: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_/.?=&%".contains(letter);
    path.starts_with("/ui/") && path.chars().all(is_allowed) && !path.contains("..") && !path.contains("//")
}

pub(super) fn redirect(target: &str, cookie: Option<HeaderValue>) -> Response<Body> {
    let mut response = response::plain(StatusCode::SEE_OTHER, "Signed in.\n");
    let headers = response.headers_mut();
    headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    headers.extend(HeaderValue::from_str(target).ok().map(|target| (header::LOCATION, target)));
    response
}

pub(super) fn expired(head: &Parts) -> Response<Body> {
    let text = html! {
        p { "This link is not valid any more: a link signs in one browser, within 60 seconds." }
    };
    response::html(StatusCode::FORBIDDEN, document(&text, None), head)
}

pub(super) fn page(head: &Parts) -> Response<Body> {
    // A browser does not send a strict cookie with a navigation that another site began, such as a link in a
    // notification. A request that this page makes has it.
    let from = head.headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_navigation = head.headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    if from == Some("cross-site") && is_navigation && (target == "/" || is_page(target)) {
        let text = html! { p { "One moment …" } };
        return response::html(StatusCode::OK, document(&text, Some(target)), head);
    }
    let text = html! {
        p { "This browser is not signed in. A session ends 12 hours after it was last used." }
    };
    response::html(StatusCode::UNAUTHORIZED, document(&text, None), head)
}

fn document(text: &Markup, reload: Option<&str>) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if let Some(path) = reload { meta http-equiv="refresh" content=(format!("0; url={path}")); }
                title { "Sign in · mcp-delegator" }
                link rel="stylesheet" href="/ui/assets/dashboard.css";
                link rel="icon" href="/ui/assets/icon.svg" type="image/svg+xml";
            }
            body class="signed-out" {
                main {
                    h1 { "mcp-delegator" }
                    (text)
                    @if reload.is_none() {
                        p { "To sign in, run this on the machine of the tasks, and open the link that it prints:" }
                        pre { "mcp-delegator dashboard" }
                        p { "For a phone: " code { "mcp-delegator dashboard --pair" } }
                    }
                }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(target: &str) -> Option<(String, String)> {
        let (head, ()) = http::Request::get(target).body(()).unwrap().into_parts();
        link_of(&head)
    }

    #[test]
    fn a_link_leads_only_to_pages_of_this_server() {
        for (target, expected) in [
            ("/?code=c", Some("/")),
            ("/?code=c&to=/ui/tasks/T-1", Some("/ui/tasks/T-1")),
            ("/?code=c&to=//evil.com", Some("/")),
            ("/?code=c&to=/ui//evil.com", Some("/")),
            ("/?code=c&to=https://evil.com/ui/", Some("/")),
            ("/?code=c&to=/ui/%0d%0aset-cookie:x", Some("/")),
            ("/?code=c&to=/ui/../api/v1/tasks", Some("/")),
            ("/?code=c&to=/ui/\\evil.com", Some("/")),
            ("/?to=/ui/tasks", None),
            ("/ui/tasks?code=c", None),
        ] {
            assert_eq!(link(target).map(|(_, target)| target).as_deref(), expected, "{target}");
        }
    }
}
