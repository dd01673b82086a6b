//! The diff of a task: its files, each of which can be collapsed. Pure.

use std::ops::Range;

use delegator_engine::parse_unified_diff;

use crate::output::documents::diff_text::shown_path;
use crate::watch::lines::{Look, TextLine, clean};

/// A diff with more lines is collapsed at first, and a file has at most this many.
const MAX_OPEN_LINES: usize = 1_500;
const MAX_LINES_OF_FILE: usize = 20_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffFile {
    path: String,
    heading: String,
    lines: Vec<TextLine>,
    is_open: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffPane {
    files: Vec<DiffFile>,
    /// The file that the keys are about.
    file: usize,
    note: String,
}

impl DiffPane {
    /// `note` says something about the diff as a whole.
    pub fn new(diff: &[u8], note: String) -> DiffPane {
        let files = parse_unified_diff(diff);
        let files: Vec<DiffFile> = files
            .iter()
            .map(|file| {
                let (added, deleted) = file.line_counts();
                let old = file.old_path().map(|old| format!("{} => ", shown_path(old))).unwrap_or_default();
                let lines =
                    if file.is_binary { "binary".to_owned() } else { format!("+{added} −{deleted}") };
                let path = shown_path(&file.path).to_string();
                let heading = format!("{old}{path}  {lines}");
                DiffFile { path, heading, lines: hunks(file.bytes), is_open: true }
            })
            .collect();
        let mut pane = DiffPane { files, file: 0, note };
        if pane.files.iter().map(|file| file.lines.len()).sum::<usize>() > MAX_OPEN_LINES {
            pane.files.iter_mut().skip(1).for_each(|file| file.is_open = false);
        }
        pane
    }

    pub fn lines(&self) -> Vec<TextLine> {
        let mut lines = Vec::new();
        if self.files.is_empty() && self.note.is_empty() {
            lines.push(TextLine::new(Look::Dim, "Nothing is changed."));
        }
        lines.extend(TextLine::all(Look::Note, &self.note));
        for (at, file) in self.files.iter().enumerate() {
            let (marker, sign) =
                (if at == self.file { '>' } else { ' ' }, if file.is_open { '▾' } else { '▸' });
            lines.push(TextLine::new(Look::Heading, format!("{marker}{sign} {}", file.heading)));
            lines.extend(file.lines.iter().filter(|_| file.is_open).cloned());
        }
        lines
    }

    /// The lines of the file that the keys are about, its heading first.
    pub fn selected(&self) -> Range<usize> {
        let of_file = |file: &DiffFile| 1 + if file.is_open { file.lines.len() } else { 0 };
        let start = TextLine::all(Look::Note, &self.note).len()
            + self.files.iter().take(self.file).map(of_file).sum::<usize>();
        start..start + self.files.get(self.file).map_or(0, of_file)
    }

    /// Collapses and selects what was collapsed and selected in an earlier diff of the task.
    pub fn continue_at(&mut self, old: &DiffPane) {
        for file in &mut self.files {
            let known = old.files.iter().find(|known| known.path == file.path);
            file.is_open = known.map_or(file.is_open, |known| known.is_open);
        }
        let selected = old.files.get(old.file).map(|file| &file.path);
        self.file = self.files.iter().position(|file| Some(&file.path) == selected).unwrap_or(0);
    }

    pub fn select(&mut self, by: isize) {
        self.file = self.file.saturating_add_signed(by).min(self.files.len().saturating_sub(1));
    }

    /// Selects the file that this line belongs to.
    pub fn select_at(&mut self, line: usize) {
        self.file = 0;
        while self.selected().end <= line && self.file + 1 < self.files.len() {
            self.file += 1;
        }
    }

    pub fn toggle(&mut self) {
        if let Some(file) = self.files.get_mut(self.file) {
            file.is_open = !file.is_open;
        }
    }

    pub fn toggle_all(&mut self) {
        let is_open = self.files.iter().any(|file| !file.is_open);
        self.files.iter_mut().for_each(|file| file.is_open = is_open);
    }
}

fn hunks(diff: &[u8]) -> Vec<TextLine> {
    let text = String::from_utf8_lossy(diff);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("@@ -"));
    let line = |line: &str| {
        let look = match line.as_bytes().first() {
            Some(b'@') => Look::Hunk,
            Some(b'+') => Look::Added,
            Some(b'-') => Look::Deleted,
            _ => Look::Plain,
        };
        // A carriage return would begin a new line.
        let line = line.strip_suffix('\r').unwrap_or(line).replace('\r', "^M");
        TextLine::new(look, clean(&line))
    };
    let mut shown: Vec<TextLine> =
        lines.by_ref().take(MAX_LINES_OF_FILE).flat_map(|text| line(text).pieces()).collect();
    let omitted = lines.count();
    if omitted > 0 {
        shown.push(TextLine::new(
            Look::Note,
            format!("{omitted} more lines are not shown; `diff` prints them"),
        ));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &[u8] = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+\x1b[2Jnew\n\
                          diff --git a/pic b/pic\nnew file mode 100644\nBinary files /dev/null and b/pic differ\n";

    fn shown(pane: &DiffPane) -> Vec<String> {
        pane.lines().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn files_are_collapsed_and_selected() {
        let mut pane = DiffPane::new(DIFF, "so far".to_owned());
        assert_eq!(shown(&pane), ["so far", ">▾ a  +1 −1", "@@ -1 +1 @@", "-old", "+new", " ▾ pic  binary"]);
        assert_eq!(pane.selected(), 1..5);
        pane.toggle();
        assert_eq!(shown(&pane), ["so far", ">▸ a  +1 −1", " ▾ pic  binary"]);
        pane.select(5);
        assert_eq!(pane.selected(), 2..3);
        pane.toggle_all();
        pane.select_at(3);
        assert_eq!(pane.selected(), 1..5);
        assert_eq!(shown(&DiffPane::new(b"", String::new())), ["Nothing is changed."]);
    }

    #[test]
    fn a_diff_that_is_read_again_keeps_its_place() {
        let mut old = DiffPane::new(DIFF, String::new());
        old.toggle();
        old.select(1);
        let mut new = DiffPane::new(DIFF, "a note of many words ".repeat(30));
        new.continue_at(&old);
        let lines = shown(&new);
        assert_eq!(lines[new.selected().start], ">▾ pic  binary", "{lines:?}");
        assert!(lines.contains(&" ▸ a  +1 −1".to_owned()), "{lines:?}");
    }

    #[test]
    fn lines_that_are_not_shown_are_counted() {
        let added = "+x\n".repeat(MAX_LINES_OF_FILE + 1);
        let diff = format!("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n{added}");
        let lines = shown(&DiffPane::new(diff.as_bytes(), String::new()));
        assert_eq!(lines.last().unwrap(), "2 more lines are not shown; `diff` prints them");
    }
}
