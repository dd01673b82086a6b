//! Finds the native program behind npm's wrapper.
//!
//! npm installs `codex` as a node script that starts the native program; killing the script leaves the native program running.
//! Where the native program lies next to the script, it is used instead.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::agent::locate::check_program;

/// The native program behind npm's wrapper.
pub(crate) fn native_program(script: &Path) -> Option<PathBuf> {
    if !is_node_script(script) {
        return None;
    }
    let package = script.parent()?.parent()?;
    let (platform, triple) = platform()?;
    let vendors = [
        package.parent()?.join(platform).join("vendor"),
        package.join("node_modules/@openai").join(platform).join("vendor"),
        package.join("vendor"),
    ];
    vendors.iter().map(|vendor| vendor.join(triple)).find_map(|root| {
        // Layout of current packages, then of those before about 0.126.
        let program = ["bin/codex", "codex/codex"].iter().map(|inner| root.join(inner));
        program.into_iter().find(|path| check_program(path).is_ok())
    })
}

fn platform() -> Option<(&'static str, &'static str)> {
    match std::env::consts::ARCH {
        "x86_64" => Some(("codex-linux-x64", "x86_64-unknown-linux-musl")),
        "aarch64" => Some(("codex-linux-arm64", "aarch64-unknown-linux-musl")),
        _ => None,
    }
}

fn is_node_script(path: &Path) -> bool {
    let mut beginning = Vec::with_capacity(128);
    let read = File::open(path).and_then(|file| file.take(128).read_to_end(&mut beginning));
    let first_line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && first_line.starts_with(b"#!") && memchr::memmem::find(first_line, b"node").is_some()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::agent::locate::tests::write_program;
    use crate::agent::{UntrustedTrees, locate};

    #[test]
    fn native_program_is_preferred_over_the_npm_wrapper() {
        let temp = tempfile::tempdir().unwrap();
        let modules = temp.path().canonicalize().unwrap().join("node_modules");
        let script = modules.join("@openai/codex/bin/codex.js");
        write_program(&script, "#!/usr/bin/env node\nimport x\n");
        std::fs::create_dir_all(modules.join(".bin")).unwrap();
        let link = modules.join(".bin/codex");
        symlink("../@openai/codex/bin/codex.js", &link).unwrap();
        let (package, triple) = platform().unwrap();
        // The native package is not installed: fall back to the wrapper.
        let found = locate(link.as_os_str(), None, &UntrustedTrees::default()).unwrap();
        assert_eq!((native_program(&found), &found), (None, &script));
        for inner in ["codex/codex", "bin/codex"] {
            let native = modules.join("@openai").join(package).join("vendor").join(triple).join(inner);
            write_program(&native, "\x7fELF");
            assert_eq!(native_program(&found), Some(native));
        }
    }
}
