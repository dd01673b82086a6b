//! Detects a task text that explicitly requests a destructive git operation: rewriting history, or deleting files
//! that have no copy.
//!
//! The caller then has to confirm the task. This is no safety boundary: the sandbox and restore points protect the
//! repository. Only a command or an imperative counts; a negation before it, a question about it or a quotation of
//! it does not. When in doubt, the text passes.

/// A requested destructive operation and a safer alternative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestructiveRequest {
    /// The words of the text that request the operation.
    pub phrase: String,
    /// Number of characters before the phrase.
    pub position: usize,
    pub description: &'static str,
    pub alternative: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    ForcePush,
    HardReset,
    FilterHistory,
    ReflogExpiry,
    CleanIgnored,
}

impl Operation {
    fn description(self) -> &'static str {
        match self {
            Operation::ForcePush => "a force-push",
            Operation::HardReset => "a hard reset",
            Operation::FilterHistory => "a rewrite of the whole history",
            Operation::ReflogExpiry => "an expiry of the reflog",
            Operation::CleanIgnored => "a clean that also deletes ignored files",
        }
    }

    fn alternative(self) -> &'static str {
        match self {
            Operation::ForcePush => "push to a new branch, or let a person review it and force-push",
            Operation::HardReset => {
                "use 'git stash' or a new branch, or 'mcp-delegator restore' after a task"
            }
            Operation::FilterHistory => "work in a fresh clone, and let a person replace the history",
            Operation::ReflogExpiry => "leave the reflog alone; git expires it automatically",
            Operation::CleanIgnored => {
                "use 'git clean -n' to list what would be deleted, or name the directories to delete"
            }
        }
    }
}

/// A word of the text without surrounding punctuation.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Whether a sentence or clause starts at this word.
    starts_clause: bool,
    /// Whether the word is inside a double quotation that starts before it.
    quoted: bool,
}

/// The first destructive operation that the text requests.
pub fn find(text: &str) -> Option<DestructiveRequest> {
    let words = words(text);
    let lowercase: Vec<String> = words.iter().map(|word| word.text.to_lowercase()).collect();
    (0..words.len()).find_map(|at| {
        let (operation, length) = match_operation(&words, &lowercase, at)?;
        is_requested(text, &words, &lowercase, at, at + length).then(|| {
            let (first, last) = (words[at], words[at + length - 1]);
            DestructiveRequest {
                phrase: text[first.start..last.end].to_owned(),
                position: text[..first.start].chars().count(),
                description: operation.description(),
                alternative: operation.alternative(),
            }
        })
    })
}

fn words(text: &str) -> Vec<Word<'_>> {
    const MARKS: &[char] = &[
        '`', '"', '\'', '(', ')', '[', ']', '{', '}', '*', '“', '”', '‘', '’', ':', ',', ';', '!', '?', '.',
        '$',
    ];
    let mut found = Vec::new();
    let mut open_quote = false;
    for (line_start, line) in lines(text) {
        let mut starts_clause = true;
        // A Markdown quotation cites a text; it requests nothing.
        if line.trim_start().starts_with('>') {
            continue;
        }
        for (at, raw) in whitespace_tokens(line) {
            let inner = raw.trim_matches(MARKS);
            let before = &raw[..raw.len() - raw.trim_start_matches(MARKS).len()];
            let after = if inner.is_empty() { "" } else { &raw[before.len() + inner.len()..] };
            let was_open = open_quote;
            open_quote ^= raw.matches(['"', '“', '”']).count() % 2 == 1;
            if !inner.is_empty() {
                let start = line_start + at + before.len();
                found.push(Word {
                    text: inner,
                    start,
                    end: start + inner.len(),
                    starts_clause,
                    quoted: was_open,
                });
                starts_clause = false;
            }
            let closes = after.contains([',', ';', '!', '?', ':']) || after.contains('.');
            starts_clause |= closes || matches!(raw, "&&" | "||" | "|" | "-" | "–" | "—");
        }
    }
    found
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |start, line| {
        let at = *start;
        *start += line.len();
        Some((at, line))
    })
}

fn whitespace_tokens(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

/// End of the command that starts at `from`: where the next command, sentence or clause starts.
fn command_end(words: &[Word<'_>], from: usize) -> usize {
    (from + 1..words.len()).find(|at| words[*at].starts_clause).unwrap_or(words.len())
}

fn match_operation(words: &[Word<'_>], lowercase: &[String], at: usize) -> Option<(Operation, usize)> {
    let word = |offset: usize| lowercase.get(at + offset).map(String::as_str).unwrap_or_default();
    let joined = |offset: usize| words.get(at + offset).is_some_and(|word| !word.starts_clause);
    match word(0) {
        "force-push" | "force-pushing" => return Some((Operation::ForcePush, 1)),
        "force" if joined(1) && matches!(word(1), "push" | "pushing") => {
            return Some((Operation::ForcePush, 2));
        }
        "hard-reset" => return Some((Operation::HardReset, 1)),
        "hard" if joined(1) && word(1) == "reset" => return Some((Operation::HardReset, 2)),
        "expire" | "purge" if joined(2) && word(1) == "the" && word(2) == "reflog" => {
            return Some((Operation::ReflogExpiry, 3));
        }
        "filter-branch" | "filter-repo" | "git-filter-repo" => return Some((Operation::FilterHistory, 1)),
        _ => {}
    }
    let end = command_end(words, at);
    let (verb, is_git) = match word(0) {
        "git" => (find_subcommand(lowercase, at + 1, end)?, true),
        _ => (at, false),
    };
    let args: Vec<(usize, &str)> = (verb + 1..end).map(|at| (at, words[at].text)).collect();
    let (operation, last) = match_subcommand(&lowercase[verb], &args, is_git)?;
    Some((operation, last + 1 - at))
}

/// Position of the subcommand after the global options of git.
fn find_subcommand(lowercase: &[String], mut at: usize, end: usize) -> Option<usize> {
    while at < end && lowercase[at].starts_with('-') {
        at += if matches!(lowercase[at].as_str(), "-c" | "--git-dir" | "--work-tree") { 2 } else { 1 };
    }
    (at < end).then_some(at)
}

/// The operation of a subcommand, and the index of the last word that identifies it. Without `git` before it, only
/// the options directly after it count, because `push` and `clean` are also English words.
fn match_subcommand(verb: &str, args: &[(usize, &str)], is_git: bool) -> Option<(Operation, usize)> {
    let considered =
        if is_git { args.len() } else { args.iter().take_while(|(_, arg)| arg.starts_with('-')).count() };
    let args = &args[..considered];
    let flag = |long: &[&str], short: &[char]| {
        args.iter().find(|(_, arg)| match arg.strip_prefix("--") {
            Some(name) => long.contains(&name.split('=').next().unwrap_or_default()),
            None => arg.strip_prefix('-').is_some_and(|letters| {
                letters.chars().all(|letter| letter.is_ascii_alphabetic()) && letters.contains(short)
            }),
        })
    };
    match verb {
        "push" => {
            let forced = flag(&["force", "force-with-lease", "force-if-includes", "mirror"], &['f']);
            let forced =
                forced.or_else(|| args.iter().find(|(_, arg)| arg.len() > 1 && arg.starts_with('+')));
            forced.map(|(at, _)| (Operation::ForcePush, *at))
        }
        "reset" => flag(&["hard"], &[]).map(|(at, _)| (Operation::HardReset, *at)),
        "reflog" => {
            let (at, word) = args.first()?;
            matches!(*word, "expire" | "delete").then_some((Operation::ReflogExpiry, *at))
        }
        "clean" => {
            let forced = flag(&["force"], &['f'])?;
            let ignored = flag(&[], &['x', 'X'])?;
            Some((Operation::CleanIgnored, forced.0.max(ignored.0)))
        }
        _ => None,
    }
}

const NEGATIONS: &[&str] = &[
    "not",
    "never",
    "no",
    "without",
    "avoid",
    "avoids",
    "avoiding",
    "cannot",
    "instead",
    "rather",
    "refrain",
    "forbid",
    "forbids",
    "forbidden",
    "prevent",
    "prevents",
    "prohibit",
    "prohibits",
    "refuse",
    "refuses",
    "reject",
    "rejects",
    "block",
    "blocks",
    "nor",
    "neither",
];
/// Words that show that a clause mentions a command instead of requesting it.
const MENTION_WORDS: &[&str] = &[
    "explain",
    "explains",
    "explaining",
    "describe",
    "describes",
    "document",
    "documents",
    "documenting",
    "discuss",
    "mention",
    "mentions",
    "mentioning",
    "mentioned",
    "warn",
    "warns",
    "warning",
    "summarize",
    "summarise",
    "what",
    "why",
    "how",
    "when",
    "whether",
    "where",
    "who",
    "which",
    "find",
    "search",
    "grep",
    "detect",
    "detects",
    "count",
    "list",
    "ran",
    "did",
    "was",
    "were",
    "had",
    "has",
    "been",
    "runs",
    "calls",
    "does",
    "uses",
    "executes",
    "performs",
    "accidentally",
    "someone",
    "somebody",
    "example",
    "called",
    "named",
    "says",
    "said",
    "recover",
    "after",
    "support",
    "implement",
    "parse",
];
/// Words directly after a command that show that it is only mentioned (`the git push --force flag`).
const NOUNS_AFTER_MENTION: &[&str] = &[
    "line",
    "lines",
    "section",
    "example",
    "examples",
    "paragraph",
    "sentence",
    "warning",
    "flag",
    "option",
    "docs",
    "documentation",
    "hint",
    "mention",
    "mentions",
    "message",
    "error",
    "test",
    "tests",
    "check",
    "checks",
    "button",
    "support",
    "feature",
    "detection",
    "detector",
    "handler",
    "policy",
    "rule",
    "protection",
    "means",
    "does",
    "is",
    "was",
];

fn is_requested(text: &str, words: &[Word<'_>], lowercase: &[String], from: usize, to: usize) -> bool {
    // A word inside a quotation that starts earlier is cited text; a quotation that starts at this word may be the
    // command.
    if words[from].quoted {
        return false;
    }
    let clause_start = (0..=from).rev().find(|at| words[*at].starts_clause).unwrap_or(0);
    let mut clause = &lowercase[clause_start..from];
    if clause
        .iter()
        .any(|word| NEGATIONS.contains(&word.as_str()) || word.ends_with("n't") || word.ends_with("n’t"))
    {
        return false;
    }
    // "Explain the change and force-push it" contains two requests; only the last one is judged.
    let is_action_verb = |word: &str| matches!(word, "run" | "do" | "execute" | "perform" | "use" | "then");
    let starts_new_request = |at: usize| {
        let next = clause.get(at + 1).map_or(lowercase[from].as_str(), String::as_str);
        clause[at] == "then"
            || clause[at] == "and"
                && (is_action_verb(next) || at + 1 == clause.len() && next.starts_with("force"))
    };
    if let Some(at) = (0..clause.len()).rev().find(|at| starts_new_request(*at)) {
        clause = &clause[at + 1..];
    }
    if clause.iter().any(|word| MENTION_WORDS.contains(&word.as_str())) {
        return false;
    }
    let is_mention = words.get(to).is_some_and(|next| {
        !next.starts_clause
            && !text[words[to - 1].end..next.start].contains('\n')
            && NOUNS_AFTER_MENTION.contains(&lowercase[to].as_str())
    });
    !is_mention
}

#[cfg(test)]
mod tests;
