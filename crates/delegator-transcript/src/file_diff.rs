//! The changed lines of a file, each with `+`, `-` or a space before it.
//!
//! Agents write a unified diff, the text of a new file, or the texts before and after an edit; others write
//! nothing. The lines are for people who read the log of a task. Nothing is decided by them: what a task
//! changed is observed.

use crate::event::ChangeKind;
use crate::json::Text;

/// Open calls are held in memory, so a diff is bounded.
const MAX_BYTES: usize = 16 << 10;
const REST: &str = "[the rest of this edit is not stored]";
const CONTEXT_LINES: usize = 2;

/// A unified diff, or the text of a file that was added or deleted.
pub(crate) fn of_text(kind: ChangeKind, text: Text<'_>) -> Text<'_> {
    let sign = match kind {
        ChangeKind::Update if text.len() <= MAX_BYTES => return text,
        ChangeKind::Update => "",
        ChangeKind::Add => "+",
        ChangeKind::Delete => "-",
    };
    bounded(text.resolve().lines().map(|line| (sign, line)))
}

/// The lines that differ between two texts, as one hunk.
pub(crate) fn between(old: &str, new: &str) -> Text<'static> {
    let [old, new] = [old, new].map(|text| text.lines().collect::<Vec<_>>());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let deleted = &old_rest[..old_rest.len() - end];
    let added = &new_rest[..new_rest.len() - end];
    if deleted.is_empty() && added.is_empty() {
        return Text::default();
    }
    let before = &old[start.saturating_sub(CONTEXT_LINES)..start];
    let after = &old_rest[deleted.len()..][..end.min(CONTEXT_LINES)];
    let parts = [(" ", before), ("-", deleted), ("+", added), (" ", after)];
    bounded(parts.into_iter().flat_map(|(sign, lines)| lines.iter().map(move |line| (sign, *line))))
}

/// Lines behind their signs.
pub(crate) fn bounded<'t>(lines: impl Iterator<Item = (&'t str, &'t str)>) -> Text<'static> {
    let mut diff = String::new();
    for (sign, line) in lines {
        if diff.len() + line.len() >= MAX_BYTES {
            diff.push_str(REST);
            break;
        }
        diff.extend([sign, line, "\n"]);
    }
    Text::owned(diff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts_differ_in_one_hunk_with_context() {
        let diff = |old, new| between(old, new).resolve().into_owned();
        assert_eq!(diff("a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nD\ne\nf\ng"), " b\n c\n-d\n+D\n e\n f\n");
        assert_eq!(diff("a\na\n", "a\na\na\n"), " a\n a\n+a\n");
        assert_eq!(
            (diff("", "x\n"), diff("x", ""), diff("x", "x\n")),
            ("+x\n".into(), "-x\n".into(), "".into())
        );
    }

    #[test]
    fn the_text_of_a_file_is_marked_and_bounded() {
        let text = |kind, text: &str| of_text(kind, Text::plain(text)).resolve().into_owned();
        assert_eq!(text(ChangeKind::Add, "one\ntwo\n"), "+one\n+two\n");
        assert_eq!(text(ChangeKind::Delete, "one"), "-one\n");
        assert_eq!(text(ChangeKind::Update, "@@ -1 +1 @@\n-a\n+b\n"), "@@ -1 +1 @@\n-a\n+b\n");
        for kind in [ChangeKind::Add, ChangeKind::Update] {
            let long = text(kind, &"+line\n".repeat(MAX_BYTES));
            assert!(long.ends_with(REST) && long.len() < MAX_BYTES + REST.len() + 8, "{}", long.len());
        }
    }
}
