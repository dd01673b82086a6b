//! Runs the user's command and `notify-send`, with a time limit.
//!
//! A program gets the stored variables of the submitter and a few about the notification, and runs in the
//! home directory: the directory of a task is not trusted. It succeeds with the exit code 0. At its end, and
//! at the time limit, its whole process group is killed.

#![expect(clippy::disallowed_methods, reason = "this module runs the notification programs")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use delegator_domain::text::last_line;
use delegator_subprocess::{Capture, End, Finished, Limits};

use crate::SendError;
use crate::notification::{Notification, Urgency};
use crate::settings::NotifySettings;
use crate::text::escape_markup;

pub const NOTIFY_SEND: &str = "notify-send";

const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How much of the error output is read for the reason of a failure.
const MAX_ERROR_BYTES: usize = 4 << 10;

pub(crate) fn run_command(settings: &NotifySettings, notification: &Notification) -> Result<(), SendError> {
    let (program, args) = settings
        .command
        .as_deref()
        .and_then(<[String]>::split_first)
        .ok_or_else(|| SendError::new("no command is configured"))?;
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    run(settings, notification, program, &args, TIME_LIMIT)
}

pub(crate) fn show_on_desktop(
    settings: &NotifySettings,
    notification: &Notification,
) -> Result<(), SendError> {
    let urgency = match notification.urgency() {
        Urgency::NeedsPerson | Urgency::Failed => "--urgency=critical",
        Urgency::Normal => "--urgency=normal",
    };
    let text = escape_markup(&notification.text);
    let args = ["--app-name=mcp-delegator", urgency, "--", &notification.title, &text].map(OsStr::new);
    run(settings, notification, NOTIFY_SEND, &args, TIME_LIMIT)
}

/// The path of a program: itself if it is absolute, otherwise its first match on `path`.
pub fn find_program(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_executable = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    let absolute = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    absolute.map(|folder| folder.join(program)).find(|path| is_executable(path))
}

fn run(
    settings: &NotifySettings,
    notification: &Notification,
    program: &str,
    args: &[&OsStr],
    limit: Duration,
) -> Result<(), SendError> {
    let path = find_program(program, settings.variable("PATH"))
        .ok_or_else(|| SendError::new(format!("the program {program} was not found")))?;
    let failed = |error: io::Error| SendError::new(format!("{program} could not be run: {error}"));
    let mut command = Command::new(path);
    command.args(args).env_clear().envs(settings.variables.iter().map(|(name, value)| (name, value)));
    command.envs(variables(notification)).current_dir(directory(settings));
    let limits = Limits {
        input: Some(&notification.to_json()?),
        time: limit,
        stdout: Capture::Nothing,
        stderr: Some(Capture::Beginning(MAX_ERROR_BYTES)),
        cancel: None,
        leaves_children: false,
    };
    let Finished { end, status, stderr, .. } =
        delegator_subprocess::run(command, &limits).map_err(|error| failed(error.into()))?;
    if end != End::Exited {
        return Err(SendError::new(format!(
            "{program} did not end within {} s and was killed",
            limit.as_secs()
        )));
    }
    if status.success() {
        return Ok(());
    }
    let line = last_line(&String::from_utf8_lossy(&stderr), MAX_ERROR_BYTES).map(|line| format!(": {line}"));
    Err(SendError::new(format!("{program} failed ({status}){}", line.unwrap_or_default())))
}

fn variables(notification: &Notification) -> [(&'static str, OsString); 8] {
    // A variable cannot contain NUL.
    let text = |text: &str| OsString::from(text.replace('\0', " "));
    let (kind, id, state) = notification.subject();
    [
        ("NOTIFICATION_ID", text(&notification.id)),
        ("NOTIFICATION_EVENT", text(&notification.event)),
        ("NOTIFICATION_SUBJECT", text(kind)),
        ("NOTIFICATION_SUBJECT_ID", text(&id)),
        ("NOTIFICATION_STATE", text(state)),
        ("NOTIFICATION_TITLE", text(&notification.title)),
        ("NOTIFICATION_TEXT", text(&notification.text)),
        ("NOTIFICATION_ATTEMPT", notification.delivery_attempt.to_string().into()),
    ]
}

fn directory(settings: &NotifySettings) -> &Path {
    settings.variable("HOME").map(Path::new).filter(|home| home.is_dir()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::notification::tests::ended_task;

    fn settings(command: &[&str]) -> NotifySettings {
        let environment: BTreeMap<OsString, OsString> = [("PATH".into(), "/usr/bin:/bin".into())].into();
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        NotifySettings::new(Some(command), None, None, &environment)
    }

    fn run_script(script: &str) -> Result<(), SendError> {
        let settings = settings(&["sh", "-c", script]);
        run_command(&settings, &Notification::new(&ended_task(), 2, &settings))
    }

    #[test]
    fn a_command_gets_json_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out").display().to_string();
        run_script(&format!(
            "{{ cat; echo; echo $NOTIFICATION_EVENT $NOTIFICATION_STATE $NOTIFICATION_ATTEMPT; }} > {file}"
        ))
        .unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        let mut lines = written.lines();
        let json: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(
            (json["subject"]["state"].as_str(), json["delivery_attempt"].as_u64()),
            (Some("failed"), Some(2))
        );
        assert_eq!(lines.next(), Some("task.ended failed 2"));
    }

    #[test]
    fn a_failure_names_exit_code_and_last_error_line() {
        let error = run_script("echo first >&2; echo no bus >&2; exit 3").unwrap_err();
        assert!(error.0.contains("exit status: 3") && error.0.ends_with(": no bus"), "{error}");
        let missing = settings(&["no-such-program"]);
        let error = run_command(&missing, &Notification::new(&ended_task(), 1, &missing)).unwrap_err();
        assert_eq!(error.0, "the program no-such-program was not found");
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let settings = settings(&[]);
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let args = ["-c", &script].map(OsStr::new);
        let notification = Notification::new(&ended_task(), 1, &settings);
        let error = run(&settings, &notification, "sh", &args, Duration::from_secs(1)).unwrap_err();
        assert!(error.0.contains("did not end within 1 s"), "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        // The signal was sent; the kernel ends the process soon.
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z")) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape_markup("<b>a & b</b>"), "&lt;b&gt;a &amp; b&lt;/b&gt;");
    }

    #[test]
    fn relative_directories_on_the_path_are_ignored() {
        assert!(find_program("sh", Some(OsStr::new("/usr/bin:/bin"))).is_some());
        assert_eq!(find_program("sh", Some(OsStr::new("bin:."))), None);
        assert_eq!(find_program("/bin/no-such-program", None), None);
    }
}
