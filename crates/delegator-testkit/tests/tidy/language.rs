//! Names, comments and docs use the words of `docs/glossary.md`, and none that a reader has to decode.

use std::path::Path;

use delegator_testkit::generated::workspace;

use crate::{files_below, rust_files};

/// Not used anywhere: in names, comments, messages or docs.
const BANNED: [&str; 13] = [
    "told",
    "heard",
    "whoever",
    "somebody",
    "nobody",
    "shelf",
    "lent",
    "crowd",
    "ballast",
    "impatience",
    "sighting",
    "beforehand",
    "rude",
];

/// Not used in names: past participles and metaphors that say nothing about the thing.
const BANNED_IN_NAMES: [&str; 7] = ["seen", "kept", "said", "says", "tells", "room", "door"];

/// Files that have to name the words (the glossary, these checks, the words of users' texts that are searched), and data
/// recorded from real agents.
fn is_exempt(path: &Path) -> bool {
    let text = path.to_string_lossy();
    path.ends_with("docs/glossary.md")
        || path.ends_with("tidy/language.rs")
        || path.ends_with("src/history_rewriting.rs")
        || text.contains("/samples/")
        || text.contains("/recordings/")
        || text.contains("/corpus/")
}

/// Docs, manifests, settings of tools, and scripts.
fn other_files() -> Vec<(std::path::PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["docs", "scripts", ".config", ".github"] {
        files_below(&workspace().join(folder), &mut found);
    }
    let top = std::fs::read_dir(workspace()).unwrap().map(|entry| entry.unwrap().path());
    let crates = std::fs::read_dir(workspace().join("crates")).unwrap();
    let manifests = crates.map(|entry| entry.unwrap().path().join("Cargo.toml"));
    found.extend(top.chain(manifests).filter(|path| path.is_file()));
    let is_picture = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "png");
    found.retain(|path| !path.ends_with("Cargo.lock") && !is_picture(path));
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The words of a text; `asked_by` and `AskedBy` are two words each.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous_is_lower = false;
    for letter in text.chars() {
        let starts_word = letter.is_uppercase() && previous_is_lower;
        if (!letter.is_alphanumeric() || starts_word) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        previous_is_lower = letter.is_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// The line without comments and string literals, roughly: enough to find names.
fn code_of(line: &str) -> String {
    let code = line.split("//").next().unwrap_or_default();
    code.split('"').step_by(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn banned_words_are_not_used() {
    let mut found = Vec::new();
    for (path, text) in rust_files().into_iter().chain(other_files()).filter(|(path, _)| !is_exempt(path)) {
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        for (number, line) in text.lines().enumerate() {
            let banned = words(line).into_iter().filter(|word| BANNED.contains(&word.as_str()));
            let names = if is_code { words(&code_of(line)) } else { Vec::new() };
            let banned_names = names.into_iter().filter(|word| BANNED_IN_NAMES.contains(&word.as_str()));
            found.extend(
                banned.chain(banned_names).map(|word| format!("{}:{}: {word}", path.display(), number + 1)),
            );
        }
    }
    assert!(
        found.is_empty(),
        "{} banned words; docs/glossary.md has better ones:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn no_doc_comment_is_empty() {
    for (path, text) in rust_files() {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let is_doc = |line: &&str| line.starts_with("///") || line.starts_with("//!");
            let is_alone =
                at.checked_sub(1).and_then(|before| lines.get(before)).is_none_or(|line| !is_doc(line))
                    && lines.get(at + 1).is_none_or(|line| !is_doc(line));
            let is_empty = ["///", "//!"].contains(line) && is_alone;
            assert!(!is_empty, "{}:{}: an empty doc comment", path.display(), at + 1);
        }
    }
}

/// A fault id such as `f27` may begin the name of a test, if `docs/reliability.md` defines it; nothing else has numbers
/// of documents or faults for a name.
#[test]
fn fault_ids_are_defined_in_the_docs() {
    let page = std::fs::read_to_string(workspace().join("docs/reliability.md")).unwrap();
    for (path, text) in rust_files().into_iter().filter(|(path, _)| !path.ends_with("tidy/language.rs")) {
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            let name = line.trim_start().strip_prefix("fn f").unwrap_or_default();
            let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
            if !digits.is_empty() && name[digits.len()..].starts_with('_') {
                assert!(
                    page.contains(&format!("| F{digits} |")),
                    "{place}: F{digits} is not in docs/reliability.md"
                );
            }
            let is_comment = line.trim_start().starts_with("//");
            let numbers = ["(000)", "(001)", "(002)", "(003)", "(004)", "contract 000", "seed 00"];
            let has_number = is_comment && numbers.iter().any(|number| line.contains(number));
            assert!(!has_number, "{place}: name the document instead of its number");
        }
    }
}
