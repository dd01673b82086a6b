//! The npm packages, installed from their files without network and without scripts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use delegator_testkit::program::{World, output_of};
use rustix::process::{Pid, Signal, kill_process};

use crate::{PROGRAM, VERSION, assert_runs, packages, succeed, tool};

/// A project with the packages in it.
struct Installed {
    world: World,
}

impl Installed {
    fn new(args: &[&str], with_platform: bool) -> Installed {
        let installed = Installed { world: World::new(PROGRAM) };
        let mut npm =
            installed.world.command_as(Path::new("npm"), ["install", "--offline", "--ignore-scripts"]);
        npm.args(["--no-audit", "--no-fund", "--no-update-notifier"]).args(args);
        npm.arg(packages().join(format!("mcp-delegator-{VERSION}.tgz")));
        if with_platform {
            npm.arg(packages().join(format!("mcp-delegator-linux-{}-{VERSION}.tgz", cpu())));
        }
        succeed(&mut npm);
        installed
    }

    fn shim(&self) -> PathBuf {
        self.world.project().join("node_modules/.bin/mcp-delegator")
    }

    fn native(&self) -> PathBuf {
        self.world.project().join(format!("node_modules/@mcp-delegator/linux-{}/bin/mcp-delegator", cpu()))
    }

    /// Replaces the program by a script.
    fn replace_program(&self, script: &str) {
        fs::write(self.native(), format!("#!/bin/sh\n{script}\n")).unwrap();
    }

    /// Starts the shim with one of the versions of Node.
    fn start(&self, node: &Path) -> Child {
        let mut command = self.world.command_as(node, [self.shim()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }
}

fn cpu() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// One that replaces itself by the program, and one that cannot.
fn nodes() -> [PathBuf; 2] {
    let recent = tool("conformance-0.2.0-alpha.12/node_modules/.bin/node", "install-conformance");
    let installed = succeed(Command::new("sh").args(["-c", "command -v node"])).stdout;
    [recent, installed.trim().into()]
}

fn status_after(mut child: Child, signal: Option<Signal>) -> ExitStatus {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    if let Some(signal) = signal {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    child.wait().unwrap()
}

#[test]
fn npm_installs_the_program_and_the_shim_passes_everything_on() {
    let installed = Installed::new(&[], true);
    assert_runs(&installed.world, &installed.shim());
    let args = ["setup", "cursor", "--print", "--format", "json"];
    let entry =
        succeed(&mut installed.world.command_as(&installed.shim(), args)).json()["data"]["entry"].clone();
    let native = installed.native().canonicalize().unwrap();
    assert!(entry.as_str().unwrap().contains(native.to_str().unwrap()), "clients would start Node: {entry}");
    for node in nodes() {
        let unknown =
            output_of(&mut installed.world.command_as(&node, [&installed.shim(), Path::new("rnu")]));
        let direct = installed.world.run(["rnu"]);
        assert_eq!((unknown.exit, unknown.stderr), (direct.exit, direct.stderr));
    }
    for node in nodes() {
        installed.replace_program("sleep 1000 &\ntrap \"kill $!; exit 7\" TERM\necho ready\nwait");
        assert_eq!(status_after(installed.start(&node), Some(Signal::TERM)).code(), Some(7), "{node:?}");
        installed.replace_program("echo ready\nkill -USR1 $$");
        let killed = status_after(installed.start(&node), None);
        assert_eq!(killed.signal(), Some(Signal::USR1.as_raw()), "{node:?}");
    }
}

#[test]
fn without_a_platform_package_the_shim_names_what_is_missing() {
    let installed = Installed::new(&["--omit=optional"], false);
    let missing = output_of(&mut installed.world.command_as(&installed.shim(), ["--version"]));
    assert_eq!(missing.exit, Some(1));
    let named = format!("the package @mcp-delegator/linux-{} is missing", cpu());
    assert!(missing.stderr.contains(&named) && missing.stderr.contains("--omit=optional"), "{missing:?}");
    let run_as = |fakes: &str| {
        installed.world.write("project/fake.js", fakes);
        let mut node = Command::new("node");
        output_of(node.arg("--require").arg(installed.world.project().join("fake.js")).arg(installed.shim()))
    };
    let other = run_as("Object.defineProperty(process, 'platform', { value: 'plan9' });");
    assert_eq!(other.exit, Some(1));
    assert!(other.stderr.contains("no package for plan9") && other.stderr.contains("linux-x64"), "{other:?}");
    let musl = run_as("process.report.getReport = () => ({ header: {} });");
    assert_eq!(musl.exit, Some(1));
    assert!(musl.stderr.contains("no glibc"), "{musl:?}");
}
