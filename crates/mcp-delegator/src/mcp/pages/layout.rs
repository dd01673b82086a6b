//! What every page has around its main part.

use maud::{DOCTYPE, Markup, html};

use crate::mcp::pages::view::View;

/// What of the stream changes the page.
pub(super) enum Live {
    /// Every task.
    All,
    /// These tasks.
    Tasks(Vec<String>),
    /// It changes, and no stream says so.
    Poll,
    Nothing,
}

pub(super) struct Page {
    pub(super) title: String,
    pub(super) live: Live,
    pub(super) main: Markup,
}

const MENU: [(&str, &str); 5] = [
    ("/ui/tasks", "Tasks"),
    ("/ui/history", "History"),
    ("/ui/usage", "Usage"),
    ("/ui/fleet", "Fleet"),
    ("/ui/tasks/new", "New task"),
];

/// The main part alone, or the whole document.
pub(super) fn write(page: &Page, view: &View<'_>) -> String {
    let main = main(page);
    if view.request.is_fragment {
        return main.into_string();
    }
    let is_here = |path: &str| match path {
        "/ui/tasks" => matches!(view.request.path.as_str(), "/" | "/ui" | "/ui/tasks"),
        _ => view.request.path == path,
    };
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · mcp-delegator" }
                link rel="stylesheet" href="/ui/assets/dashboard.css";
                link rel="icon" href="/ui/assets/icon.svg" type="image/svg+xml";
                link rel="manifest" href="/manifest.webmanifest" crossorigin="use-credentials";
                script type="module" src="/ui/assets/dashboard.js" {}
            }
            body data-scope=(view.request.scope().name()) {
                a class="skip" href="#main" { "Skip to the content" }
                header class="top" {
                    a href="/" class="brand" { "mcp-delegator" }
                    nav aria-label="Pages" {
                        @for (path, name) in MENU {
                            @if path != "/ui/tasks/new" || view.may_write() {
                                a href=(path) aria-current=[is_here(path).then_some("page")] { (name) }
                            }
                        }
                    }
                    p id="connection" role="status" {}
                    button type="button" class="quiet" data-dialog="keys" hidden { "Keys" }
                }
                (main)
                footer {
                    form data-action="/api/v1/session/end" data-done="reload" data-confirm="Sign this browser out?" { button class="quiet" { "Sign out" } }
                }
                p id="toast" role="status" {}
                dialog id="dialog" aria-labelledby="dialog-title" {}
                noscript { p class="note" { "Without scripts this page does not change by itself, and actions are on the command line." } }
            }
        }
    };
    document.into_string()
}

fn main(page: &Page) -> Markup {
    let live = match &page.live {
        Live::All => "all".to_owned(),
        Live::Tasks(ids) => ids.join(" "),
        Live::Poll => "poll".to_owned(),
        Live::Nothing => String::new(),
    };
    html! {
        main id="main" tabindex="-1" data-live=(live) data-title=(page.title) { (page.main) }
    }
}
