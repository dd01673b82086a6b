//! Makes the title and the text of a notification from its template.

use std::collections::BTreeSet;

use delegator_domain::notification::{Placeholder, SubjectKind, Template};
use delegator_domain::task::EndCounts;

use crate::subject::{NotifiedTask, NotifiedWork};

/// A template that cannot be parsed was stored by another version of this program; the title is enough then.
pub(crate) fn render(work: &NotifiedWork, template: &str) -> (String, String) {
    let first =
        |field: fn(&NotifiedTask) -> &String| work.tasks.first().map(field).cloned().unwrap_or_default();
    let Ok(template) = Template::parse(template) else { return (first(|task| &task.title), String::new()) };
    template.render(|placeholder| match placeholder {
        Placeholder::Subject => work.subject.kind().name().to_owned(),
        Placeholder::SubjectId => work.subject.id().to_owned(),
        Placeholder::State => work.end.words().to_owned(),
        Placeholder::Counts => format_counts(work.counts),
        Placeholder::Title => first(|task| &task.title),
        Placeholder::Summary => summary(work),
        Placeholder::WorkingDir => first(|task| &task.working_dir),
        Placeholder::Agent => {
            let agents: BTreeSet<&str> = work.tasks.iter().map(|task| task.agent.as_str()).collect();
            agents.into_iter().collect::<Vec<_>>().join(", ")
        }
        Placeholder::Duration => work.duration_ms.map_or_else(|| "not run".to_owned(), format_duration),
    })
}

/// The summary of a task; of a group or a chain, the counts and a line about each task.
fn summary(work: &NotifiedWork) -> String {
    if let (SubjectKind::Task, [task]) = (work.subject.kind(), work.tasks.as_slice()) {
        return task.summary.clone().unwrap_or_default();
    }
    let lines = work.tasks.iter().map(|task| {
        let name = match task.attempt {
            Some(attempt) => format!("attempt {attempt} ({})", task.agent),
            None => format!("{} ({})", task.id, task.agent),
        };
        let summary = task.summary.as_deref().and_then(|summary| summary.lines().next()).unwrap_or_default();
        format!("{name} {}: {summary}", task.end.words())
    });
    std::iter::once(format_counts(work.counts)).chain(lines).collect::<Vec<_>>().join("\n")
}

/// `2 completed, 1 failed`: those that are not zero.
fn format_counts(counts: EndCounts) -> String {
    let EndCounts { completed, verify_failed, failed, cancelled, timeout, skipped } = counts;
    let counts = [
        (completed, "completed"),
        (verify_failed, "verify failed"),
        (failed, "failed"),
        (cancelled, "cancelled"),
        (timeout, "timeout"),
        (skipped, "skipped"),
    ];
    let shown = counts.into_iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn format_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Escapes what Slack and desktop notifications read as markup.
pub(crate) fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use delegator_domain::notification::DEFAULT_TEMPLATE;
    use delegator_domain::task::EndKind;

    use super::*;
    use crate::notification::tests::{ended_group, ended_task};

    #[test]
    fn a_task_has_its_own_summary() {
        let (title, text) = render(&ended_task(), "{subject} {state}\n{summary}; {counts}; {agent}");
        assert_eq!(
            (title.as_str(), text.as_str()),
            ("task failed", "Failed: the agent exited; 1 failed; codex")
        );
    }

    #[test]
    fn a_failed_check_is_in_the_title() {
        let mut work = ended_task();
        work.end = EndKind::VerifyFailed;
        assert_eq!(render(&work, DEFAULT_TEMPLATE).0, "verify failed: fix the test");
    }

    #[test]
    fn a_group_has_a_line_about_each_attempt() {
        let work = ended_group();
        let (title, text) = render(&work, DEFAULT_TEMPLATE);
        assert_eq!(title, "completed: fix the test");
        let expected = format!(
            "1 completed, 1 failed, 1 skipped\nattempt 1 (codex) failed: Failed: the agent exited\n\
             attempt 2 (claude) completed: Added the missing check\ngroup {}, 2 min 5 s, /home/me/project",
            work.subject.id()
        );
        assert_eq!(text, expected);
        assert_eq!(render(&work, "{agent}").0, "claude, codex");
    }

    #[test]
    fn durations_are_readable() {
        for (ms, text) in [(999, "0 s"), (59_000, "59 s"), (61_000, "1 min 1 s"), (3_720_000, "1 h 2 min")] {
            assert_eq!(format_duration(ms), text);
        }
    }
}
