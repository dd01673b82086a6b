//! `scripts/get` installs an archive whose checksum is right, and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::{RunOutput, World, output_of, read_text};

use crate::{PROGRAM, VERSION, archive_name, assert_runs, packages, succeed};

fn get(world: &World, args: &[&str]) -> RunOutput {
    let mut command = world.command_as(Path::new("sh"), [workspace().join("scripts/get")]);
    output_of(command.args(args))
}

/// A folder with the archive and the checksums.
fn download(world: &World) -> String {
    let folder = world.home().join("download");
    fs::create_dir(&folder).unwrap();
    for name in [format!("{}.tar.gz", archive_name()), "SHA256SUMS".to_owned()] {
        fs::copy(packages().join(&name), folder.join(name)).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn the_script_installs_program_manual_and_completions_below_the_prefix() {
    let world = World::new(PROGRAM);
    let from = download(&world);
    let run = get(&world, &["--from", &from, "--prefix", "here/too", "--version", VERSION]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let prefix = world.project().join("here/too");
    assert!(run.stdout.contains(&format!("export PATH=\"{}/bin:$PATH\"", prefix.display())), "{run:?}");
    assert_runs(&world, &prefix.join("bin/mcp-delegator"));
    assert!(read_text(&prefix.join("share/man/man1/mcp-delegator-run.1")).contains(".TH"));
    for shell in ["bash-completion/completions/mcp-delegator", "zsh/site-functions/_mcp-delegator"] {
        assert!(read_text(&prefix.join("share").join(shell)).contains("mcp-delegator"), "{shell}");
    }
    let by_default = get(&world, &["--from", &from]);
    assert_eq!(by_default.exit, Some(0), "{by_default:?}");
    assert!(world.home().join(".local/bin/mcp-delegator").is_file());
    let changed = fs::read_dir(world.home()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut changed: Vec<_> = changed.filter(|name| name != ".config").collect();
    changed.sort();
    assert_eq!(changed, [".local", "download"], "another file of the user was changed");
}

#[test]
fn a_wrong_checksum_or_version_installs_nothing() {
    let world = World::new(PROGRAM);
    let from = download(&world);
    let refused = |args: &[&str], reason: &str| {
        let run = get(&world, &[&["--prefix", "prefix", "--from", from.as_str()], args].concat());
        assert_eq!(run.exit, Some(1), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
        assert!(!world.project().join("prefix").exists());
    };
    refused(&["--version", "1.0.0"], "has no archive of version 1.0.0");
    let archive = Path::new(&from).join(format!("{}.tar.gz", archive_name()));
    let mut bytes = fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&archive, bytes).unwrap();
    refused(&[], "nothing was installed");
    fs::remove_file(&archive).unwrap();
    refused(&[], "could not read");
    for args in [&["--prefix"][..], &["--bogus"], &["--from="]] {
        assert_eq!(get(&world, args).exit, Some(2), "{args:?}");
    }
}

/// The archive unpacks into one folder, and the list has the checksum of every file.
#[test]
fn the_checksums_are_those_of_all_packages() {
    let mut check = Command::new("sha256sum");
    let run = succeed(check.args(["--check", "--strict", "SHA256SUMS"]).current_dir(packages()));
    assert_eq!(run.stdout.lines().count(), fs::read_dir(packages()).unwrap().count() - 1, "{run:?}");
    let mut tar = Command::new("tar");
    let listed = succeed(tar.arg("-tzf").arg(packages().join(format!("{}.tar.gz", archive_name())))).stdout;
    assert!(listed.lines().all(|path| path.starts_with(&format!("{}/", archive_name()))), "{listed}");
}
