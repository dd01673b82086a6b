//! Every file in `deploy/` passes the linter of its kind, and names the versions that the tests use.

#![expect(clippy::disallowed_methods, reason = "tests run the linters")]

use std::path::{Path, PathBuf};
use std::process::Command;

use delegator_testkit::generated::workspace;

/// The linters that scripts/install-linters installs.
fn linter(name: &str) -> Command {
    let path = workspace().join(".tools/linters-1/bin").join(name);
    assert!(path.exists(), "{} is missing: run scripts/install-linters", path.display());
    let mut command = Command::new(path);
    command.current_dir(workspace());
    command
}

#[track_caller]
fn assert_accepts(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&text));
}

fn deploy(name: &str) -> PathBuf {
    workspace().join("deploy").join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn hadolint_accepts_the_dockerfile() {
    assert_accepts(linter("hadolint").args(["--failure-threshold", "style", "deploy/Dockerfile"]));
}

#[test]
fn shellcheck_accepts_the_scripts() {
    let scripts = std::fs::read_dir(workspace().join("scripts")).unwrap();
    let scripts = scripts.map(|entry| entry.unwrap().path());
    assert_accepts(linter("shellcheck").args(scripts).arg(deploy("start-worker")));
}

#[test]
fn the_compose_file_follows_the_published_schema() {
    let arguments = ["--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"];
    assert_accepts(linter("check-jsonschema").args(arguments));
}

#[test]
fn systemd_accepts_the_unit() {
    // It checks that the program exists, so the unit gets one that does.
    let unit =
        text(&deploy("mcp-delegator-worker.service")).replace("/usr/local/bin/mcp-delegator", "/bin/true");
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("mcp-delegator-worker.service");
    std::fs::write(&path, unit).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&path).output();
    let output = output.expect("systemd-analyze is missing: run scripts/install-linters");
    let problems = String::from_utf8_lossy(&output.stderr);
    let of_unit: Vec<&str> = problems.lines().filter(|line| line.contains("mcp-delegator-worker")).collect();
    assert!(of_unit.is_empty() && output.status.success(), "{problems}");
}

/// A worker that crashes must not take its supervisors with it, and Codex must be able to build its sandbox.
#[test]
fn the_unit_leaves_supervisors_and_the_sandbox_of_codex_alone() {
    let unit = text(&deploy("mcp-delegator-worker.service"));
    let settings: Vec<&str> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    for needed in ["KillMode=process", "OOMPolicy=continue", "Delegate=yes", "NoNewPrivileges=yes"] {
        assert!(settings.contains(&needed), "{needed}");
    }
    for forbidden in
        ["PrivateTmp", "RestrictNamespaces", "PrivateUsers", "ProtectKernelTunables", "ProtectProc"]
    {
        assert!(!settings.iter().any(|line| line.starts_with(forbidden)), "{forbidden}");
    }
}

#[test]
fn the_image_has_the_codex_of_the_tests() {
    let version = |file: &str, name: &str| {
        let text = text(&workspace().join(file));
        let value = text.lines().find_map(|line| line.trim_start_matches("ARG ").strip_prefix(name));
        value.unwrap_or_else(|| panic!("no {name} in {file}")).to_owned()
    };
    assert_eq!(version("deploy/Dockerfile", "CODEX_VERSION="), version("scripts/install-codex", "version="));
}
