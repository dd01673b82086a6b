//! The archive: the program, its manual pages and completions, licence and notices, laid out as below a prefix.
//!
//! Pages and completions come from the program itself, which is therefore built for this machine.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs the program that it packs")]

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::npm::PlatformFiles;
use super::product::NAME;
use super::tree::Tree;
use crate::error::LoadError;

/// Where each shell looks for completions.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "share/bash-completion/completions/mcp-delegator"),
    ("zsh", "share/zsh/site-functions/_mcp-delegator"),
    ("fish", "share/fish/vendor_completions.d/mcp-delegator.fish"),
    ("elvish", "share/elvish/lib/mcp-delegator.elv"),
    ("powershell", "share/powershell/mcp-delegator.ps1"),
];

pub(crate) fn archive(workspace: &Path, program: &Path, files: &PlatformFiles) -> Result<Tree, LoadError> {
    let mut tree = Tree::default();
    tree.add_program(format!("bin/{NAME}"), files.program.as_slice());
    for (shell, path) in COMPLETIONS {
        tree.add(path, printed(program, &["completions", shell])?);
    }
    tree.add(format!("share/man/man1/{NAME}.1"), printed(program, &["man"])?);
    for words in commands(program)? {
        let args: Vec<&str> = ["man"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let page = printed(program, &args)?;
        tree.add(format!("share/man/man1/{NAME}-{}.1", words.join("-")), page);
    }
    let doc = format!("share/doc/{NAME}");
    for name in ["README.md", "CHANGELOG.md", "SECURITY.md"] {
        let text = std::fs::read(workspace.join(name)).map_err(LoadError::io(format!("read {name}")))?;
        tree.add(format!("{doc}/{name}"), text);
    }
    tree.add(format!("{doc}/LICENSE"), files.license.as_slice());
    tree.add(format!("{doc}/THIRD-PARTY-NOTICES.txt"), files.notices.as_str());
    Ok(tree)
}

/// The words of each command, as the program lists them.
fn commands(program: &Path) -> Result<Vec<Vec<String>>, LoadError> {
    #[derive(Deserialize)]
    struct Manifest {
        commands: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        path: Vec<String>,
        short_path: Option<Vec<String>>,
    }
    let text = printed(
        program,
        &["manifest", "--fields", "commands.path,commands.short_path", "--envelope", "raw"],
    )?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| LoadError::Program {
        program: format!("{NAME} manifest"),
        output: error.to_string(),
    })?;
    Ok(manifest.commands.into_iter().map(|entry| entry.short_path.unwrap_or(entry.path)).collect())
}

/// What the program prints, in an environment without configuration.
fn printed(program: &Path, args: &[&str]) -> Result<Vec<u8>, LoadError> {
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .env("HOME", "/nonexistent")
        .output()
        .map_err(LoadError::io(format!("run {}", program.display())))?;
    if !output.status.success() || output.stdout.is_empty() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(LoadError::Program { program: program.display().to_string(), output });
    }
    Ok(output.stdout)
}
