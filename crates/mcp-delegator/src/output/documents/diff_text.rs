//! Renders the diff of a task as text: the diff itself for a terminal, one line per file, or only the paths.
//! Pure.
//!
//! File content comes from an agent, so on a terminal every line is sanitised. In a pipe the diff is not
//! changed at all, and this module is not used for it.

use anstyle::{AnsiColor, Style};
use delegator_domain::terminal;
use delegator_engine::FileDiff;

use crate::output::documents::document::plural;
use crate::output::documents::text::{HEADING, TextStyle};

/// The longest bar of a summary.
const BAR_WIDTH: u64 = 40;

const ADDED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const DELETED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const HUNK: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));

/// The diff, safe on a terminal and coloured if the style is.
pub fn for_terminal(diff: &str, style: TextStyle) -> String {
    let mut text = String::with_capacity(diff.len());
    let mut in_hunks = false;
    for line in diff.lines() {
        in_hunks = line.starts_with("@@ -") || (in_hunks && !line.starts_with("diff --git "));
        // A carriage return would begin a new line.
        let line = line.strip_suffix('\r').unwrap_or(line).replace('\r', "^M");
        let line = terminal::sanitize(&line);
        let look = match (in_hunks, line.as_bytes().first()) {
            (false, _) => HEADING,
            (true, Some(b'@')) => HUNK,
            (true, Some(b'+')) => ADDED,
            (true, Some(b'-')) => DELETED,
            (true, _) => Style::new(),
        };
        text.push_str(&style.paint(look, &line));
        text.push('\n');
    }
    text
}

pub fn names(files: &[&FileDiff<'_>]) -> String {
    files.iter().map(|file| format!("{}\n", shown_path(&file.path))).collect()
}

/// One line per file with the number of changed lines and a bar, and a line with the totals.
pub fn summary(files: &[&FileDiff<'_>], style: TextStyle) -> String {
    if files.is_empty() {
        return String::new();
    }
    let name = |file: &FileDiff<'_>| match file.old_path() {
        Some(old) => format!("{} => {}", shown_path(old), shown_path(&file.path)),
        None => shown_path(&file.path),
    };
    let names: Vec<String> = files.iter().map(|file| name(file)).collect();
    let counts: Vec<(u64, u64)> = files.iter().map(|file| file.line_counts()).collect();
    let most = counts.iter().map(|(added, deleted)| added + deleted).max().unwrap_or(0);
    let width = names.iter().map(|name| textwrap::core::display_width(name)).max().unwrap_or(0);
    let digits = most.to_string().len();
    let mut text = String::new();
    for ((file, name), (added, deleted)) in files.iter().zip(&names).zip(&counts) {
        let padding = " ".repeat(width - textwrap::core::display_width(name));
        let changes = if file.is_binary {
            "binary".to_owned()
        } else {
            let bar = |count: u64, sign: &str| sign.repeat(bar_length(count, most));
            let bars = [style.paint(ADDED, &bar(*added, "+")), style.paint(DELETED, &bar(*deleted, "-"))];
            format!("{:>digits$} {}", added + deleted, bars.concat())
        };
        text.push_str(format!(" {name}{padding} | {changes}").trim_end());
        text.push('\n');
    }
    let (added, deleted) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    format!("{text} {}\n", totals(files.len(), added, deleted))
}

/// `2 files changed, 3 lines added, 1 line deleted`.
pub fn totals(files: usize, added: u64, deleted: u64) -> String {
    let (added, deleted) = (plural(added, "line"), plural(deleted, "line"));
    format!("{} changed, {added} added, {deleted} deleted", plural(files, "file"))
}

/// In proportion, and at least one sign for a changed line.
fn bar_length(count: u64, most: u64) -> usize {
    let length = if most <= BAR_WIDTH { count } else { (count * BAR_WIDTH / most).max(count.min(1)) };
    usize::try_from(length).unwrap_or(0)
}

/// A path on one line. As git does, one with control characters, quotes or other bytes than UTF-8 is quoted.
pub fn shown_path(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text)
            if !text.contains(['"', '\\'])
                && terminal::sanitize(text) == text
                && !text.contains(['\n', '\t']) =>
        {
            text.to_owned()
        }
        _ => {
            let quoted = path.escape_ascii().to_string();
            format!("\"{}\"", quoted.replace("\\'", "'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use delegator_engine::parse_unified_diff;

    use super::*;

    const DIFF: &[u8] = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@ fn\n same\n-old\n+\x1b[2Jnew\rx\r\n\
                          diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n\
                          diff --git a/pic b/pic\nnew file mode 100644\nBinary files /dev/null and b/pic differ\n";

    #[test]
    fn file_content_cannot_control_the_terminal() {
        let style = TextStyle { columns: Some(80), is_colored: true, ..TextStyle::default() };
        let text = for_terminal(&String::from_utf8_lossy(DIFF), style);
        assert!(text.contains("\u{1b}[32m+new^Mx\u{1b}[0m\n"), "{text:?}");
        assert!(text.contains("\u{1b}[31m-old\u{1b}[0m\n") && !text.contains("[2J"), "{text:?}");
        assert!(text.contains("\u{1b}[1mdiff --git a/old b/new\u{1b}[0m\n"), "{text:?}");
        let plain = for_terminal(&String::from_utf8_lossy(DIFF), TextStyle::default());
        assert!(!plain.contains('\u{1b}') && plain.lines().count() == 14, "{plain:?}");
    }

    #[test]
    fn a_summary_has_one_line_per_file() {
        let files = parse_unified_diff(DIFF);
        let files: Vec<_> = files.iter().collect();
        assert_eq!(
            summary(&files, TextStyle::default()),
            " a          | 2 +-\n old => new | 0\n pic        | binary\n 3 files changed, 1 line added, 1 line deleted\n"
        );
        assert_eq!(names(&files), "a\nnew\npic\n");
        assert_eq!((bar_length(1, 1000), bar_length(0, 1000), bar_length(1000, 1000)), (1, 0, 40));
        assert_eq!(summary(&[], TextStyle::default()), "");
    }

    #[test]
    fn a_path_stays_on_its_line() {
        for (path, shown) in [
            (&b"plain name"[..], "plain name"),
            ("ä".as_bytes(), "ä"),
            (b"it's", "it's"),
            (b"new\nline", "\"new\\nline\""),
            (b"\x1b[2J", "\"\\x1b[2J\""),
            (b"quo\"te", "\"quo\\\"te\""),
        ] {
            assert_eq!(shown_path(path), shown);
        }
    }
}
