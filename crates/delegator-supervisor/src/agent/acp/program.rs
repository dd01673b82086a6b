//! Finds the program to supervise behind what npm installs.
//!
//! npm links the name of an agent to a script of its package. For some agents that script only starts the agent, and ending
//! the script leaves the agent running. Then the agent itself is started: a native program in a package for the platform, or
//! another script.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::profile::ProgramBehind;
use crate::agent::locate::{UntrustedTrees, check_program, locate};

/// The program to start, and the arguments that come first. `found` is what the name leads to, without links.
pub(super) fn resolve(
    found: PathBuf,
    behind: &ProgramBehind,
    path: Option<&OsStr>,
    untrusted: &UntrustedTrees,
) -> (PathBuf, Vec<OsString>) {
    match behind {
        ProgramBehind::None => (found, Vec::new()),
        ProgramBehind::Package(packages) => {
            let native = if is_script(&found) { native_program(&found, packages) } else { None };
            (native.unwrap_or(found), Vec::new())
        }
        ProgramBehind::Script(name) => {
            let script = found.with_file_name(name);
            let node = locate(OsStr::new("node"), path, untrusted).ok();
            match node.filter(|_| is_script(&found) && script != found && script.is_file()) {
                Some(node) => (node, vec![script.into_os_string()]),
                None => (found, Vec::new()),
            }
        }
    }
}

/// A program in one of the packages, which npm installs next to the script's package or below it.
fn native_program(script: &Path, packages: &[&str]) -> Option<PathBuf> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => return None,
    };
    let modules = |folder: &Path| match folder.file_name() {
        Some(name) if name == "node_modules" => folder.to_owned(),
        _ => folder.join("node_modules"),
    };
    let names: Vec<String> = packages.iter().map(|name| name.replace("ARCH", architecture)).collect();
    let candidates = script
        .ancestors()
        .skip(1)
        .map(modules)
        .flat_map(|modules| names.iter().map(|name| modules.join(name)).collect::<Vec<PathBuf>>());
    candidates.into_iter().find(|path| check_program(path).is_ok() && !is_script(path))
}

fn is_script(path: &Path) -> bool {
    let mut beginning = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning == *b"#!"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::locate::tests::write_program;

    const PACKAGES: ProgramBehind = ProgramBehind::Package(&["@x/tool-linux-ARCH/tool"]);

    #[test]
    fn the_native_program_is_found_next_to_the_package_and_below_it() {
        let temp = tempfile::tempdir().unwrap();
        let modules = temp.path().canonicalize().unwrap().join("lib/node_modules");
        let script = modules.join("@x/tool/loader.js");
        write_program(&script, "#!/usr/bin/env node\n");
        let resolved =
            |found: &Path| resolve(found.to_owned(), &PACKAGES, None, &UntrustedTrees::default()).0;
        assert_eq!(resolved(&script), script, "there is no other program");
        let name = if std::env::consts::ARCH == "x86_64" { "tool-linux-x64" } else { "tool-linux-arm64" };
        let beside = modules.join("@x").join(name).join("tool");
        write_program(&beside, "\x7fELF");
        assert_eq!(resolved(&script), beside);
        let below = modules.join("@x/tool/node_modules/@x").join(name).join("tool");
        write_program(&below, "\x7fELF");
        assert_eq!(resolved(&script), below);
        let native = modules.join("native");
        write_program(&native, "\x7fELF");
        assert_eq!(resolved(&native), native, "it is a program itself");
    }

    #[test]
    fn another_script_is_run_by_node() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (entry, script, node) = (root.join("entry.js"), root.join("cli.js"), root.join("bin/node"));
        write_program(&entry, "#!/usr/bin/env node\n");
        write_program(&node, "\x7fELF");
        let path = root.join("bin");
        let resolved = || {
            resolve(
                entry.clone(),
                &ProgramBehind::Script("cli.js"),
                Some(path.as_os_str()),
                &UntrustedTrees::default(),
            )
        };
        assert_eq!(resolved(), (entry.clone(), Vec::new()), "there is no other script");
        std::fs::write(&script, "").unwrap();
        assert_eq!(resolved(), (node, vec![script.into_os_string()]));
    }
}
