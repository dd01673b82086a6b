//! Recognises why `codex cloud` (0.166.0) failed, from its exit code and its error output. Pure.
//!
//! Codex exits with 1 for everything but bad arguments, so the message decides. Warnings may precede it.

/// Why a call failed.
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
