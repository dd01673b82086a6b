//! A root directory in which the steps of an image run without a container.
//!
//! It stands for the base image: the directories of this machine, each below a writable overlay, in a mount namespace of
//! its own. What a step writes goes to a temporary directory and disappears with it. A holder process owns the
//! namespace; every step enters it with `nsenter` and `chroot`. This needs root, as installing packages does.

#![expect(clippy::disallowed_methods, reason = "the steps of an image are programs to run")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Mounts the root in `$1` and waits. Links such as `/bin` are copied; `/run` and `/tmp` start empty. npm's downloads of
/// this machine are visible below `/root`.
const MOUNT: &str = r#"
set -euo pipefail
base=$1
mkdir -p "$base/root/run/secrets" "$base/root/tmp"
chmod 1777 "$base/root/tmp"
for path in /*; do
    name=${path#/}
    if [ -L "$path" ]; then
        cp -P "$path" "$base/root/$name"
    else
        case $name in
            dev | proc | sys) mkdir "$base/root/$name"; mount --rbind "$path" "$base/root/$name" ;;
            etc | opt | root | usr | var)
                mkdir -p "$base/root/$name" "$base/upper/$name" "$base/work/$name"
                chmod --reference="$path" "$base/upper/$name"
                mount -t overlay overlay "$base/root/$name" \
                    -o "lowerdir=$path,upperdir=$base/upper/$name,workdir=$base/work/$name"
                ;;
        esac
    fi
done
echo mounted
exec sleep infinity
"#;

#[derive(Debug)]
pub(crate) struct ImageRoot {
    base: TempDir,
    holder: Child,
}

impl ImageRoot {
    pub(crate) fn mount() -> ImageRoot {
        let base = tempfile::tempdir().unwrap();
        let script = ["--mount", "--propagation", "private", "bash", "-c", MOUNT, "mount"];
        let mut holder = Command::new("unshare")
            .args(script)
            .arg(base.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = holder.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        assert_eq!(line, "mounted\n", "could not mount the root of the image: run the tests as root");
        ImageRoot { base, holder }
    }

    /// A command that runs in the root with these variables only.
    pub(crate) fn command(&self, user: &str, directory: &str, environment: &[(String, String)]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), "chroot"]);
        command.arg(format!("--userspec={user}")).arg(self.base.path().join("root"));
        command.args(["/usr/bin/env", "--ignore-environment", &format!("--chdir={directory}")]);
        command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.stdin(Stdio::null());
        command
    }

    /// Copies a file of this machine into the image.
    pub(crate) fn copy(&self, from: &Path, to: &str, mode: &str) {
        // Through a pipe, because the source is outside of the root.
        let mut command = self.command("0:0", "/", &[]);
        command.args(["install", "-D", &format!("--mode={mode}"), "/dev/stdin", to]);
        command.stdin(std::fs::File::open(from).unwrap());
        assert_success(&mut command);
    }
}

impl Drop for ImageRoot {
    fn drop(&mut self) {
        // The namespace and its mounts end with the process.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Runs a command; what it prints is part of the failure.
#[track_caller]
pub(crate) fn assert_success(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    text
}
