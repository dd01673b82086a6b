//! A process with a copied command line is not taken for a supervisor.

#![expect(clippy::disallowed_methods, reason = "the test starts a process that copies a command line")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use delegator_domain::task::{TaskEnd, TaskLocation};
use delegator_registry::{Attempt, Finish, Identity, NewTask, Nonce, OpenOptions, Promotion, StateDir};
use delegator_supervisor::process::ProcessIdentity;

use super::*;

#[test]
fn only_supervisor_command_lines_name_a_claim() {
    let (id, nonce) = (TaskId::from_random(TaskLocation::Local, [3; 16]), Nonce::from_random([5; 16]));
    let cmdline =
        |args: &[&str]| args.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
    let ours = ["/proc/self/exe", SUPERVISE, id.as_str(), nonce.as_str()];
    assert_eq!(parse_claim(&cmdline(&ours)), Some((id.clone(), nonce.clone())));
    for other in [
        vec!["/proc/self/exe", SUPERVISE, id.as_str()],
        vec!["/proc/self/exe", "status", id.as_str(), nonce.as_str()],
        vec!["/proc/self/exe", SUPERVISE, "T-local-1", nonce.as_str()],
        vec!["/proc/self/exe", SUPERVISE, id.as_str(), "x"],
        vec!["/proc/self/exe", SUPERVISE, id.as_str(), nonce.as_str(), "more"],
    ] {
        assert_eq!(parse_claim(&cmdline(&other)), None, "{other:?}");
    }
    assert_eq!(parse_claim(b""), None);
}

/// A process with the command line of a supervisor, until it is dropped.
struct Impostor(Child);

impl Impostor {
    /// `cat` blocks on a pipe that has the name of the first argument.
    fn start(folder: &Path, id: &TaskId, nonce: &Nonce) -> Impostor {
        let pipe = folder.join(SUPERVISE);
        let status = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(status.success() || pipe.exists());
        let mut command = Command::new("cat");
        command.args([SUPERVISE, id.as_str(), nonce.as_str()]).current_dir(folder);
        Impostor(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn new_task(id: &TaskId) -> NewTask {
    NewTask::reading(id.clone(), "/", "x")
}

fn identity_of(process: &ProcessIdentity) -> Identity {
    Identity {
        boot_id: process.boot_id.clone(),
        pid: process.pid.unsigned_abs(),
        start_time: process.start_time,
        pid_ns: process.pid_namespace,
    }
}

#[test]
fn a_supervisor_is_identified_by_its_process_not_by_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let dir = StateDir::open(&folder.path().join("state"), &OpenOptions::default()).unwrap();
    let mut registry = Registry::open(&dir).unwrap();
    let (own, other) = (
        TaskId::from_random(TaskLocation::Local, [1; 16]),
        TaskId::from_random(TaskLocation::Local, [2; 16]),
    );
    let nonce = Nonce::from_random([7; 16]);
    let (real, copy) =
        (Impostor::start(folder.path(), &other, &nonce), Impostor::start(folder.path(), &other, &nonce));
    let owner = |registry: &Registry, copy: &Impostor| owner_of(registry, &own, copy.pid());
    assert_eq!(owner(&registry, &real), Owner::ThisTask, "there is no such task");

    registry.submit(&new_task(&other), b"{}", 1).unwrap();
    assert_eq!(owner(&registry, &real), Owner::ThisTask, "it is queued: nothing was started");

    let fresh_nonce = || nonce.clone();
    let promotion = Promotion { max_concurrent: 2, fresh_nonce: &fresh_nonce };
    registry.claim_next(&promotion, 2).unwrap().unwrap();
    assert_eq!(owner(&registry, &real), Owner::Undecided);
    assert_eq!(owner(&registry, &copy), Owner::Undecided);
    assert_eq!(owner_of(&registry, &other, real.pid()), Owner::ThisTask, "it names the task that sweeps");

    let identity = identity_of(&ProcessIdentity::of(real.pid()).unwrap().unwrap());
    registry.begin_work(&other, &nonce, &identity, None, 3).unwrap();
    assert_eq!(owner(&registry, &real), Owner::AnotherTask);
    assert_eq!(owner(&registry, &copy), Owner::ThisTask, "it copied the command line and is another process");

    let finish = Finish::bare(TaskEnd::Completed);
    registry.finish(&other, &Attempt::working(nonce.clone()), &finish, &promotion, 4).unwrap();
    assert_eq!(owner(&registry, &real), Owner::AnotherTask, "it still starts the next tasks");
    assert_eq!(owner(&registry, &copy), Owner::ThisTask);
}
