//! Opens a link in the user's browser.
//!
//! The link contains a code, and other users can read the arguments of every process. So the browser is given a file
//! that only the user can read, and which leads to the link.
#![expect(clippy::disallowed_methods, reason = "this module starts the user's browser")]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::spec::process::Process;

/// The program that opens a page; `None` if there is no screen on which it could.
pub(super) fn opener(process: &Process) -> Option<String> {
    let is_set = |name: &str| process.variable(name).is_some_and(|value| !value.is_empty());
    // It may list several.
    let given = process.variable("BROWSER").and_then(|programs| programs.split(':').next());
    let given = given.filter(|program| !program.is_empty());
    let has_screen = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    given.map(str::to_owned).or_else(|| has_screen.then(|| "xdg-open".to_owned()))
}

/// The opener may be a browser that runs on, so its end is not awaited.
pub(super) fn open(opener: &str, link: &str, path: &Path) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // A link has only characters that have no meaning in HTML.
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url={link}\"><title>mcp-delegator</title>"
    )?;
    let mut command = Command::new(opener);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    std::thread::spawn(move || child.wait());
    Ok(())
}
