//! `cargo xtask book-pages`: the preprocessor that mdBook runs over the pages of the site (`docs/book.toml`).
//!
//! Pages in the root of the repository, such as SECURITY.md, are chapters, too. mdBook would write them outside of the
//! site, so they move to its root, and the links between all pages follow. Links to files that are no chapters lead to the
//! repository. Reads mdBook's JSON and prints the changed book; it never touches a file.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main");

/// The book of mdBook's input `[context, book]`, as the site needs it.
pub(crate) fn preprocess(input: &str) -> Result<String, serde_json::Error> {
    let (_, mut book): (Value, Value) = serde_json::from_str(input)?;
    let mut pages = BTreeSet::new();
    for_each_chapter(&mut book["items"], &mut |chapter| pages.extend(source(chapter)));
    for_each_chapter(&mut book["items"], &mut |chapter| {
        let Some(page) = source(chapter) else { return };
        let text = chapter["content"].as_str().unwrap_or_default();
        chapter["content"] = Value::from(with_site_links(text, &page, &pages));
        if let Some(name) = page.strip_prefix("../") {
            chapter["path"] = Value::from(name);
        }
    });
    Ok(book.to_string())
}

/// The file of a chapter, relative to `docs`.
fn source(chapter: &Map<String, Value>) -> Option<String> {
    chapter["source_path"].as_str().map(str::to_owned)
}

fn for_each_chapter(items: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    for item in items.as_array_mut().into_iter().flatten() {
        if let Some(chapter) = item.get_mut("Chapter").and_then(Value::as_object_mut) {
            visit(chapter);
            if let Some(children) = chapter.get_mut("sub_items") {
                for_each_chapter(children, visit);
            }
        }
    }
}

/// The text with the target of every inline link as the site needs it. Code stays as it is.
fn with_site_links(text: &str, page: &str, pages: &BTreeSet<String>) -> String {
    let mut is_code = false;
    let mut changed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            changed.push_str(line);
            continue;
        }
        let parts = line.split('`').enumerate().map(|(index, part)| match index % 2 {
            0 => with_changed_targets(part, |target| site_target(target, page, pages)),
            _ => part.to_owned(),
        });
        changed.push_str(&parts.collect::<Vec<_>>().join("`"));
    }
    changed
}

fn with_changed_targets(part: &str, change: impl Fn(&str) -> String) -> String {
    let mut pieces = part.split("](");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| match piece.split_once(')') {
        Some((target, rest)) => format!("{text}]({}){rest}", change(target)),
        None => format!("{text}]({piece}"),
    })
}

/// Where a link of this page leads on the site.
fn site_target(target: &str, page: &str, pages: &BTreeSet<String>) -> String {
    if target.contains(':') || target.starts_with('#') {
        return target.to_owned();
    }
    let file = resolve(page, target);
    let (path, fragment) = file.split_at(file.find('#').unwrap_or(file.len()));
    let is_elsewhere = path.starts_with("../") || path.ends_with(".md");
    if is_elsewhere && !pages.contains(path) {
        let name = path.strip_prefix("../").map_or_else(|| format!("docs/{path}"), str::to_owned);
        return format!("{REPOSITORY}/{name}{fragment}");
    }
    let depth = page.trim_start_matches("../").matches('/').count();
    // mdBook makes `index.html` of a README.
    let path = path.trim_start_matches("../").replace("README.md", "index.md");
    format!("{}{path}{fragment}", "../".repeat(depth))
}

/// The target relative to `docs`, and to the root of the repository with `../` before it.
fn resolve(page: &str, target: &str) -> String {
    let mut folders: Vec<&str> = std::iter::once("docs").chain(page.split('/')).collect();
    folders.pop();
    let mut path: Vec<&str> = Vec::new();
    for name in folders.into_iter().chain(target.split('/')) {
        match name {
            ".." => {
                path.pop();
            }
            _ => path.push(name),
        }
    }
    match path.split_first() {
        Some((&"docs", below)) => below.join("/"),
        _ => format!("../{}", path.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site_link(page: &str, target: &str) -> String {
        let pages = ["tasks.md", "how-to/ci.md", "adr/README.md", "../SECURITY.md"].map(str::to_owned);
        with_site_links(&format!("[a]({target})"), page, &BTreeSet::from(pages))
    }

    #[test]
    fn links_lead_to_pages_of_the_site_or_to_the_repository() {
        for (page, target, expected) in [
            ("tasks.md", "how-to/ci.md", "how-to/ci.md"),
            ("how-to/ci.md", "../tasks.md#errors", "../tasks.md#errors"),
            ("tasks.md", "../SECURITY.md#report", "SECURITY.md#report"),
            ("how-to/ci.md", "../../SECURITY.md", "../SECURITY.md"),
            ("../SECURITY.md", "docs/how-to/ci.md", "how-to/ci.md"),
            ("../SECURITY.md", "docs/adr/README.md#all", "adr/index.md#all"),
            ("tasks.md", "images/list.svg", "images/list.svg"),
            ("tasks.md", "#errors", "#errors"),
            ("tasks.md", "https://example.com/a.md", "https://example.com/a.md"),
        ] {
            assert_eq!(site_link(page, target), format!("[a]({expected})"), "{page}");
        }
        for (target, file) in
            [("../../deploy/compose.yaml", "deploy/compose.yaml"), ("../SUMMARY.md", "docs/SUMMARY.md")]
        {
            assert_eq!(site_link("how-to/ci.md", target), format!("[a]({REPOSITORY}/{file})"));
        }
    }

    #[test]
    fn code_stays_as_it_is() {
        let text = "`[a](../x.md)`\n```\n[a](../x.md)\n```\n";
        assert_eq!(with_site_links(text, "tasks.md", &BTreeSet::new()), text);
        let link = with_site_links("[`a`](../x)", "tasks.md", &BTreeSet::new());
        assert_eq!(link, format!("[`a`]({REPOSITORY}/x)"));
    }

    #[test]
    fn a_page_in_the_root_moves_to_the_root_of_the_site() {
        let input = r#"[{}, {"items": ["Separator", {"Chapter": {"content": "[a](docs/README.md)", "path": "../SECURITY.md",
            "source_path": "../SECURITY.md", "sub_items": [{"Chapter": {"content": "", "path": "index.md", "source_path": "README.md"}}]}}]}]"#;
        let book: Value = serde_json::from_str(&preprocess(input).unwrap()).unwrap();
        let chapter = &book["items"][1]["Chapter"];
        assert_eq!((&chapter["path"], &chapter["content"]), (&"SECURITY.md".into(), &"[a](index.md)".into()));
        assert_eq!(chapter["sub_items"][0]["Chapter"]["path"], "index.md");
    }
}
