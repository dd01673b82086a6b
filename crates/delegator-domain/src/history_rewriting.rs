//! Whether a task's text plainly asks for git history, or files nobody has a copy of, to be thrown away.
//!
//! Words prove nothing about what an agent will do; safety rests on the sandbox and on restore points. This only catches
//! what is said outright, and asks the caller to mean it. So it is read as a person would: a command or an imperative
//! counts; a negation before it, a question about it, a quotation of it does not. In doubt the text is let through.

/// What was found, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewriting {
    /// As the text has it.
    pub phrase: String,
    /// Characters before it.
    pub position: usize,
    pub what: &'static str,
    pub alternative: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ForcePush,
    HardReset,
    FilterHistory,
    ReflogExpiry,
    CleanIgnored,
}

impl Kind {
    fn what(self) -> &'static str {
        match self {
            Kind::ForcePush => "a force-push",
            Kind::HardReset => "a hard reset",
            Kind::FilterHistory => "a rewrite of the whole history",
            Kind::ReflogExpiry => "an expiry of the reflog",
            Kind::CleanIgnored => "a clean that also deletes ignored files",
        }
    }

    fn alternative(self) -> &'static str {
        match self {
            Kind::ForcePush => "push to a new branch, or let a person force-push after a look at it",
            Kind::HardReset => "use 'git stash' or a new branch, or 'mcp-delegator restore' after a task",
            Kind::FilterHistory => "work in a fresh clone, and let a person replace the history",
            Kind::ReflogExpiry => "leave the reflog alone; git expires it by itself",
            Kind::CleanIgnored => "use 'git clean -n' to see what would go, or name the folders to delete",
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
    opens: bool,
    /// A double quotation mark is open before it and was opened earlier than here.
    quoted: bool,
}

/// The first thing that is plainly asked for.
pub fn find(text: &str) -> Option<Rewriting> {
    let words = words(text);
    let lowered: Vec<String> = words.iter().map(|word| word.text.to_lowercase()).collect();
    (0..words.len()).find_map(|at| {
        let (kind, length) = matched(&words, &lowered, at)?;
        is_asked_for(text, &words, &lowered, at, at + length).then(|| {
            let (first, last) = (words[at], words[at + length - 1]);
            Rewriting {
                phrase: text[first.start..last.end].to_owned(),
                position: text[..first.start].chars().count(),
                what: kind.what(),
                alternative: kind.alternative(),
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
        let mut opens = true;
        // A line of a quotation is somebody else's.
        if line.trim_start().starts_with('>') {
            continue;
        }
        for (at, raw) in spaced(line) {
            let inner = raw.trim_matches(MARKS);
            let before = &raw[..raw.len() - raw.trim_start_matches(MARKS).len()];
            let after = if inner.is_empty() { "" } else { &raw[before.len() + inner.len()..] };
            let was_open = open_quote;
            open_quote ^= raw.matches(['"', '“', '”']).count() % 2 == 1;
            if !inner.is_empty() {
                let start = line_start + at + before.len();
                found.push(Word { text: inner, start, end: start + inner.len(), opens, quoted: was_open });
                opens = false;
            }
            let closes = after.contains([',', ';', '!', '?', ':']) || after.contains('.');
            opens |= closes || matches!(raw, "&&" | "||" | "|" | "-" | "–" | "—");
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

fn spaced(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

/// The words of one command: up to where the next one or the next sentence begins.
fn command_end(words: &[Word<'_>], from: usize) -> usize {
    (from + 1..words.len()).find(|at| words[*at].opens).unwrap_or(words.len())
}

fn matched(words: &[Word<'_>], lowered: &[String], at: usize) -> Option<(Kind, usize)> {
    let word = |offset: usize| lowered.get(at + offset).map(String::as_str).unwrap_or_default();
    let joined = |offset: usize| words.get(at + offset).is_some_and(|word| !word.opens);
    match word(0) {
        "force-push" | "force-pushing" => return Some((Kind::ForcePush, 1)),
        "force" if joined(1) && matches!(word(1), "push" | "pushing") => return Some((Kind::ForcePush, 2)),
        "hard-reset" => return Some((Kind::HardReset, 1)),
        "hard" if joined(1) && word(1) == "reset" => return Some((Kind::HardReset, 2)),
        "expire" | "purge" if joined(2) && word(1) == "the" && word(2) == "reflog" => {
            return Some((Kind::ReflogExpiry, 3));
        }
        "filter-branch" | "filter-repo" | "git-filter-repo" => return Some((Kind::FilterHistory, 1)),
        _ => {}
    }
    let end = command_end(words, at);
    let (verb, is_git) = match word(0) {
        "git" => (verb_of(lowered, at + 1, end)?, true),
        _ => (at, false),
    };
    let args: Vec<(usize, &str)> = (verb + 1..end).map(|at| (at, words[at].text)).collect();
    let (kind, last) = subcommand(&lowered[verb], &args, is_git)?;
    Some((kind, last + 1 - at))
}

/// The subcommand behind git's own options.
fn verb_of(lowered: &[String], mut at: usize, end: usize) -> Option<usize> {
    while at < end && lowered[at].starts_with('-') {
        at += if matches!(lowered[at].as_str(), "-c" | "--git-dir" | "--work-tree") { 2 } else { 1 };
    }
    (at < end).then_some(at)
}

/// What a subcommand with these words does, and the last word that says so. Without `git` before it, only what follows
/// at once is taken for its options: `push` and `clean` are English, too.
fn subcommand(verb: &str, args: &[(usize, &str)], is_git: bool) -> Option<(Kind, usize)> {
    let near =
        if is_git { args.len() } else { args.iter().take_while(|(_, arg)| arg.starts_with('-')).count() };
    let args = &args[..near];
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
            forced.map(|(at, _)| (Kind::ForcePush, *at))
        }
        "reset" => flag(&["hard"], &[]).map(|(at, _)| (Kind::HardReset, *at)),
        "reflog" => {
            let (at, word) = args.first()?;
            matches!(*word, "expire" | "delete").then_some((Kind::ReflogExpiry, *at))
        }
        "clean" => {
            let forced = flag(&["force"], &['f'])?;
            let ignored = flag(&[], &['x', 'X'])?;
            Some((Kind::CleanIgnored, forced.0.max(ignored.0)))
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
const MENTIONS: &[&str] = &[
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
const THINGS: &[&str] = &[
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

fn is_asked_for(text: &str, words: &[Word<'_>], lowered: &[String], from: usize, to: usize) -> bool {
    // A quotation that only begins earlier is a text that is talked about; one that begins here may be the command.
    if words[from].quoted {
        return false;
    }
    let begins = (0..=from).rev().find(|at| words[*at].opens).unwrap_or(0);
    let mut clause = &lowered[begins..from];
    if clause
        .iter()
        .any(|word| NEGATIONS.contains(&word.as_str()) || word.ends_with("n't") || word.ends_with("n’t"))
    {
        return false;
    }
    // "Explain the change and force-push it" asks for two things.
    let acts = |word: &str| matches!(word, "run" | "do" | "execute" | "perform" | "use" | "then");
    let starts_anew = |at: usize| {
        let next = clause.get(at + 1).map_or(lowered[from].as_str(), String::as_str);
        clause[at] == "then"
            || clause[at] == "and" && (acts(next) || at + 1 == clause.len() && next.starts_with("force"))
    };
    if let Some(at) = (0..clause.len()).rev().find(|at| starts_anew(*at)) {
        clause = &clause[at + 1..];
    }
    if clause.iter().any(|word| MENTIONS.contains(&word.as_str())) {
        return false;
    }
    let same_line = words.get(to).is_some_and(|next| {
        !next.opens
            && !text[words[to - 1].end..next.start].contains('\n')
            && THINGS.contains(&lowered[to].as_str())
    });
    !same_line
}

#[cfg(test)]
mod tests;
