//! A full disk: a small file system of its own, for which a test must be root. Without that right, a limit of the size
//! of files, which lets the same writes fail with another error number.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use rustix::process::{Resource, Rlimit, prlimit};

use super::home::{ServerHome, account, give_to_account};

pub(super) fn limit(home: &ServerHome, bytes: u64) {
    std::fs::create_dir(home.data()).unwrap();
    if account().is_some() {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=0700"), "tmpfs"]).arg(home.data());
        assert!(mount.status().unwrap().success(), "{mount:?} failed");
    }
    give_to_account(&home.data());
}

pub(super) fn fill(home: &ServerHome) {
    if account().is_some() {
        let mut filler = File::create(home.data().join("filler")).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
    } else {
        limit_files(home, Some(0));
    }
}

pub(super) fn free(home: &ServerHome) {
    if account().is_some() {
        std::fs::remove_file(home.data().join("filler")).unwrap();
    } else {
        limit_files(home, None);
    }
}

fn limit_files(home: &ServerHome, current: Option<u64>) {
    for process in home.processes() {
        let limit = Rlimit { current, maximum: None };
        prlimit(Some(process), Resource::Fsize, limit).unwrap();
    }
}
