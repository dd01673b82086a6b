//! The licences of all packages in the program, with their texts.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::dependencies::Package;
use super::product::NAME;
use crate::error::LoadError;

/// How the names of files with licence texts begin, in capitals.
const LICENCE_FILES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
const RULE: &str = "--------------------------------------------------------------------------------";

/// A list of the packages, then each text once with the packages that have it.
pub(crate) fn notices(packages: &[Package]) -> Result<String, LoadError> {
    let mut list = format!(
        "{NAME} contains the packages below. It also contains the Rust standard library (MIT OR Apache-2.0) and, within\n\
         libsqlite3-sys, SQLite, which is in the public domain.\n\n"
    );
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages.iter().filter(|package| package.source.is_some()) {
        let name = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().unwrap_or("licence in the text below");
        let _ = writeln!(
            list,
            "{name}: {license}; {}",
            package.repository.as_deref().unwrap_or("no repository named")
        );
        for file in licence_files(package)? {
            let bytes = std::fs::read(&file).map_err(LoadError::io(format!("read {}", file.display())))?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim().to_owned();
            owners.entry(text).or_default().push(name.clone());
        }
    }
    // By the first package, not by the text: a changed text then stays in its place.
    let mut texts: Vec<(Vec<String>, String)> =
        owners.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    for (mut names, text) in texts {
        names.dedup();
        let _ = write!(list, "\n{RULE}\n{}\n{RULE}\n\n{text}\n", names.join(", "));
    }
    Ok(list)
}

fn licence_files(package: &Package) -> Result<Vec<PathBuf>, LoadError> {
    let folder = package.manifest_path.parent().unwrap_or(Path::new("/"));
    let entries =
        std::fs::read_dir(folder).map_err(LoadError::io(format!("read the package {}", package.name)))?;
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && LICENCE_FILES.iter().any(|start| name.starts_with(start))
    };
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_licence).collect();
    found.sort();
    Ok(found)
}
