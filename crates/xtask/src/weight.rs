//! `cargo xtask weight`: how large the program is, as a table for docs/reports/benchmarks.md.
//!
//! Counts product code: no tests and no development crate. The sources are formatted, so the indentation shows where an
//! item ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::LoadError;

const DEVELOPMENT_CRATES: [&str; 3] = ["delegator-scripted-agent", "delegator-testkit", "xtask"];

#[derive(Default)]
struct Weight {
    lines: usize,
    public_items: usize,
    /// Lines of each file.
    files: Vec<usize>,
    /// Lines of each function.
    functions: Vec<usize>,
}

impl Weight {
    fn add_file(&mut self, lines: &[&str]) {
        self.lines += lines.len();
        self.files.push(lines.len());
        self.public_items += lines.iter().filter(|line| is_public_item(line)).count();
        for (start, line) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
            let end = format!("{}}}", indentation(line));
            let length = lines[start..].iter().position(|line| *line == end);
            self.functions.extend(length.map(|length| length + 1));
        }
    }

    fn add(&mut self, other: Weight) {
        self.lines += other.lines;
        self.public_items += other.public_items;
        self.files.extend(other.files);
        self.functions.extend(other.functions);
    }
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn is_public_item(line: &str) -> bool {
    let item = line.trim_start().strip_prefix("pub ").unwrap_or_default();
    ["async ", "const ", "enum ", "fn ", "static ", "struct ", "trait ", "type "]
        .iter()
        .any(|keyword| item.starts_with(keyword))
}

fn is_function(line: &str) -> bool {
    let words =
        line.trim_start().split(' ').filter(|word| !word.starts_with("pub") && !word.starts_with("in("));
    words.take_while(|word| ["async", "const", "fn", "unsafe"].contains(word)).any(|word| word == "fn")
}

/// The items of a file that only tests have: the number of the line of the attribute, and the line of the item.
fn test_items(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_test =
        |line: &str| ["#[cfg(test)]", "#[cfg(all(test,"].iter().any(|start| line.starts_with(start));
    let attributes = text.lines().enumerate().filter(move |(_, line)| is_test(line));
    attributes.filter_map(|(number, _)| {
        let item = text.lines().skip(number).find(|line| !line.starts_with("#["))?;
        Some((number, item))
    })
}

/// The names of the modules that a file declares for tests only.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    test_items(text).filter_map(|(_, item)| item.split_once("mod ")?.1.strip_suffix(';'))
}

/// The lines before the test module of a file.
fn lines_without_tests(text: &str) -> Vec<&str> {
    let is_module = |item: &str| item.contains("mod ") && item.ends_with('{');
    let end = test_items(text).find(|(_, item)| is_module(item)).map_or(usize::MAX, |(number, _)| number);
    text.lines().take(end).collect()
}

/// All Rust and SQL files below a folder, with their text.
fn sources(folder: &Path, found: &mut BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "sql") {
            found.insert(path.clone(), std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn crate_weight(folder: &Path) -> std::io::Result<Weight> {
    let mut files = BTreeMap::new();
    sources(&folder.join("src"), &mut files)?;
    sources(&folder.join("migrations"), &mut files)?;
    let mut test_paths = BTreeSet::new();
    for (path, text) in &files {
        let is_root =
            path.file_stem().is_some_and(|stem| ["lib", "main", "mod"].iter().any(|root| stem == *root));
        let children = if is_root { path.with_file_name("") } else { path.with_extension("") };
        test_paths.extend(test_modules(text).map(|name| children.join(name)));
    }
    let is_test = |path: &Path| path.with_extension("").ancestors().any(|module| test_paths.contains(module));
    let mut weight = Weight::default();
    for (_, text) in files.iter().filter(|(path, _)| !is_test(path)) {
        weight.add_file(&lines_without_tests(text));
    }
    Ok(weight)
}

/// The value below which 95 % of the values lie.
fn p95(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len() * 95 / 100).copied().unwrap_or_default()
}

/// The packages that the manifests of the product crates name, without our own.
fn direct_dependencies(manifests: &[String]) -> usize {
    let of_manifest = |manifest: &String| -> Vec<String> {
        let dependencies = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
        let lines =
            dependencies.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
        let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
        names.filter(|name| !name.is_empty() && !name.starts_with("delegator-")).map(str::to_owned).collect()
    };
    manifests.iter().flat_map(of_manifest).collect::<BTreeSet<_>>().len()
}

/// The table, as Markdown.
pub(crate) fn table(workspace: &Path) -> Result<String, LoadError> {
    measure(workspace).map_err(LoadError::io("read the sources"))
}

fn measure(workspace: &Path) -> std::io::Result<String> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(workspace.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    let mut text = "| crate | lines | files | public items |\n|---|--:|--:|--:|\n".to_owned();
    let mut total = Weight::default();
    let mut manifests = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if DEVELOPMENT_CRATES.contains(&name.as_ref()) {
            continue;
        }
        let weight = crate_weight(&folder)?;
        text += &row(&format!("`{name}`"), &weight);
        total.add(weight);
        manifests.push(std::fs::read_to_string(folder.join("Cargo.toml"))?);
    }
    text += &row("all", &total);
    let lock = std::fs::read_to_string(workspace.join("Cargo.lock"))?;
    text += &format!(
        "\nLines of a function: 95 % have at most {}; of a file: {}. Packages in `Cargo.lock`: {}; named by the product \
         crates: {}.\n",
        p95(total.functions),
        p95(total.files),
        lock.matches("[[package]]").count(),
        direct_dependencies(&manifests)
    );
    Ok(text)
}

fn row(name: &str, weight: &Weight) -> String {
    format!("| {name} | {} | {} | {} |\n", weight.lines, weight.files.len(), weight.public_items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_counted() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let source = folder.path().join("src");
        std::fs::create_dir_all(source.join("model_test"))?;
        std::fs::write(
            source.join("lib.rs"),
            "mod a;\n#[cfg(all(test, unix))]\nmod model_test;\n\npub fn f() {\n    g();\n}\n\n#[cfg(test)]\nmod tests {\n}\n",
        )?;
        std::fs::write(source.join("a.rs"), "#[cfg(test)]\nfn helper() {}\n\npub(crate) fn g() {}\n")?;
        std::fs::write(source.join("model_test.rs"), "mod part;\n")?;
        std::fs::write(source.join("model_test/part.rs"), "pub struct Part;\n")?;
        let weight = crate_weight(folder.path())?;
        assert_eq!((weight.lines, weight.public_items), (12, 1));
        assert_eq!((weight.files, weight.functions), (vec![4, 8], vec![3]));
        Ok(())
    }

    #[test]
    fn dependencies_are_counted_once_and_ours_not() {
        let manifests = [
            "[package]\nname = \"a\"\n\n[dependencies]\nserde.workspace = true\ndelegator-domain.workspace = true\n".to_owned(),
            "[dependencies]\nserde = \"1\"\nclap = \"4\"\n\n[dev-dependencies]\ninsta = \"1\"\n".to_owned(),
        ];
        assert_eq!(direct_dependencies(&manifests), 2);
    }
}
