//! Detects a task text that explicitly requests a destructive git operation: rewriting history, or deleting
//! files that have no copy.
//!
//! The caller then has to confirm the task. This is no safety boundary: the sandbox and restore points
//! protect the repository. Only a command or an imperative counts; a negation before it, a question about it
//! or a quotation of it does not. When in doubt, the text passes.

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

#[derive(Debug)]
struct Operation {
    description: &'static str,
    alternative: &'static str,
}

static FORCE_PUSH: Operation = Operation {
    description: "a force-push",
    alternative: "push to a new branch, or let a person review it and force-push",
};
static HARD_RESET: Operation = Operation {
    description: "a hard reset",
    alternative: "use 'git stash' or a new branch, or 'mcp-delegator restore' after a task",
};
static FILTER_HISTORY: Operation = Operation {
    description: "a rewrite of the whole history",
    alternative: "work in a fresh clone, and let a person replace the history",
};
static REFLOG_EXPIRY: Operation = Operation {
    description: "an expiry of the reflog",
    alternative: "leave the reflog alone; git expires it automatically",
};
static CLEAN_IGNORED: Operation = Operation {
    description: "a clean that also deletes ignored files",
    alternative: "use 'git clean -n' to list what would be deleted, or name the directories to delete",
};

/// Phrases that name an operation; commands with options are in [`match_command`].
static PHRASES: [(&str, &Operation); 11] = [
    ("force-push", &FORCE_PUSH),
    ("force-pushing", &FORCE_PUSH),
    ("force push", &FORCE_PUSH),
    ("force pushing", &FORCE_PUSH),
    ("hard-reset", &HARD_RESET),
    ("hard reset", &HARD_RESET),
    ("expire the reflog", &REFLOG_EXPIRY),
    ("purge the reflog", &REFLOG_EXPIRY),
    ("filter-branch", &FILTER_HISTORY),
    ("filter-repo", &FILTER_HISTORY),
    ("git-filter-repo", &FILTER_HISTORY),
];

const NEGATIONS: &str = "not never no without avoid avoids avoiding cannot instead rather refrain forbid forbids \
    forbidden prevent prevents prohibit prohibits refuse refuses reject rejects block blocks nor neither";
/// Words that show that a clause mentions a command instead of requesting it.
const MENTION_WORDS: &str = "explain explains explaining describe describes document documents documenting discuss \
    mention mentions mentioning mentioned warn warns warning summarize summarise what why how when whether where who \
    which find search grep detect detects count list ran did was were had has been runs calls does uses executes \
    performs accidentally someone somebody example called named says said recover after support implement parse";
/// Words directly after a command that show that it is only mentioned (`the git push --force flag`).
const NOUNS_AFTER_MENTION: &str = "line lines section example examples paragraph sentence warning flag option docs \
    documentation hint mention mentions message error test tests check checks button support feature detection \
    detector handler policy rule protection means does is was";

fn is_one_of(word: &str, list: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// A word of the text without surrounding punctuation.
#[derive(Debug)]
struct Word<'a> {
    text: &'a str,
    lowercase: String,
    start: usize,
    /// Whether a sentence, clause or command starts at this word.
    starts_clause: bool,
    /// Whether the word is inside a double quotation that starts before it.
    is_quoted: bool,
}

/// The first destructive operation that the text requests.
pub fn find(text: &str) -> Option<DestructiveRequest> {
    let words = words(text);
    (0..words.len()).find_map(|from| {
        let (operation, to) = match_phrase(&words, from).or_else(|| match_command(&words, from))?;
        is_requested(&words, from, to).then(|| DestructiveRequest {
            phrase: text[words[from].start..words[to - 1].start + words[to - 1].text.len()].to_owned(),
            position: text[..words[from].start].chars().count(),
            description: operation.description,
            alternative: operation.alternative,
        })
    })
}

fn words(text: &str) -> Vec<Word<'_>> {
    const MARKS: &[char] = &[
        '`', '"', '\'', '(', ')', '[', ']', '{', '}', '*', '“', '”', '‘', '’', ':', ',', ';', '!', '?', '.',
        '$',
    ];
    let mut words = Vec::new();
    let mut is_quoted = false;
    // A Markdown quotation cites a text; it requests nothing.
    for line in text.lines().filter(|line| !line.trim_start().starts_with('>')) {
        let mut starts_clause = true;
        for token in line.split_whitespace() {
            let word = token.trim_matches(MARKS);
            let after = token.trim_start_matches(MARKS).strip_prefix(word).unwrap_or_default();
            if !word.is_empty() {
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                words.push(Word {
                    text: word,
                    lowercase: word.to_lowercase(),
                    start,
                    starts_clause,
                    is_quoted,
                });
                starts_clause = false;
            }
            is_quoted ^= token.matches(['"', '“', '”']).count() % 2 == 1;
            starts_clause |= after.contains([',', ';', '!', '?', ':', '.'])
                || matches!(token, "&&" | "||" | "|" | "-" | "–" | "—");
        }
    }
    words
}

/// The words from `from` to the end of the command or clause.
fn clause_from<'a>(words: &'a [Word<'a>], from: usize) -> &'a [Word<'a>] {
    let rest = &words[from..];
    let end = rest.iter().skip(1).position(|word| word.starts_clause);
    end.map_or(rest, |end| &rest[..=end])
}

/// Returns the operation and the position after its last word.
fn match_phrase(words: &[Word<'_>], from: usize) -> Option<(&'static Operation, usize)> {
    let clause = clause_from(words, from);
    PHRASES.iter().find_map(|(phrase, operation)| {
        let length = phrase.split(' ').count();
        let is_match = clause.len() >= length
            && phrase.split(' ').zip(clause).all(|(expected, word)| word.lowercase == expected);
        is_match.then_some((*operation, from + length))
    })
}

/// Matches a git command by its options. Without `git` before it, only the options directly after the
/// subcommand count, because `push` and `clean` are also English words.
fn match_command(words: &[Word<'_>], from: usize) -> Option<(&'static Operation, usize)> {
    let clause = clause_from(words, from);
    let mut verb = 0;
    if clause[0].lowercase == "git" {
        verb = 1;
        while clause.get(verb)?.text.starts_with('-') {
            // Some of git's global options have a value.
            verb += if is_one_of(&clause[verb].lowercase, "-c --git-dir --work-tree") { 2 } else { 1 };
        }
    }
    let args = clause[verb + 1..].iter().map(|word| word.text);
    let args: Vec<&str> = args.take_while(|arg| verb > 0 || arg.starts_with('-')).collect();
    let find = |test: &dyn Fn(&str) -> bool| args.iter().position(|arg| test(arg));
    let (operation, last) = match clause[verb].lowercase.as_str() {
        "push" => {
            let names = "force force-with-lease force-if-includes mirror";
            let forced = find(&|arg| is_flag(arg, names, &['f']));
            (&FORCE_PUSH, forced.or_else(|| find(&|arg| arg.len() > 1 && arg.starts_with('+')))?)
        }
        "reset" => (&HARD_RESET, find(&|arg| is_flag(arg, "hard", &[]))?),
        "reflog" if is_one_of(args.first()?, "expire delete") => (&REFLOG_EXPIRY, 0),
        "clean" => {
            let forced = find(&|arg| is_flag(arg, "force", &['f']))?;
            (&CLEAN_IGNORED, forced.max(find(&|arg| is_flag(arg, "", &['x', 'X']))?))
        }
        _ => return None,
    };
    Some((operation, from + verb + last + 2))
}

/// Whether an argument is one of the long options, or contains one of the short ones.
fn is_flag(arg: &str, long: &str, short: &[char]) -> bool {
    match (arg.strip_prefix("--"), arg.strip_prefix('-')) {
        (Some(name), _) => is_one_of(name.split('=').next().unwrap_or_default(), long),
        (None, Some(letters)) => {
            letters.chars().all(|letter| letter.is_ascii_alphabetic()) && letters.contains(short)
        }
        (None, None) => false,
    }
}

/// Whether the words `from..to` are a request, and not negated, quoted or only mentioned.
fn is_requested(words: &[Word<'_>], from: usize, to: usize) -> bool {
    // A word inside a quotation that starts earlier is cited text; a quotation that starts at this word may
    // be the command.
    if words[from].is_quoted {
        return false;
    }
    let clause_start = (0..=from).rev().find(|at| words[*at].starts_clause).unwrap_or(0);
    let clause: Vec<&str> = words[clause_start..=from].iter().map(|word| word.lowercase.as_str()).collect();
    let before = &clause[..from - clause_start];
    let is_negation =
        |word: &&str| is_one_of(word, NEGATIONS) || word.ends_with("n't") || word.ends_with("n’t");
    if before.iter().any(is_negation) {
        return false;
    }
    // "Explain the change and force-push it" contains two requests; only the last one is judged.
    let starts_new_request = |at: &usize| {
        let next = clause[at + 1];
        before[*at] == "then"
            || before[*at] == "and"
                && (is_one_of(next, "run do execute perform use then")
                    || at + 1 == before.len() && next.starts_with("force"))
    };
    let request_start = (0..before.len()).rev().find(starts_new_request).map_or(0, |at| at + 1);
    if before[request_start..].iter().any(|word| is_one_of(word, MENTION_WORDS)) {
        return false;
    }
    let next = words.get(to).filter(|next| !next.starts_clause);
    !next.is_some_and(|next| is_one_of(&next.lowercase, NOUNS_AFTER_MENTION))
}

#[cfg(test)]
mod tests;
