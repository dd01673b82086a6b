//! Finds the native program in an installation by npm.
//!
//! npm links `claude` to `@anthropic-ai/claude-code/bin/claude.exe`. Its install script replaces that file by the native
//! program of the package for the platform. Where install scripts are disabled, the native program is used from that
//! package.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::agent::locate::check_program;

pub(crate) fn native_program(found: &Path) -> Option<PathBuf> {
    if is_native(found) {
        return None;
    }
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => return None,
    };
    let package = found.parent()?.parent()?;
    let folders = [package.parent()?.to_owned(), package.join("node_modules/@anthropic-ai")];
    let names = ["", "-musl"].map(|libc| format!("claude-code-linux-{architecture}{libc}/claude"));
    let candidates = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    candidates.into_iter().find(|path| check_program(path).is_ok() && is_native(path))
}

fn is_native(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::locate::tests::write_program;

    #[test]
    fn the_native_program_of_the_platform_is_used_if_the_link_leads_to_a_script() {
        let temp = tempfile::tempdir().unwrap();
        let packages = temp.path().canonicalize().unwrap().join("@anthropic-ai");
        let link_target = packages.join("claude-code/bin/claude.exe");
        write_program(&link_target, "#!/usr/bin/env node\n");
        assert_eq!(native_program(&link_target), None, "there is no other program");
        let architecture = if std::env::consts::ARCH == "x86_64" { "x64" } else { "arm64" };
        let native = packages.join(format!("claude-code-linux-{architecture}-musl/claude"));
        write_program(&native, "\x7fELF and more");
        assert_eq!(native_program(&link_target), Some(native));
        write_program(&link_target, "\x7fELF and more");
        assert_eq!(native_program(&link_target), None, "it is the native program");
    }
}
