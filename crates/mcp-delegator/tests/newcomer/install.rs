//! `scripts/install` puts the program where it says, whatever directory it is called from.

#![expect(clippy::disallowed_methods, reason = "the test starts the script")]

use std::process::Command;

use delegator_testkit::program::{RunOutput, output_of};

use crate::machine::Machine;

fn install(machine: &Machine, args: &[&str]) -> RunOutput {
    let mut command = Command::new(machine.checkout().join("scripts/install"));
    command.args(args).current_dir(machine.project()).env_clear();
    output_of(command.env("HOME", machine.home()).env("PATH", machine.search_path()))
}

#[test]
fn the_default_is_the_directory_of_cargo() {
    let machine = Machine::new();
    let run = install(&machine, &[]);
    let program = machine.home().join(".cargo/bin/mcp-delegator");
    let expected = format!("Installed {}\nNext: mcp-delegator init\n", program.display());
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), expected.as_str()), "{run:?}");
    assert!(program.is_file());
}

#[test]
fn a_relative_prefix_is_below_the_current_directory() {
    for args in [&["--prefix", "here/too"][..], &["--prefix=here/too"]] {
        let machine = Machine::new();
        let run = install(&machine, args);
        let directory = machine.project().join("here/too/bin");
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert!(directory.join("mcp-delegator").is_file(), "{run:?}");
        assert!(!machine.checkout().join("here").exists());
        let advice = format!("export PATH=\"{}:$PATH\"", directory.display());
        assert!(run.stdout.contains("is not on your PATH") && run.stdout.contains(&advice), "{run:?}");
    }
}

#[test]
fn wrong_arguments_and_a_missing_cargo_change_nothing() {
    let machine = Machine::new();
    for args in [&["--prefix"][..], &["--prefix="], &["--bogus"]] {
        assert_eq!(install(&machine, args).exit, Some(2), "{args:?}");
    }
    std::fs::remove_file(machine.path().join("tools/cargo")).unwrap();
    let run = install(&machine, &[]);
    assert_eq!(run.exit, Some(1), "{run:?}");
    assert!(run.stderr.contains("cargo was not found"), "{run:?}");
    assert!(!machine.home().join(".cargo").exists());
}
