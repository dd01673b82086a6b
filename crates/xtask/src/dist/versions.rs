//! Whether every file that states the version of this program states the same one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::dependencies::locked;
use super::product::Product;
use crate::error::LoadError;

/// Manifests of plugins and packages, wherever they are.
const MANIFESTS: [&str; 5] =
    ["plugin.json", "marketplace.json", "gemini-extension.json", "package.json", "server.json"];
/// Folders that git does not track, or that hold packages of others.
const SKIPPED: [&str; 4] = [".git", ".tools", "target", "node_modules"];

/// One line for each file that differs from the workspace manifest.
pub fn version_problems(workspace: &Path) -> Result<Vec<String>, LoadError> {
    let version = Product::read(workspace)?.version;
    let mut stated: Vec<(String, String)> = Vec::new();
    for package in locked(workspace)?.into_iter().filter(|package| package.source.is_none()) {
        stated.push((format!("Cargo.lock, {}", package.name), package.version));
    }
    let changelog = read(&workspace.join("CHANGELOG.md"))?;
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    let newest = newest.and_then(|line| line.split(' ').next()).unwrap_or("no version");
    stated.push(("CHANGELOG.md".to_owned(), newest.to_owned()));
    for path in manifests(workspace)? {
        let name = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
        let text = read(&path)?;
        let manifest: Value = serde_json::from_str(&text)
            .map_err(|error| LoadError::Program { program: name.clone(), output: error.to_string() })?;
        stated.extend(versions_in(&manifest).into_iter().map(|version| (name.clone(), version)));
    }
    let different = stated.into_iter().filter(|(_, stated)| *stated != version);
    Ok(different
        .map(|(place, stated)| format!("{place} has version {stated} instead of {version}"))
        .collect())
}

/// Of the manifest itself, of its metadata, and of the plugins in a marketplace.
fn versions_in(manifest: &Value) -> Vec<String> {
    let plugins = manifest["plugins"].as_array().into_iter().flatten();
    let objects = [manifest, &manifest["metadata"]].into_iter().chain(plugins);
    objects.filter_map(|object| object["version"].as_str().map(str::to_owned)).collect()
}

fn manifests(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(LoadError::io(format!("list {}", folder.display())))?;
    for entry in entries {
        let path = entry.map_err(LoadError::io("list a folder"))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() && !SKIPPED.contains(&name.as_str()) {
            found.extend(manifests(&path)?);
        } else if MANIFESTS.contains(&name.as_str()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, LoadError> {
    fs::read_to_string(path).map_err(LoadError::io(format!("read {}", path.display())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::programs::workspace;

    #[test]
    fn every_stated_version_is_that_of_the_workspace() {
        assert_eq!(version_problems(&workspace().unwrap()).unwrap(), [""; 0]);
    }

    #[test]
    fn a_different_version_is_found_wherever_it_is_stated() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let package = "version = \"1.2.3\"\nlicense = \"MIT\"\nrepository = \"r\"";
        write("Cargo.toml", &format!("[workspace.package]\n{package}\n"));
        write("Cargo.lock", "[[package]]\nname = \"own\"\nversion = \"1.2.2\"\n");
        write("CHANGELOG.md", "# Changelog\n\n## 1.3.0 (unreleased)\n");
        let marketplace =
            json!({"metadata": {"version": "1.2.3"}, "plugins": [{"version": "1"}, {"name": "x"}]});
        write("plugins/.claude-plugin/marketplace.json", &marketplace.to_string());
        write("plugins/plugin.json", "{\"version\": \"1.2.3\"}");
        write("node_modules/other/package.json", "{\"version\": \"9.0.0\"}");
        let expected = [
            "Cargo.lock, own has version 1.2.2 instead of 1.2.3",
            "CHANGELOG.md has version 1.3.0 instead of 1.2.3",
            "plugins/.claude-plugin/marketplace.json has version 1 instead of 1.2.3",
        ];
        assert_eq!(version_problems(folder.path()).unwrap(), expected);
    }
}
