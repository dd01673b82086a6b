//! Whether a task's text plainly asks for git history, or files nobody has a copy of, to be thrown away.
//!
//! Words prove nothing about what an agent will do; safety rests on the sandbox and on restore points. This only catches
//! what is said outright, and asks the caller to mean it. So it is read as a person would: a command or an imperative
//! counts; a negation before it, a question about it, a quotation of it does not. In doubt the text is let through.

/// What was found, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestructiveRequest {
    /// As the text has it.
    pub phrase: String,
    /// Characters before it.
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
            Operation::ForcePush => "push to a new branch, or let a person force-push after a look at it",
            Operation::HardReset => {
                "use 'git stash' or a new branch, or 'mcp-delegator restore' after a task"
            }
            Operation::FilterHistory => "work in a fresh clone, and let a person replace the history",
            Operation::ReflogExpiry => "leave the reflog alone; git expires it by itself",
            Operation::CleanIgnored => {
                "use 'git clean -n' to see what would go, or name the folders to delete"
            }
        }
    }
}

/// A word of the text without the marks around it.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// A sentence or clause begins here.
    starts_clause: bool,
    /// A double quotation mark is open before it and was opened earlier than here.
    quoted: bool,
}

/// The first thing that is plainly asked for.
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
        // A line of a quotation is somebody else's.
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

/// The words of one command: up to where the next one or the next sentence begins.
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

/// The subcommand behind git's own options.
fn find_subcommand(lowercase: &[String], mut at: usize, end: usize) -> Option<usize> {
    while at < end && lowercase[at].starts_with('-') {
        at += if matches!(lowercase[at].as_str(), "-c" | "--git-dir" | "--work-tree") { 2 } else { 1 };
    }
    (at < end).then_some(at)
}

/// What a subcommand with these words does, and the last word that says so. Without `git` before it, only what follows
/// at once is taken for its options: `push` and `clean` are English, too.
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
/// Words by which a text talks about something instead of asking for it.
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
/// What follows where a command is only the name of something.
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
    // A quotation that only begins earlier is a text that is talked about; one that begins here may be the command.
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
    // "Explain the change and force-push it" asks for two things.
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
