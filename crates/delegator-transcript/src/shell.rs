//! Joins and splits command lines, and finds the script inside a shell wrapper.
//!
//! Codex runs nearly every command through a shell and reports `/bin/bash -lc 'cargo test'`; reports show
//! `cargo test`.

pub use shlex::split;

/// Joins words into a command line that a POSIX shell splits into the same words, quoted as Codex quotes
/// them.
pub fn join(words: &[String]) -> String {
    // With NUL allowed, quoting cannot fail.
    let quoter = shlex::Quoter::new().allow_nul(true);
    quoter.join(words.iter().map(String::as_str)).unwrap_or_default()
}

/// Returns the script inside `bash -lc '…'` and similar wrappers; any other command line unchanged.
pub(crate) fn unwrap(line: &str) -> String {
    script_in(line).unwrap_or_else(|| line.to_owned())
}

fn script_in(line: &str) -> Option<String> {
    let program = line.split([' ', '\t']).next()?.trim_matches(['\'', '"']);
    let name = program.rsplit(['/', '\\']).next()?.trim_end_matches(".exe");
    if !matches!(
        name,
        "bash" | "sh" | "zsh" | "dash" | "ksh" | "fish" | "ash" | "pwsh" | "powershell" | "cmd"
    ) {
        return None;
    }
    let words = split(line)?;
    let is_script_flag = |word: &&String| {
        let flags = word.strip_prefix('-').filter(|f| !f.starts_with('-'));
        flags.is_some_and(|flags| flags.len() <= 4 && flags.ends_with('c'))
            || word.eq_ignore_ascii_case("-command")
            || word.eq_ignore_ascii_case("/c")
    };
    let flag = words.iter().skip(1).take(4).position(|word| is_script_flag(&word))? + 1;
    match &words[flag + 1..] {
        [script] => Some(script.trim().to_owned()).filter(|script| !script.is_empty()),
        _ => None,
    }
}

/// Simple commands joined by pipes, each as its words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pipeline(pub(crate) Vec<Vec<String>>);

/// Returns the pipelines of a script in order, whatever joins them. Redirections are dropped, expansions are
/// not performed, and invalid syntax is tolerated: the result serves to recognise commands, never to run
/// them.
pub(crate) fn pipelines(script: &str) -> Vec<Pipeline> {
    let mut reader = ScriptReader::default();
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => reader.end_word(),
            '\'' => reader.word().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let word = reader.word();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    word.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => reader.word().push(c),
            },
            '|' if chars.next_if_eq(&'|').is_none() => {
                chars.next_if_eq(&'&');
                reader.end_command();
            }
            '>' | '<' => {
                // `2>&1`, `>> file`, `&> file`: the file is not a word of the command.
                reader.begin_redirection();
                while chars.next_if(|c| matches!(c, '>' | '<' | '&' | '|')).is_some() {}
            }
            '&' if chars.peek() == Some(&'>') => {}
            '|' | '&' | ';' | '\n' | '(' | ')' => reader.end_pipeline(),
            '#' if reader.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            c => reader.word().push(c),
        }
    }
    reader.end_pipeline();
    reader.pipelines
}

#[derive(Default)]
struct ScriptReader {
    pipelines: Vec<Pipeline>,
    pipeline: Pipeline,
    words: Vec<String>,
    word: Option<String>,
    is_redirection: bool,
}

impl ScriptReader {
    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn begin_redirection(&mut self) {
        // A descriptor number belongs to the redirection.
        self.word.take_if(|word| word.chars().all(|c| c.is_ascii_digit()));
        self.end_word();
        self.is_redirection = true;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !std::mem::take(&mut self.is_redirection) && !matches!(word.as_str(), "{" | "}" | "!") {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_redirection = false;
        if !self.words.is_empty() {
            self.pipeline.0.push(std::mem::take(&mut self.words));
        }
    }

    fn end_pipeline(&mut self) {
        self.end_command();
        if !self.pipeline.0.is_empty() {
            self.pipelines.push(std::mem::take(&mut self.pipeline));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shell_wrappers_are_removed() {
        for (line, script) in [
            ("/bin/bash -lc 'cargo test'", "cargo test"),
            ("bash -lc ls", "ls"),
            ("/usr/bin/zsh -l -c \"echo it's\"", "echo it's"),
            (r"sh -c 'echo '\''a'\'''", "echo 'a'"),
            ("cmd /c dir", "dir"),
            ("cargo test", "cargo test"),
            ("bash script.sh -c x y", "bash script.sh -c x y"),
            ("bash -lc 'unclosed", "bash -lc 'unclosed"),
            ("bash", "bash"),
            ("", ""),
        ] {
            assert_eq!(unwrap(line), script, "{line}");
        }
    }

    #[test]
    fn scripts_are_split_into_pipelines() {
        let joined_pipelines = |script: &str| -> Vec<Vec<String>> {
            let of = |pipeline: Pipeline| pipeline.0.iter().map(|words| words.join(" ")).collect();
            pipelines(script).into_iter().map(of).collect()
        };
        for (script, expected) in [
            ("cargo test 2>&1 | tail -5", vec![vec!["cargo test", "tail -5"]]),
            ("cd a && A=1 pytest 'x y' > log; ls", vec![vec!["cd a"], vec!["A=1 pytest x y"], vec!["ls"]]),
            ("a || b |& c &> d", vec![vec!["a"], vec!["b", "c"]]),
            ("(cd a; b) # c\nd", vec![vec!["cd a"], vec!["b"], vec!["d"]]),
            ("echo \"a\\\"b\" 'unclosed", vec![vec!["echo a\"b unclosed"]]),
            ("", vec![]),
        ] {
            assert_eq!(joined_pipelines(script), expected, "{script}");
        }
    }

    #[test]
    fn words_are_joined_as_codex_joins_them() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert_eq!(join(&words(&["/bin/bash", "-lc", "echo hi"])), "/bin/bash -lc 'echo hi'");
        assert_eq!(join(&words(&["echo", "it's", ""])), "echo \"it's\" ''");
        assert_eq!(join(&words(&["bash", "-lc", "ls"])), "bash -lc ls");
    }

    proptest! {
        #[test]
        fn joined_words_split_into_themselves(words in proptest::collection::vec(any::<String>(), 0..5)) {
            prop_assert_eq!(split(&join(&words)), Some(words));
        }
    }
}
