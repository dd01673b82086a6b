//! Parsers of what `codex cloud` (0.166.0) prints. Pure.
//!
//! They accept exactly the formats that Codex is known to print. Anything else is an error that states the
//! problem; no value is guessed. Codex exits with 1 for every failure but bad arguments, so the message
//! decides; warnings may precede it.

use crate::task::{DiffSize, HostedPage, HostedState, HostedStatus, HostedTaskRef};

/// Between the environment and the age of a task.
const SEPARATOR: &str = "  •  ";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParseProblem(pub(crate) String);

/// `exec` prints one line, the URL of the task: `https://chatgpt.com/codex/tasks/task_e_…`.
pub(crate) fn submitted(stdout: &str) -> Result<HostedTaskRef, ParseProblem> {
    let problem = |what: &str| ParseProblem(format!("{what}, expected the URL of a task"));
    let url = stdout.strip_suffix('\n').unwrap_or(stdout);
    let address = url.strip_prefix("https://").ok_or_else(|| problem("not an https URL"))?;
    let (host, id) = address.split_once("/codex/tasks/").ok_or_else(|| problem("another URL"))?;
    match (is_trusted_host(host), is_task_id(id)) {
        (false, _) => Err(problem("a URL of a host that Codex does not trust")),
        (true, false) => Err(problem("a URL without the id of a task")),
        (true, true) => Ok(HostedTaskRef { id: id.to_owned(), url: url.to_owned() }),
    }
}

/// The hosts to which Codex sends its credentials.
fn is_trusted_host(host: &str) -> bool {
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let is_subdomain =
        |of: &str| host.strip_suffix(of).is_some_and(|name| name.len() > 1 && name.ends_with('.'));
    is_name
        && (["chatgpt.com", "chat.openai.com", "chatgpt-staging.com"].contains(&host)
            || ["chatgpt.com", "chatgpt-staging.com"].into_iter().any(is_subdomain))
}

/// Whether the text is the id of a task, as in `task_e_6950526d82588330acae5990f198c79e`.
pub(crate) fn is_task_id(text: &str) -> bool {
    let rest = text.strip_prefix("task_").unwrap_or_default();
    let is_id_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=123).contains(&rest.len()) && rest.bytes().all(is_id_byte)
}

pub(crate) fn page(stdout: &str) -> Result<HostedPage, ParseProblem> {
    let page: HostedPage = serde_json::from_str(stdout).map_err(|error| ParseProblem(error.to_string()))?;
    for task in &page.tasks {
        if submitted(&task.url).is_ok_and(|reference| reference.id == task.id) {
            continue;
        }
        return Err(ParseProblem(format!("{:?} is not the id of a task at {:?}", task.id, task.url)));
    }
    Ok(page)
}

/// `status` prints three lines:
///
/// ```text
/// [READY] title
/// environment  •  2m ago
/// +3/-1 • 2 files
/// ```
///
/// A title may have several lines. A task without environment has only its age on the second one.
pub(crate) fn status(stdout: &str) -> Result<HostedStatus, ParseProblem> {
    let problem = |what: &str| {
        ParseProblem(format!("{what}, expected [STATE] title, environment and age, size of the diff"))
    };
    let text = stdout.strip_suffix('\n').unwrap_or(stdout);
    let mut from_end = text.rsplitn(3, '\n');
    let (Some(size), Some(place), Some(heading)) = (from_end.next(), from_end.next(), from_end.next()) else {
        return Err(problem("less than three lines"));
    };
    let (word, title) = heading
        .strip_prefix('[')
        .and_then(|heading| heading.split_once("] "))
        .ok_or_else(|| problem("no state in brackets"))?;
    let state = HostedState::from_name(word).ok_or_else(|| problem(&format!("unknown state {word:?}")))?;
    let diff_size = diff_size(size).ok_or_else(|| problem(&format!("no size of a diff: {size:?}")))?;
    if place.is_empty() {
        return Err(problem("an empty line"));
    }
    let environment = place.rsplit_once(SEPARATOR).map(|(environment, _age)| environment.to_owned());
    Ok(HostedStatus { state, title: title.to_owned(), environment, diff_size })
}

/// `no diff`, or `+3/-1 • 2 files`.
fn diff_size(line: &str) -> Option<DiffSize> {
    if line == "no diff" {
        return Some(DiffSize { files_changed: 0, lines_added: 0, lines_removed: 0 });
    }
    let (lines, files) = line.split_once(" • ")?;
    let (added, removed) = lines.split_once('/')?;
    let files = files.strip_suffix(" files").or_else(|| files.strip_suffix(" file"))?;
    Some(DiffSize {
        files_changed: files.parse().ok()?,
        lines_added: added.strip_prefix('+')?.parse().ok()?,
        lines_removed: removed.strip_prefix('-')?.parse().ok()?,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    NotSignedIn,
    /// The task has no diff, or none yet.
    NoDiff,
    TaskNotFound,
    AttemptNotFound,
    EnvironmentNotFound,
    Unreachable,
    Refused,
    Unknown,
}

pub(crate) fn classify(exit: Option<i32>, stderr: &str) -> Failure {
    if stderr.lines().any(|line| line.starts_with("Not signed in.")) {
        return Failure::NotSignedIn;
    }
    match exit {
        Some(2) => Failure::Refused,
        Some(1) => stderr
            .lines()
            .find_map(|line| line.strip_prefix("Error: "))
            .map_or(Failure::Unknown, classify_message),
        _ => Failure::Unknown,
    }
}

fn classify_message(message: &str) -> Failure {
    let begins = |beginning: &str| message.starts_with(beginning);
    if begins("No diff available for task ") {
        return Failure::NoDiff;
    }
    if begins("Attempt ") && message.contains(" not available; only ") {
        return Failure::AttemptNotFound;
    }
    if begins("no query provided") || begins("environment id must not be empty") {
        return Failure::Refused;
    }
    if begins("environment '")
        || begins("environment label '")
        || begins("no cloud environments are available")
    {
        return Failure::EnvironmentNotFound;
    }
    match http_status(message) {
        Some(401) => Failure::NotSignedIn,
        Some(404) if message.contains("get_task_details failed: ") => Failure::TaskNotFound,
        Some(_) => Failure::Unreachable,
        None if begins("http error: ") || begins("error sending request ") || begins("Decode error for ") => {
            Failure::Unreachable
        }
        None => Failure::Unknown,
    }
}

/// The status in `GET https://… failed: 404 Not Found; content-type=…; body=…`. The body may contain
/// anything, but it comes last.
fn http_status(message: &str) -> Option<u16> {
    let mut parts = message.split(" failed: ").skip(1);
    parts.find_map(|part| part.split(' ').next().filter(|word| word.len() == 3)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(files_changed: u64, lines_added: u64, lines_removed: u64) -> DiffSize {
        DiffSize { files_changed, lines_added, lines_removed }
    }

    #[test]
    fn a_submission_prints_the_url_of_the_task() {
        let url = "https://chatgpt.com/codex/tasks/task_e_6950526d82588330acae5990f198c79e";
        let expected =
            HostedTaskRef { id: "task_e_6950526d82588330acae5990f198c79e".to_owned(), url: url.to_owned() };
        assert_eq!(submitted(&format!("{url}\n")), Ok(expected));
        for host in ["chat.openai.com", "eu.chatgpt.com", "chatgpt-staging.com", "x.chatgpt-staging.com"] {
            assert!(submitted(&url.replace("chatgpt.com", host)).is_ok(), "{host}");
        }
    }

    #[test]
    fn no_id_is_taken_from_anything_but_one_url() {
        let not_urls = [
            "",
            "\n",
            "task_e_1\n",
            "Created https://chatgpt.com/codex/tasks/task_e_1\n",
            "https://chatgpt.com/codex/tasks/task_e_1\nhttps://chatgpt.com/codex/tasks/task_e_2\n",
            "https://chatgpt.com/codex/tasks/task_e_1\n\n",
            "http://chatgpt.com/codex/tasks/task_e_1\n",
            "https://chatgpt.com/codex/tasks/\n",
            "https://chatgpt.com/codex/tasks/task_e_1?x=1\n",
            "https://chatgpt.com/codex/tasks/--help\n",
            "https://chatgpt.com/c/task_e_1\n",
            "https:///codex/tasks/task_e_1\n",
            "https://chatgpt.com\n",
            "https://evil.example/codex/tasks/task_e_1\n",
            "https://evilchatgpt.com/codex/tasks/task_e_1\n",
            "https://chatgpt.com.evil.example/codex/tasks/task_e_1\n",
            "https://chatgpt.com@evil.example/codex/tasks/task_e_1\n",
            "https://.chatgpt.com/codex/tasks/task_e_1\n",
            "https://x.chat.openai.com/codex/tasks/task_e_1\n",
            "https://chatgpt.com:8443/codex/tasks/task_e_1\n",
            "https://chatgpt.com/x/codex/tasks/task_e_1\n",
            "https://chatgpt.com/codex/tasks/x/codex/tasks/task_e_1\n",
            "https://chatgpt.com/codex/tasks/task_\n",
            "https://chatgpt.com/codex/tasks/anything\n",
            "https://chatgpt.com/codex/tasks/../../logout\n",
        ];
        for text in not_urls {
            assert!(submitted(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_recorded_list_is_read() {
        let page = page(include_str!("../recordings/list.json")).unwrap();
        let states: Vec<HostedState> = page.tasks.iter().map(|task| task.state).collect();
        use HostedState::{Error, Pending, Ready};
        assert_eq!(states, [Ready, Pending, Error, Pending]);
        let first = &page.tasks[0];
        assert_eq!(
            (first.title.as_str(), first.diff_size, first.attempt_total),
            ("Fix\nit", size(1, 1, 1), Some(2))
        );
        assert_eq!(first.url, "https://chatgpt.com/codex/tasks/task_e_ready");
        assert_eq!(first.updated_at, "2026-11-16T00:02:00Z");
        assert_eq!(first.environment_label.as_deref(), Some("example/app"));
        assert_eq!(page.tasks[3].environment_label, None);
        assert_eq!(page.cursor.as_deref(), Some("4"));
    }

    #[test]
    fn a_list_with_a_missing_field_or_an_unknown_state_is_not_understood() {
        let list = include_str!("../recordings/list.json");
        for (old, new) in [
            ("\"status\": \"ready\"", "\"status\": \"running\""),
            ("\"status\": \"ready\",", ""),
            ("\"files_changed\": 1,", ""),
            ("\"id\": \"task_e_ready\"", "\"id\": \"task e\""),
            ("https://chatgpt.com/codex/tasks/task_e_ready", "https://evil.example/codex/tasks/task_e_ready"),
            ("https://chatgpt.com/codex/tasks/task_e_ready", "https://chatgpt.com/codex/tasks/task_e_other"),
            ("\"tasks\"", "\"items\""),
        ] {
            assert!(list.contains(old), "{old}");
            assert!(page(&list.replace(old, new)).is_err(), "{old}");
        }
        for text in ["", "No tasks found.\n", "{}", &list[..list.len() / 2]] {
            assert!(page(text).is_err(), "{text}");
        }
    }

    #[test]
    fn recorded_states_are_read() {
        use HostedState::{Applied, Error, Pending, Ready};
        let recorded = [
            ("[READY] Fix it\nexample/app  •  2m ago\n+12/-3 • 2 files\n", Ready, "Fix it", size(2, 12, 3)),
            ("[READY] Fix\nit\nexample/app  •  13h ago\n+1/-1 • 1 file\n", Ready, "Fix\nit", size(1, 1, 1)),
            ("[READY] [READY] x\nexample/app  •  just now\nno diff\n", Ready, "[READY] x", size(0, 0, 0)),
            ("[READY] \nexample/app  •  13h ago\nno diff\n", Ready, "", size(0, 0, 0)),
            ("[PENDING] Run\nexample/app  •  4s ago\nno diff\n", Pending, "Run", size(0, 0, 0)),
            ("[ERROR] Run\nexample/app  •  Nov 16 00:02\nno diff\n", Error, "Run", size(0, 0, 0)),
            ("[APPLIED] Run\nexample/app  •  1h ago\n+1/-0 • 1 file\n", Applied, "Run", size(1, 1, 0)),
        ];
        for (text, state, title, diff_size) in recorded {
            let environment = Some("example/app".to_owned());
            let expected = HostedStatus { state, title: title.to_owned(), environment, diff_size };
            assert_eq!(status(text), Ok(expected), "{text}");
        }
        assert_eq!(status("[PENDING] Run\n2m ago\nno diff\n").unwrap().environment, None);
    }

    #[test]
    fn a_status_in_another_form_is_not_understood() {
        let others = [
            "",
            "[READY] Fix it\n",
            "[READY] Fix it\nexample/app  •  2m ago\n",
            "[READY] Fix it\nexample/app  •  2m ago\n3 files\n",
            "[READY] Fix it\nexample/app  •  2m ago\n+x/-1 • 1 file\n",
            "[RUNNING] Fix it\nexample/app  •  2m ago\nno diff\n",
            "READY Fix it\nexample/app  •  2m ago\nno diff\n",
            "[\u{1b}[32mREADY\u{1b}[39m] Fix it\nexample/app  •  2m ago\nno diff\n",
            "[READY] Fix it\n\nno diff\n",
        ];
        for text in others {
            assert!(status(text).is_err(), "{text:?}");
        }
    }

    /// Recorded with Codex 0.166.0.
    const RECORDED: [(&str, Failure); 18] = [
        (
            "Not signed in. Please run 'codex login' to sign in with ChatGPT, then re-run 'codex cloud'.\n",
            Failure::NotSignedIn,
        ),
        (
            "WARNING: proceeding, even though we could not create PATH aliases: Refusing to create helper binaries\n\
             Not signed in. Please run 'codex login' to sign in with ChatGPT, then re-run 'codex cloud'.\n",
            Failure::NotSignedIn,
        ),
        (
            "Error: http error: list_tasks failed: GET https://chatgpt.com/backend-api/wham/tasks/list?limit=20 failed: \
             401 Unauthorized; content-type=application/json; body={\"detail\": \"Unauthorized\"}\n",
            Failure::NotSignedIn,
        ),
        (
            "Error: GET https://chatgpt.com/backend-api/wham/environments failed: 401 Unauthorized; \
             content-type=application/json; body={}\n",
            Failure::NotSignedIn,
        ),
        ("Error: No diff available for task task_e_404; it may still be running.\n", Failure::NoDiff),
        ("Error: Attempt 3 not available; only 2 attempt(s) found\n", Failure::AttemptNotFound),
        (
            "Error: http error: get_task_details failed: GET https://chatgpt.com/backend-api/wham/tasks/task_e_1 failed: \
             404 Not Found; content-type=application/json; body={\"detail\": \"Task not found\"}\n",
            Failure::TaskNotFound,
        ),
        (
            "Error: environment 'nope' not found; run `codex cloud` to list available environments\n",
            Failure::EnvironmentNotFound,
        ),
        (
            "Error: environment label 'dup' is ambiguous; run `codex cloud` to pick the desired environment id\n",
            Failure::EnvironmentNotFound,
        ),
        ("Error: environment id must not be empty\n", Failure::Refused),
        ("Error: no query provided via stdin (received empty input).\n", Failure::Refused),
        (
            "Error: http error: get_task_details failed: GET https://chatgpt.com/backend-api/wham/tasks/task_e_1 failed: \
             500 Internal Server Error; content-type=application/json; body={\"detail\": \"x failed: 404 Not Found\"}\n",
            Failure::Unreachable,
        ),
        (
            "Error: http error: list_tasks failed: GET https://chatgpt.com/backend-api/wham/tasks/list?limit=20 failed: \
             404 Not Found; content-type=application/json; body={}\n",
            Failure::Unreachable,
        ),
        (
            "Error: http error: get_task_details failed: error sending request for url (https://chatgpt.com/backend-api)\n",
            Failure::Unreachable,
        ),
        (
            "Error: error sending request for url (https://chatgpt.com/backend-api/wham/environments)\n\n\
             Caused by:\n    0: client error (Connect)\n",
            Failure::Unreachable,
        ),
        (
            "Error: Decode error for https://chatgpt.com/backend-api/wham/environments: expected value at line 1 column 1; \
             content-type=application/json; body=<html>a gateway</html>\n",
            Failure::Unreachable,
        ),
        ("Error: CODEX_CLOUD_TASKS_BASE_URL must use a trusted HTTPS origin on port 443\n", Failure::Unknown),
        ("", Failure::Unknown),
    ];

    #[test]
    fn recorded_failures_are_recognised() {
        for (stderr, expected) in RECORDED {
            assert_eq!(classify(Some(1), stderr), expected, "{stderr}");
        }
    }

    #[test]
    fn exit_code_2_means_bad_arguments() {
        let stderr = "error: invalid value '5' for '--attempt <N>': attempts must be between 1 and 4\n\n\
                      For more information, try '--help'.\n";
        assert_eq!(classify(Some(2), stderr), Failure::Refused);
        assert_eq!(classify(Some(101), "thread 'main' panicked\n"), Failure::Unknown);
        assert_eq!(classify(None, ""), Failure::Unknown, "killed by a signal");
    }
}
