//! Finds the program to supervise behind what npm installs.
//!
//! npm links the name of an agent to a file of its package. For some agents that file only starts the agent,
//! and ending it leaves the agent running; where install scripts are disabled, it may not even start it. Then
//! the agent itself is started: a native program in a package for the platform, or another script.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::locate::{UntrustedTrees, check_program, locate};

/// The program to supervise, if what is installed only starts it.
#[derive(Debug)]
pub(crate) enum ProgramBehind {
    None,
    /// A native program in a package of npm. `ARCH` stands for npm's name of the architecture, `TRIPLE` for
    /// Rust's name of the platform.
    Package(&'static [&'static str]),
    /// A script beside the installed one, for Node.js.
    Script(&'static str),
}

/// The program to start, and the arguments that come first. `found` is what the name leads to, without links.
pub(crate) fn resolve(
    found: PathBuf,
    behind: &ProgramBehind,
    path: Option<&OsStr>,
    untrusted: &UntrustedTrees,
) -> (PathBuf, Vec<OsString>) {
    match behind {
        _ if is_native(&found) => (found, Vec::new()),
        ProgramBehind::None => (found, Vec::new()),
        ProgramBehind::Package(packages) => (native_program(&found, packages).unwrap_or(found), Vec::new()),
        ProgramBehind::Script(name) => {
            let script = found.with_file_name(name);
            let node = locate(OsStr::new("node"), path, untrusted).ok();
            match node.filter(|_| script != found && script.is_file()) {
                Some(node) => (node, vec![script.into_os_string()]),
                None => (found, Vec::new()),
            }
        }
    }
}

/// A program in one of the packages, which npm installs next to the package of the wrapper or below it. A
/// file that npm has not installed, such as a script of the user, is no wrapper.
fn native_program(wrapper: &Path, packages: &[&str]) -> Option<PathBuf> {
    let (architecture, triple) = match std::env::consts::ARCH {
        "x86_64" => ("x64", "x86_64-unknown-linux-musl"),
        "aarch64" => ("arm64", "aarch64-unknown-linux-musl"),
        _ => return None,
    };
    if !wrapper.iter().any(|name| name == "node_modules") {
        return None;
    }
    let modules = |folder: &Path| match folder.file_name() {
        Some(name) if name == "node_modules" => folder.to_owned(),
        _ => folder.join("node_modules"),
    };
    let name = |package: &&str| package.replace("ARCH", architecture).replace("TRIPLE", triple);
    let names: Vec<String> = packages.iter().map(name).collect();
    let mut candidates = wrapper
        .ancestors()
        .skip(1)
        .map(modules)
        .flat_map(|modules| names.iter().map(|name| modules.join(name)).collect::<Vec<PathBuf>>());
    candidates.find(|path| check_program(path).is_ok() && is_native(path))
}

fn is_native(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::locate::tests::write_program;
    use super::*;

    fn resolved(found: &Path, packages: &'static [&'static str]) -> PathBuf {
        let behind = ProgramBehind::Package(packages);
        resolve(found.to_owned(), &behind, None, &UntrustedTrees::default()).0
    }

    #[test]
    fn the_native_program_is_found_next_to_the_package_and_below_it() {
        const PACKAGES: &[&str] = &["@x/tool-linux-ARCH/tool", "@x/tool-linux-ARCH-musl/tool"];
        let temp = tempfile::tempdir().unwrap();
        let modules = temp.path().canonicalize().unwrap().join("lib/node_modules");
        let script = modules.join("@x/tool/loader.js");
        write_program(&script, "#!/usr/bin/env node\n");
        let link = modules.join(".bin/tool");
        std::fs::create_dir_all(modules.join(".bin")).unwrap();
        symlink("../@x/tool/loader.js", &link).unwrap();
        assert_eq!(locate(link.as_os_str(), None, &UntrustedTrees::default()).unwrap(), script);
        assert_eq!(resolved(&script, PACKAGES), script, "there is no other program");
        let name = if std::env::consts::ARCH == "x86_64" { "tool-linux-x64" } else { "tool-linux-arm64" };
        for beside in [format!("{name}-musl"), name.to_owned()] {
            let beside = modules.join("@x").join(beside).join("tool");
            write_program(&beside, "#!/bin/sh\n");
            assert_ne!(resolved(&script, PACKAGES), beside, "it is a script, too");
            write_program(&beside, "\x7fELF");
            assert_eq!(resolved(&script, PACKAGES), beside);
        }
        let below = modules.join("@x/tool/node_modules/@x").join(name).join("tool");
        write_program(&below, "\x7fELF");
        assert_eq!(resolved(&script, PACKAGES), below);
        write_program(&script, "\x7fELF and more");
        assert_eq!(resolved(&script, PACKAGES), script, "it is a program itself");
    }

    #[test]
    fn a_script_of_the_user_is_no_wrapper() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let script = root.join("bin/tool");
        write_program(&script, "#!/bin/sh\nexec tool --flag \"$@\"\n");
        write_program(&root.join("node_modules/tool/tool"), "\x7fELF");
        assert_eq!(resolved(&script, &["tool/tool"]), script);
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
