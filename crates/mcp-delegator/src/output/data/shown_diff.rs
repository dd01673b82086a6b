//! The part of a long diff that a result shows. Pure.
//!
//! The files share the space equally, and what a small file does not need, the others get: one large file
//! does not hide the changes of the rest. Binary contents are left out first. Each gap has a line that says
//! how much is missing, so a shortened diff cannot be applied by mistake.

/// Less of a file says nothing; if there is not so much for each file, the last files are left out.
const MIN_FILE_BYTES: usize = 500;
/// Space for the line about a gap.
const NOTE_BYTES: usize = 80;

/// The diff in about this many bytes; `None` if all of it fits.
pub fn shorten(diff: &str, budget: usize) -> Option<String> {
    if diff.len() <= budget {
        return None;
    }
    let files = split_files(diff);
    let (listed, others) = files.split_at(listed_count(&files, budget));
    let share = fair_share(listed.iter().map(|file| without_binary(file).len()).collect(), budget);
    let mut text = String::new();
    for file in listed {
        let visible = whole_lines(without_binary(file), share);
        text.push_str(visible);
        let missing = file.len() - visible.len();
        if missing > 0 {
            text.push_str(&note(&format!("{missing} bytes of this file")));
        }
    }
    if !others.is_empty() {
        let missing: usize = others.iter().map(|file| file.len()).sum();
        let plural = if others.len() == 1 { "" } else { "s" };
        text.push_str(&note(&format!("{} more file{plural} with {missing} bytes", others.len())));
    }
    Some(text)
}

/// How many files can be shown, each with at least [`MIN_FILE_BYTES`] or whole; not less than one.
fn listed_count(files: &[&str], budget: usize) -> usize {
    let minimum = |file: &&str| without_binary(file).len().min(MIN_FILE_BYTES);
    let needed = files.iter().scan(0, |sum, file| {
        *sum += minimum(file);
        Some(*sum)
    });
    needed.take_while(|sum| *sum <= budget).count().max(1)
}

fn note(missing: &str) -> String {
    format!("[{missing} left out; the command 'diff' prints all]\n")
}

/// The changes of each file. The lines of a change never begin with this word: they have a sign or are
/// encoded.
fn split_files(diff: &str) -> Vec<&str> {
    let mut files = Vec::new();
    let mut rest = diff;
    while let Some(at) = rest.find("\ndiff --git ") {
        let (file, next) = rest.split_at(at + 1);
        files.push(file);
        rest = next;
    }
    files.push(rest);
    files
}

fn without_binary(file: &str) -> &str {
    file.find("\nGIT binary patch\n").map_or(file, |at| &file[..=at])
}

/// The largest space per file with which all fit.
fn fair_share(mut lengths: Vec<usize>, budget: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut count) = (budget, lengths.len());
    for length in lengths {
        let share = left / count;
        if length > share {
            return share;
        }
        (left, count) = (left - length, count - 1);
    }
    budget
}

/// The text if it fits, else as many of its lines as fit together with the line about the gap.
fn whole_lines(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = text.floor_char_boundary(limit.saturating_sub(NOTE_BYTES));
    &text[..text[..end].rfind('\n').map_or(0, |newline| newline + 1)]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn file(name: &str, lines: usize) -> String {
        let added = "+a line of this file\n".repeat(lines);
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n{added}")
    }

    #[test]
    fn a_large_file_does_not_hide_the_others() {
        let (small, large) = (file("small", 3), file("large", 1_000));
        let minified = format!("{}+{}\n", file("minified", 0), "x".repeat(50_000));
        let shown = shorten(&format!("{large}{minified}{small}"), 4_000).unwrap();
        assert!(shown.ends_with(&small) && shown.len() <= 4_000, "{shown}");
        assert!(shown.contains("a/minified") && !shown.contains("xxx"), "{shown}");
        assert!(shown.matches("+a line").count() > 80, "it gets what the small file does not need: {shown}");
        assert_eq!(
            shown.matches(" bytes of this file left out; the command 'diff' prints all]\n").count(),
            2
        );
    }

    #[test]
    fn binary_contents_are_left_out_first() {
        let binary = format!(
            "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 9\n{}\n",
            "zcmV".repeat(100)
        );
        let text = file("text", 30);
        let shown = shorten(&format!("{binary}{text}"), 900).unwrap();
        assert!(shown.starts_with("diff --git a/x b/x\nindex 1..2 100644\n[4"), "{shown}");
        assert!(shown.ends_with(&text), "{shown}");
    }

    #[test]
    fn many_files_are_counted() {
        let diff: String = (0..100).map(|number| file(&number.to_string(), 30)).collect();
        let shown = shorten(&diff, 2_000).unwrap();
        assert!(shown.contains("[96 more files with ") && shown.matches("+++ b/").count() == 4, "{shown}");
    }

    proptest! {
        #[test]
        fn a_diff_is_whole_or_fits(sizes in vec(0_usize..400, 1..20), budget in 500_usize..20_000) {
            let diff: String = sizes.iter().map(|size| file("f", *size)).collect();
            match shorten(&diff, budget) {
                None => prop_assert!(diff.len() <= budget),
                Some(shown) => prop_assert!(shown.len() <= budget + NOTE_BYTES, "{} {budget}", shown.len()),
            }
        }
    }
}
