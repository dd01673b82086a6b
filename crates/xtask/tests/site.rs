//! The site: mdBook makes it from `docs`, its links lead somewhere, and a person finds a page in its search.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]
#![expect(clippy::disallowed_methods, reason = "starts mdBook and a browser as a person does")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

fn tool(path: &str) -> PathBuf {
    let folder = path.split('/').next().unwrap();
    let tools = Path::new(ROOT).join(".tools");
    assert!(
        tools.join(folder).join("complete").exists(),
        "run the script in scripts/ that installs {folder}"
    );
    tools.join(path)
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn build_site() -> TempDir {
    let site = tempfile::tempdir().unwrap();
    let mut mdbook = Command::new(tool("mdbook-0.5.4/bin/mdbook"));
    mdbook.arg("build").arg(Path::new(ROOT).join("docs")).arg("--dest-dir").arg(site.path());
    // The program that Cargo has built for this test, instead of `cargo xtask`.
    let preprocessor = concat!(env!("CARGO_BIN_EXE_xtask"), " book-pages");
    mdbook.env("MDBOOK_PREPROCESSOR__REPOSITORY_PAGES__COMMAND", preprocessor);
    let output = succeed(&mut mdbook);
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
    site
}

fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect_files(&path, found),
            false => found.push(path),
        }
    }
}

/// The values of an attribute in a page.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    html.split(&start).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

/// Why this link of a page leads nowhere.
fn problem(site: &Path, page: &Path, html: &str, link: &str) -> Option<String> {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    if let Some(file) = path.strip_prefix(REPOSITORY) {
        return (!Path::new(ROOT).join(file).exists()).then(|| format!("the repository has no {file}"));
    }
    if path.contains(':') {
        return None;
    }
    let file = match path {
        "" => page.to_owned(),
        _ => page.parent().unwrap().join(path).canonicalize().unwrap_or_default(),
    };
    if !file.starts_with(site) || !file.is_file() {
        return Some("there is no such file on the site".to_owned());
    }
    let target = if file == page { html.to_owned() } else { fs::read_to_string(&file).unwrap_or_default() };
    let has_anchor = fragment.is_empty() || attributes(&target, "id").contains(&fragment);
    (!has_anchor).then(|| "there is no such heading".to_owned())
}

#[test]
fn links_of_the_site_resolve() {
    let folder = build_site();
    let site = folder.path().canonicalize().unwrap();
    let mut files = Vec::new();
    collect_files(&site, &mut files);
    let (mut checked, mut broken) = (0, BTreeSet::new());
    // `print.html` has all pages in one, and 404.html is shown at any address.
    let is_page = |file: &&PathBuf| {
        file.extension().is_some_and(|kind| kind == "html")
            && !["print.html", "404.html", "toc.html"].iter().any(|name| file.ends_with(name))
    };
    for page in files.iter().filter(is_page) {
        let html = fs::read_to_string(page).unwrap();
        for link in attributes(&html, "href").into_iter().chain(attributes(&html, "src")) {
            checked += 1;
            let found = problem(&site, page, &html, link);
            broken.extend(found.map(|problem| format!("{}: {link}: {problem}", page.display())));
        }
    }
    assert!(broken.is_empty(), "{}", broken.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(checked > 1000, "only {checked} links were found");
    assert!(site.join("SECURITY.html").is_file(), "a page in the root of the repository is missing");
}

#[test]
fn the_search_of_the_site_finds_a_page() {
    let site = build_site();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/site_search.mjs");
    let mut browser = Command::new("node");
    browser.arg(script).arg(tool("browser-1/package.json")).arg(site.path());
    let output = succeed(&mut browser);
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found.contains("diff-and-restore.html") && found.contains("Diff and restore"), "{found}");
}
