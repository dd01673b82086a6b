//! `cargo xtask publish` publishes nothing unless everything is there.

#![expect(clippy::disallowed_methods, reason = "starts the program as a developer does")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn an_incomplete_release_is_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let (out, programs, called) = ["out", "programs", "called"].map(|name| folder.path().join(name)).into();
    fs::create_dir(&out).unwrap();
    fs::create_dir(&programs).unwrap();
    for name in ["npm", "twine"] {
        let program = programs.join(name);
        fs::write(&program, format!("#!/bin/sh\necho {name} >> {}\n", called.display())).unwrap();
        fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["publish", "--out"])
        .arg(&out)
        .env("PATH", &programs)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("nothing was published") && error.contains("linux-arm64"), "{error}");
    assert!(!called.exists(), "a package was published");
}
