//! Links between the Markdown pages resolve: the file exists, and so does the heading that an anchor names.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read is a failure")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;

fn collect_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
            collect_pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The target of every inline link of a page. Code spans contain none.
fn link_targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(text) {
        let without_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let links = without_code.split("](").skip(1);
        targets.extend(links.filter_map(|link| link.split_once(')')).map(|(target, _)| target.to_owned()));
    }
    targets
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let is_word = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(is_word).collect::<String>().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_between_pages_resolve() {
    let mut pages = Vec::new();
    collect_pages(&workspace(), &mut pages);
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in &pages {
        let text = read_text(page);
        let targets = link_targets(&text).into_iter();
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")) {
            let (path, fragment) = target.split_once('#').unwrap_or((&target, ""));
            let file = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let has_anchor = || fragment.is_empty() || anchors(&read_text(&file)).contains(fragment);
            if !file.exists() || !has_anchor() {
                broken.push(format!("{}: {target}", page.display()));
            }
            checked += 1;
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
    assert!(pages.len() > 20 && checked > 40, "only {checked} links in {} pages were found", pages.len());
}

/// `docs/SUMMARY.md` is the table of contents of the site: a page that is not in it is not on the site.
#[test]
fn every_page_of_the_docs_is_in_the_summary_once() {
    let docs = workspace().join("docs");
    let mut pages = Vec::new();
    collect_pages(&docs, &mut pages);
    let named = |page: &PathBuf| page.strip_prefix(&docs).unwrap().display().to_string();
    let mut expected: Vec<String> = pages.iter().map(named).filter(|page| page != "SUMMARY.md").collect();
    let mut listed = link_targets(&read_text(&docs.join("SUMMARY.md")));
    listed.retain(|target| !target.starts_with("../"));
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
}

/// Paths such as `crates/delegator-git/src/apply.rs` in code spans.
#[test]
fn source_files_named_in_pages_exist() {
    let mut pages = Vec::new();
    collect_pages(&workspace(), &mut pages);
    let mut paths = BTreeSet::new();
    for page in &pages {
        let text = read_text(page);
        let spans = prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_path = |span: &&str| span.starts_with("crates/") && !span.contains(['*', '<', ' ']);
        paths.extend(spans.filter(is_path).map(str::to_owned));
    }
    let missing: Vec<&String> = paths.iter().filter(|path| !workspace().join(path).exists()).collect();
    assert!(missing.is_empty(), "pages name files that do not exist: {missing:?}");
    assert!(paths.len() > 10, "only {} paths were found", paths.len());
}

#[test]
fn headings_have_the_anchors_of_github() {
    for (heading, expected) in [
        (" Limits and cancelling", "limits-and-cancelling"),
        (" Replacement for `codex mcp-server`", "replacement-for-codex-mcp-server"),
        (" 1. There is no daemon", "1-there-is-no-daemon"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
}
