//! Mirrors of repositories, checkouts from them, and the diff of a checkout. A local repository stands in for
//! a remote one.

#![expect(clippy::disallowed_methods, reason = "tests change checkouts with git")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use delegator_git::{
    BaseCommit, Git, GitError, LeftOutReason, Mirror, NewCommit, RemoteAccess, RemoteError, RemoteUrl,
    TaskCheckout, TreeListing, WorkTreeDiff, delete_unused_mirrors,
};

use crate::world::{GIT, World};

const LIMIT: Duration = Duration::from_secs(60);

struct Fleet {
    world: World,
    mirrors: PathBuf,
}

impl Fleet {
    fn new() -> Fleet {
        let world = World::new();
        let mirrors = world.root.path().join("mirrors");
        fs::create_dir(&mirrors).unwrap();
        Fleet { world, mirrors }
    }

    fn git(&self) -> Git {
        let home = self.world.home();
        Git::new(GIT.into(), [(OsStr::new("HOME"), home.as_os_str())], LIMIT)
    }

    fn access(&self) -> RemoteAccess {
        let home = self.world.home();
        let path = OsStr::new("/usr/local/bin:/usr/bin:/bin");
        RemoteAccess::new(
            &self.git(),
            [(OsStr::new("HOME"), home.as_os_str()), (OsStr::new("PATH"), path)],
            LIMIT,
        )
    }

    fn url(&self) -> RemoteUrl {
        RemoteUrl::parse(self.world.tree.to_str().unwrap()).unwrap()
    }

    fn mirror(&self) -> Mirror {
        Mirror::new(self.access(), self.url(), &self.mirrors)
    }

    fn mirror_dir(&self) -> PathBuf {
        let mut entries = fs::read_dir(&self.mirrors).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.extension() == Some(OsStr::new("git"))).unwrap()
    }

    fn check_out(&self, name: &str) -> (BaseCommit, PathBuf) {
        let base = self.mirror().resolve(None).unwrap();
        let dir = self.world.root.path().canonicalize().unwrap().join(name);
        self.mirror().check_out(&base, &dir).unwrap();
        (base, dir)
    }

    /// The listing as a restarted worker reads it.
    fn listing(&self, base: &BaseCommit, dir: &Path) -> TreeListing {
        let store = dir.with_extension("before");
        let checkout = TaskCheckout { dir, base: &base.commit, store: &store };
        let taken = TreeListing::take(&self.git(), &checkout, &self.world.temp_dir());
        TreeListing::from_bytes(&taken.unwrap().to_bytes()).unwrap()
    }

    fn diff(&self, base: &BaseCommit, dir: &Path, before: &TreeListing) -> WorkTreeDiff {
        let store = dir.with_extension("before");
        let checkout = TaskCheckout { dir, base: &base.commit, store: &store };
        let temp_dir = self.world.temp_dir();
        WorkTreeDiff::take(&self.git(), &checkout, &self.mirror(), before, &temp_dir).unwrap()
    }
}

fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new(GIT)
        .args(["-c", "user.name=agent", "-c", "user.email=agent@localhost"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn text(diff: &WorkTreeDiff) -> String {
    String::from_utf8_lossy(diff.diff.bytes()).into_owned()
}

#[test]
fn the_latest_commit_is_checked_out_and_the_mirror_is_reused() {
    let fleet = Fleet::new();
    let (first, dir) = fleet.check_out("one");
    assert_eq!(
        (first.branch.as_deref(), fs::read_to_string(dir.join("a")).unwrap()),
        (Some("main"), "a1\n".to_owned())
    );
    assert_eq!(git_in(&dir, &["status", "--porcelain", "--branch"]), "## main...origin/main\n");
    let mirror = fs::metadata(fleet.mirror_dir()).unwrap().ino();
    fleet.world.write("a", "a2\n");
    fleet.world.git(&["commit", "--quiet", "-am", "second"]);
    let (second, dir) = fleet.check_out("two");
    assert_ne!(first.commit, second.commit);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a2\n");
    assert_eq!(fs::metadata(fleet.mirror_dir()).unwrap().ino(), mirror, "it was fetched, not cloned again");
}

#[test]
fn branches_are_resolved_and_unknown_ones_are_errors() {
    let fleet = Fleet::new();
    fleet.world.git(&["checkout", "--quiet", "-b", "feature/x"]);
    fleet.world.commit("on the branch");
    fleet.world.git(&["checkout", "--quiet", "main"]);
    let base = fleet.mirror().resolve(Some("feature/x")).unwrap();
    assert_eq!(base.commit, fleet.world.git(&["rev-parse", "feature/x"]).trim());
    let missing = fleet.mirror().resolve(Some("nowhere")).unwrap_err();
    assert!(matches!(missing, RemoteError::NoRevision { revision, .. } if revision == "nowhere"));
}

#[test]
fn tags_and_commits_are_checked_out_without_a_branch() {
    let fleet = Fleet::new();
    let first = fleet.world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    fleet.world.git(&["tag", "-a", "v1", "-m", "release"]);
    fleet.world.git(&["tag", "light"]);
    fleet.world.write("a", "a2\n");
    fleet.world.git(&["commit", "--quiet", "-am", "second"]);
    for (number, wanted) in ["v1", "light", "refs/tags/v1", &first, &first[..10]].iter().enumerate() {
        let base = fleet.mirror().resolve(Some(wanted)).unwrap();
        assert_eq!((&base.commit, &base.branch), (&first, &None), "{wanted}");
        let dir = fleet.world.root.path().join(number.to_string());
        fleet.mirror().check_out(&base, &dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a1\n");
        assert_eq!(git_in(&dir, &["status", "--porcelain", "--branch"]), "## HEAD (no branch)\n");
    }
    // A tag that moved, and a commit that the mirror does not have yet.
    fleet.world.git(&["tag", "-f", "light"]);
    let second = fleet.world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(fleet.mirror().resolve(Some("light")).unwrap().commit, second);
    fleet.world.commit("third");
    let third = fleet.world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(fleet.mirror().resolve(Some(&third)).unwrap().commit, third);
    let missing = fleet.mirror().resolve(Some(&"a".repeat(40))).unwrap_err();
    assert!(matches!(missing, RemoteError::NoRevision { .. }), "{missing}");
}

#[test]
fn a_deleted_and_a_rewritten_branch_are_followed() {
    let fleet = Fleet::new();
    fleet.world.git(&["branch", "old"]);
    fleet.mirror().resolve(Some("old")).unwrap();
    fleet.world.git(&["branch", "-D", "old"]);
    fleet.world.git(&["branch", "old/nested"]);
    fleet.world.git(&["commit", "--quiet", "--amend", "-m", "rewritten"]);
    assert_eq!(fleet.mirror().resolve(None).unwrap().commit, fleet.world.git(&["rev-parse", "HEAD"]).trim());
    fleet.mirror().resolve(Some("old/nested")).unwrap();
    assert!(matches!(fleet.mirror().resolve(Some("old")), Err(RemoteError::NoRevision { .. })));
}

#[test]
fn an_empty_and_a_missing_repository_are_errors_with_gits_message() {
    let fleet = Fleet { world: World::unborn(), ..Fleet::new() };
    assert!(matches!(fleet.mirror().resolve(None), Err(RemoteError::Empty { .. })));
    let url = RemoteUrl::parse("/nowhere/at/all").unwrap();
    let error = Mirror::new(fleet.access(), url, &fleet.mirrors).resolve(None).unwrap_err().to_string();
    assert!(
        error.contains("/nowhere/at/all") && error.contains("does not appear to be a git repository"),
        "{error}"
    );
}

#[test]
fn a_broken_mirror_is_rebuilt() {
    let fleet = Fleet::new();
    fleet.check_out("one");
    let mirror = fleet.mirror_dir();
    // A killed git leaves its lock files; a full disk leaves truncated objects.
    fs::write(mirror.join("packed-refs.lock"), "").unwrap();
    fs::write(mirror.join("refs/heads/main.lock"), "").unwrap();
    fleet.world.commit("second");
    fleet.check_out("two");
    let mut folders = vec![mirror.join("objects")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => fs::remove_file(path).unwrap(),
            }
        }
    }
    fleet.check_out("three");
    fs::write(mirror.join("HEAD"), "").unwrap();
    fs::write(mirror.join("config"), "[broken").unwrap();
    fleet.check_out("four");
    fs::remove_dir_all(&mirror).unwrap();
    fs::create_dir(&mirror).unwrap();
    fs::create_dir(mirror.with_extension("new")).unwrap();
    fleet.check_out("five");
}

#[test]
fn only_a_mirror_that_was_not_used_is_deleted() {
    let fleet = Fleet::new();
    fleet.check_out("one");
    let mirror = fleet.mirror_dir();
    let lock = mirror.with_extension("lock");
    let old = SystemTime::now() - Duration::from_secs(3600);
    delete_unused_mirrors(&fleet.mirrors, old).unwrap();
    assert!(mirror.join("HEAD").is_file());
    let file = fs::File::options().write(true).open(&lock).unwrap();
    file.set_modified(old - Duration::from_secs(1)).unwrap();
    file.lock().unwrap();
    delete_unused_mirrors(&fleet.mirrors, old).unwrap();
    assert!(mirror.join("HEAD").is_file(), "another process uses it");
    drop(file);
    fs::create_dir_all(mirror.with_extension("old").join("objects")).unwrap();
    delete_unused_mirrors(&fleet.mirrors, old).unwrap();
    let rest: Vec<_> = fs::read_dir(&fleet.mirrors).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(rest.as_slice(), std::slice::from_ref(&lock));
    fleet.check_out("two");
    assert!(fs::metadata(&lock).unwrap().modified().unwrap() > old, "it was used");
}

#[test]
fn a_running_checkout_retains_its_objects_when_the_mirror_is_rebuilt() {
    let fleet = Fleet::new();
    let (base, dir) = fleet.check_out("one");
    let before = fleet.listing(&base, &dir);
    fleet.world.write("a", "rewritten\n");
    fleet.world.git(&["commit", "--quiet", "--amend", "-am", "rewritten"]);
    let damage = || fs::write(fleet.mirror_dir().join("config"), "[broken").unwrap();
    damage();
    let (rewritten, _) = fleet.check_out("two");
    assert_ne!(rewritten.commit, base.commit);
    assert_eq!(git_in(&dir, &["show", "HEAD:a"]), "a1\n");
    fs::write(dir.join("a"), "changed\n").unwrap();
    assert!(text(&fleet.diff(&base, &dir, &before)).contains("-a1\n+changed"));
    // Objects of the old mirror are not expected in the new one.
    fleet.world.commit("third");
    fleet.check_out("three");
}

#[test]
fn the_diff_does_not_need_the_git_directory_that_the_agent_owns() {
    let fleet = Fleet::new();
    for (name, destroy) in [
        ("removed", &["rm", "-rf", ".git"][..]),
        (
            "new",
            &[
                "sh",
                "-c",
                "rm -rf .git; git init --quiet; git add -A; git -c user.name=a -c user.email=a commit -qm x",
            ],
        ),
        ("damaged", &["rm", "-rf", ".git/objects"]),
        ("elsewhere", &["git", "config", "core.worktree", "/tmp"]),
    ] {
        let (base, dir) = fleet.check_out(name);
        let before = fleet.listing(&base, &dir);
        fs::write(dir.join("a"), "changed\n").unwrap();
        fs::write(dir.join("new"), "x\n").unwrap();
        let status = Command::new(destroy[0]).args(&destroy[1..]).current_dir(&dir).status().unwrap();
        assert!(status.success(), "{name}");
        let diff = fleet.diff(&base, &dir, &before);
        let shown = text(&diff);
        assert!(shown.contains("-a1\n+changed") && shown.contains("b/new"), "{name}: {shown}");
        assert_eq!(shown.matches("diff --git").count(), 2, "{name}: {shown}");
        let branch = format!("mcp-delegator/{name}");
        let commit = NewCommit { branch: &branch, message: name, time_sec: 0 };
        diff.push(&fleet.access(), &fleet.url(), &base.commit, commit).unwrap();
        assert_eq!(fleet.world.git(&["show", &format!("{branch}:a")]), "changed\n");
    }
}

#[test]
fn an_unreachable_repository_leaves_the_mirror_alone() {
    let fleet = Fleet::new();
    fleet.check_out("one");
    let away = fleet.world.tree.with_extension("away");
    fs::rename(&fleet.world.tree, &away).unwrap();
    fleet.mirror().resolve(None).unwrap_err();
    assert!(fleet.mirror_dir().join("objects").is_dir());
    fs::rename(&away, &fleet.world.tree).unwrap();
    fleet.check_out("two");
}

#[test]
fn a_checkout_executes_nothing_of_the_repository() {
    let fleet = Fleet::new();
    let evidence = fleet.world.root.path().join("executed");
    let command = format!("touch {}", evidence.display());
    fleet.world.write(".gitattributes", "* filter=evil\n");
    fleet.world.write("hooks/post-checkout", format!("#!/bin/sh\n{command}\n"));
    let hook = fleet.world.tree.join("hooks/post-checkout");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    fleet.world.git(&["add", "."]);
    fleet.world.commit("attributes");
    for (key, value) in [("filter.evil.smudge", command.as_str()), ("filter.evil.clean", &command)] {
        fleet.world.git(&["config", key, value]);
    }
    fleet.world.git(&["config", "core.hooksPath", "hooks"]);
    let (base, dir) = fleet.check_out("one");
    // The agent configures commands in its own checkout.
    for key in ["filter.evil.clean", "core.fsmonitor", "diff.external", "core.sshCommand"] {
        git_in(&dir, &["config", key, &command]);
    }
    let before = fleet.listing(&base, &dir);
    fs::write(dir.join("a"), "changed\n").unwrap();
    assert!(text(&fleet.diff(&base, &dir, &before)).contains("+changed"));
    assert!(!evidence.exists());
}

#[test]
fn the_diff_has_all_changes_of_the_agent_and_none_of_the_setup() {
    let fleet = Fleet::new();
    let (base, dir) = fleet.check_out("one");
    fs::write(dir.join("from-setup"), "x\n").unwrap();
    fs::write(dir.join("b"), "setup changed this\n").unwrap();
    fs::create_dir(dir.join("build")).unwrap();
    fs::write(dir.join("build/ignored"), "x\n").unwrap();
    let before = fleet.listing(&base, &dir);
    assert!(text(&fleet.diff(&base, &dir, &before)).is_empty());
    fs::write(dir.join("a"), "a1\ncommitted\n").unwrap();
    git_in(&dir, &["commit", "--quiet", "-am", "by the agent"]);
    fs::write(dir.join("new file"), "untracked\n").unwrap();
    fs::write(dir.join("binary"), [0, 1, 2, 255]).unwrap();
    fs::write(dir.join("late.o"), "ignored\n").unwrap();
    let diff = fleet.diff(&base, &dir, &before);
    let shown = text(&diff);
    for expected in ["+committed", "+untracked", "GIT binary patch", "b/new file"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    for unexpected in ["from-setup", "setup changed", "ignored"] {
        assert!(!shown.contains(unexpected), "{unexpected}: {shown}");
    }
    assert!(diff.left_out.is_empty());
    // It applies to the commit.
    let (_, other) = fleet.check_out("two");
    fs::write(fleet.world.temp_dir().join("diff"), diff.diff.bytes()).unwrap();
    git_in(&other, &["apply", "--index", fleet.world.temp_dir().join("diff").to_str().unwrap()]);
    assert_eq!(fs::read(other.join("binary")).unwrap(), [0, 1, 2, 255]);
}

#[test]
fn edits_of_the_setup_are_removed_from_files_that_the_agent_edits_too() {
    let fleet = Fleet::new();
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    for name in ["separate", "same", "mode", "deleted"] {
        fleet.world.write(name, lines);
    }
    fleet.world.git(&["add", "."]);
    fleet.world.commit("lines");
    let (base, dir) = fleet.check_out("one");
    let edit = |name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        fs::write(dir.join(name), text.replacen(from, to, 1)).unwrap();
    };
    for name in ["separate", "same", "mode", "deleted"] {
        edit(name, "2\n", "setup\n");
    }
    fs::write(dir.join("created"), "by the setup\n").unwrap();
    let before = fleet.listing(&base, &dir);
    edit("separate", "8\n", "agent\n");
    edit("same", "setup\n", "agent\n");
    edit("created", "by", "agent, by");
    fs::set_permissions(dir.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(dir.join("deleted")).unwrap();
    // The agent owns the git directory, not what is stored.
    fs::remove_dir_all(dir.join(".git")).unwrap();
    let diff = fleet.diff(&base, &dir, &before);
    assert_eq!(diff.with_setup_edits, ["same"]);
    let (_, other) = fleet.check_out("two");
    fs::write(fleet.world.temp_dir().join("diff"), diff.diff.bytes()).unwrap();
    git_in(&other, &["apply", fleet.world.temp_dir().join("diff").to_str().unwrap()]);
    let text = |name: &str| fs::read_to_string(other.join(name)).unwrap();
    assert_eq!(text("separate"), lines.replace("8\n", "agent\n"));
    assert_eq!(text("same"), lines.replace("2\n", "agent\n"));
    assert_eq!(text("mode"), lines);
    assert_eq!(fs::metadata(other.join("mode")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(text("created"), "agent, by the setup\n");
    assert!(!other.join("deleted").exists());
}

#[test]
fn changes_that_are_not_in_the_diff_are_named() {
    let fleet = Fleet::new();
    let (base, dir) = fleet.check_out("one");
    let large = |name: &str, bytes| fs::File::create(dir.join(name)).unwrap().set_len(bytes).unwrap();
    for name in ["cache", "rewritten", "shrunk"] {
        large(name, 21 << 20);
    }
    git_in(&dir, &["init", "--quiet", "vendor"]);
    fs::write(dir.join("vendor/x"), "x").unwrap();
    let before = fleet.listing(&base, &dir);
    assert!(fleet.diff(&base, &dir, &before).left_out.is_empty());
    large("rewritten", 22 << 20);
    large("new", 23 << 20);
    fs::write(dir.join("shrunk"), "small\n").unwrap();
    fs::write(dir.join("vendor/x"), "changed").unwrap();
    let diff = fleet.diff(&base, &dir, &before);
    let named: Vec<_> = diff.left_out.iter().map(|file| (file.path.as_str(), file.reason)).collect();
    let (too_large, repository) = (LeftOutReason::TooLarge, LeftOutReason::Repository);
    assert_eq!(named, [("new", too_large), ("rewritten", too_large), ("vendor/", repository)]);
    let shown = text(&diff);
    assert!(shown.contains("+small") && shown.matches("diff --git").count() == 1, "{shown}");
}

#[test]
fn files_that_replace_directories_and_deletions_are_in_the_diff() {
    let fleet = Fleet::new();
    fleet.world.write("dir/inner", "x\n");
    fleet.world.git(&["add", "."]);
    fleet.world.commit("directory");
    let (base, dir) = fleet.check_out("one");
    let before = fleet.listing(&base, &dir);
    fs::remove_dir_all(dir.join("dir")).unwrap();
    fs::write(dir.join("dir"), "now a file\n").unwrap();
    fs::remove_file(dir.join("b")).unwrap();
    let shown = text(&fleet.diff(&base, &dir, &before));
    for expected in ["+now a file", "a/dir/inner", "deleted file mode", "-b1"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn changes_are_pushed_as_one_commit_to_a_branch_of_their_own() {
    let fleet = Fleet::new();
    let (base, dir) = fleet.check_out("one");
    let before = fleet.listing(&base, &dir);
    fs::write(dir.join("a"), "pushed\n").unwrap();
    let diff = fleet.diff(&base, &dir, &before);
    let push = |message: &str| {
        let commit = NewCommit { branch: "mcp-delegator/T-1", message, time_sec: 1_700_000_000 };
        diff.push(&fleet.access(), &fleet.url(), &base.commit, commit)
    };
    push("first").unwrap();
    push("first").unwrap();
    let error = push("second").unwrap_err().to_string();
    assert!(error.contains("rejected"), "another commit must not be replaced: {error}");
    let shown = fleet.world.git(&["log", "--format=%s %an %at", "mcp-delegator/T-1"]);
    assert!(shown.starts_with("first mcp-delegator 1700000000\nfirst t "), "{shown}");
    let cancelled = fleet.git().with_cancel(Arc::new(AtomicBool::new(true)));
    let access = RemoteAccess::new(&cancelled, [], LIMIT);
    let commit = NewCommit { branch: "mcp-delegator/T-2", message: "third", time_sec: 0 };
    assert!(diff.push(&access, &fleet.url(), &base.commit, commit).unwrap_err().is_cancelled());
    assert_eq!(fleet.world.git(&["show", "mcp-delegator/T-1:a"]), "pushed\n");
    assert_eq!(fleet.world.git(&["rev-parse", "main"]).trim(), base.commit);
}

#[test]
fn commits_of_the_agent_are_pushed_if_they_continue_the_history() {
    let fleet = Fleet::new();
    let push = |name: &str, work: &dyn Fn(&Path)| {
        let (base, dir) = fleet.check_out(name);
        fs::write(dir.join("from-setup"), "x\n").unwrap();
        let before = fleet.listing(&base, &dir);
        work(&dir);
        let diff = fleet.diff(&base, &dir, &before);
        for _ in 0..2 {
            let commit = NewCommit { branch: name, message: "the rest", time_sec: 0 };
            diff.push(&fleet.access(), &fleet.url(), &base.commit, commit).unwrap();
        }
        let subjects = fleet.world.git(&["log", "--format=%s", name]);
        (subjects, fleet.world.git(&["ls-tree", "--name-only", name]))
    };
    let commit = |dir: &Path, message: &str| {
        fs::write(dir.join(message), "x\n").unwrap();
        git_in(dir, &["add", message]);
        git_in(dir, &["commit", "--quiet", "-m", message]);
    };
    let (subjects, _) = push("complete", &|dir| {
        git_in(dir, &["checkout", "--quiet", "-b", "topic"]);
        commit(dir, "one");
        commit(dir, "two");
    });
    assert_eq!(subjects, "two\none\nfirst\n");
    let (subjects, files) = push("partial", &|dir| {
        commit(dir, "one");
        git_in(dir, &["add", "from-setup"]);
        git_in(dir, &["commit", "--quiet", "-m", "what the setup made"]);
        fs::write(dir.join("uncommitted"), "in a restore point\n").unwrap();
        // The supervisor has stored it already.
        let store = dir.join(".git/mcp-delegator/objects");
        fs::create_dir_all(&store).unwrap();
        let mut hash = Command::new(GIT);
        hash.args(["hash-object", "-w", "uncommitted"]).current_dir(dir).env("GIT_OBJECT_DIRECTORY", store);
        assert!(hash.output().unwrap().status.success());
    });
    assert_eq!(subjects, "the rest\nwhat the setup made\none\nfirst\n");
    assert_eq!(files, ".gitignore\na\nb\none\nuncommitted\n", "the branch ends in the state of the diff");
    let (subjects, _) = push("rewritten", &|dir| {
        commit(dir, "one");
        git_in(dir, &["reset", "--quiet", "--soft", "HEAD~1"]);
        git_in(dir, &["commit", "--quiet", "--amend", "-m", "another first"]);
    });
    assert_eq!(subjects, "the rest\nfirst\n");
}

#[test]
fn a_cancelled_call_ends_and_a_credential_is_never_requested() {
    let fleet = Fleet::new();
    let cancelled = fleet.git().with_cancel(Arc::new(AtomicBool::new(true)));
    let access = RemoteAccess::new(&cancelled, [], LIMIT);
    let error = Mirror::new(access, fleet.url(), &fleet.mirrors).resolve(None).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    // ssh gets batch mode, and the message of git has no password.
    let ssh = fleet.world.root.path().join("ssh");
    fs::write(&ssh, "#!/bin/sh\necho \"$@\" >&2\nexit 1\n").unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let home = fleet.world.home();
    let variables =
        [("HOME", home.as_os_str()), ("GIT_SSH_COMMAND", ssh.as_os_str()), ("GIT_DIR", OsStr::new("/x"))];
    let variables = variables.map(|(name, value)| (OsStr::new(name), value));
    let access = RemoteAccess::new(&fleet.git(), variables, LIMIT);
    let url = RemoteUrl::parse("ssh://git:secret@localhost/x").unwrap();
    let error = Mirror::new(access, url, &fleet.mirrors).resolve(None).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("-oBatchMode=yes") && !message.contains("secret"), "{message}");
    assert!(!matches!(error, RemoteError::Git(GitError::TimedOut { .. })));
}
