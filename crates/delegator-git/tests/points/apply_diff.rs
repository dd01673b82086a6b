//! Applying a diff to a work tree: what it changes, what it merges, and what it refuses.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use delegator_git::{
    ApplyError, ApplyReport, ApplyRequest, ChangeKind, Conflict, ConflictReason, PreparedDiff, RestorePoint,
    RestoreScope, WriteError, prepare_diff, prepare_restore,
};

use crate::world::{REFERENCE, World, apply, is_already_applied};

/// Every file of a work tree: its permissions and its content, or where a link leads.
pub(crate) type Files = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

impl World {
    /// The diff of what `work` does to the committed files, which are then as before.
    pub(crate) fn diff_of(&self, work: impl FnOnce()) -> Vec<u8> {
        self.diff_with(&["-M"], work)
    }

    pub(crate) fn diff_with(&self, options: &[&str], work: impl FnOnce()) -> Vec<u8> {
        work();
        self.git(&["add", "--all", "--force"]);
        let file = self.root.path().join("diff");
        let output = format!("--output={}", file.display());
        self.git(&[&["diff", "--cached", "--binary", &output], options].concat());
        self.git(&["reset", "--quiet", "--hard"]);
        fs::read(file).unwrap()
    }

    pub(crate) fn prepare_diff(
        &self,
        diff: &[u8],
        base_commit: Option<&str>,
    ) -> Result<PreparedDiff, ApplyError> {
        let request = ApplyRequest { work_tree: &self.tree, diff, base_commit, store: None };
        prepare_diff(&self.runner(), request, &self.temp_dir())
    }

    /// Applies a diff and checks that index and HEAD are as before.
    #[track_caller]
    pub(crate) fn apply_diff(&self, diff: &[u8]) -> Result<(ApplyReport, Option<RestorePoint>), ApplyError> {
        let before = (self.index(), self.git(&["rev-parse", "HEAD"]));
        let prepared = self.prepare_diff(diff, None)?;
        let report = prepared.report.clone();
        let applied = apply(prepared, REFERENCE);
        assert_eq!((self.index(), self.git(&["rev-parse", "HEAD"])), before);
        assert!(!self.tree.join(".git/mcp-delegator-apply").exists());
        assert_eq!(fs::read_dir(self.temp_dir()).unwrap().count(), 0, "no temporary files are left");
        applied.map(|point| (report, point))
    }

    /// Applies a diff that has conflicts; nothing may change.
    #[track_caller]
    fn conflicts(&self, diff: &[u8]) -> Vec<(String, ConflictReason)> {
        let before = self.files();
        let error = self.apply_diff(diff).unwrap_err();
        assert_eq!(self.files(), before);
        assert_eq!(self.stored_points(), []);
        let ApplyError::Conflicts { conflicts } = error else { panic!("{error}") };
        let pair = |Conflict { path, reason, .. }| (String::from_utf8_lossy(&path).into_owned(), reason);
        conflicts.into_iter().map(pair).collect()
    }

    pub(crate) fn files(&self) -> Files {
        let mut files = Files::new();
        collect(&self.tree, &self.tree, &mut files);
        files
    }

    fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.tree.join(path), Permissions::from_mode(mode)).unwrap();
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.tree.join(path)).unwrap().permissions().mode() & 0o777
    }

    fn commit_all(&self) {
        self.git(&["add", "--all"]);
        self.commit("next");
    }
}

fn collect(top: &Path, dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        if path.file_name() == Some(OsStr::new(".git")) {
            continue;
        }
        if found.is_dir() {
            collect(top, &path, files);
            continue;
        }
        let name = path.strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec();
        let content = match found.is_symlink() {
            true => fs::read_link(&path).unwrap().into_os_string().into_vec(),
            false => fs::read(&path).unwrap(),
        };
        files.insert(name, (found.permissions().mode(), content));
    }
}

/// Twenty numbered lines, some of them replaced.
pub(crate) fn lines(replaced: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let other = replaced.iter().find(|(at, _)| *at == number).map(|(_, text)| (*text).to_owned());
        other.unwrap_or_else(|| format!("line {number}")) + "\n"
    };
    (1..=20).map(line).collect()
}

fn text_world() -> World {
    let world = World::new();
    world.write("text", lines(&[]));
    world.commit_all();
    world
}

#[track_caller]
fn applied(world: &World, diff: &[u8]) -> ApplyReport {
    let (report, point) = world.apply_diff(diff).unwrap();
    assert!(point.is_some());
    // A second time it changes nothing.
    let files = world.files();
    let (again, point) = world.apply_diff(diff).unwrap();
    assert!(is_already_applied(&again) && point.is_none(), "{again:?}");
    assert_eq!(world.files(), files);
    report
}

/// What a task may do, by name.
fn every_kind_of_change(world: &World) {
    world.write("modified", "new\n");
    world.write("dir/added", "added\n");
    world.write("empty", "");
    world.remove("deleted");
    fs::rename(world.tree.join("old name"), world.tree.join("new \"name\"\n\ttab")).unwrap();
    world.write("no line break", "x\ny");
    world.write("line break", "x\n");
    world.write("binary", b"\0\xff new");
    world.write("added binary", b"\0\x01\x02");
    world.set_mode("script", 0o755);
    world.set_mode("no script", 0o644);
    world.remove("link");
    symlink("elsewhere", world.tree.join("link")).unwrap();
    symlink("a", world.tree.join("new link")).unwrap();
    world.remove("becomes link");
    symlink("a", world.tree.join("becomes link")).unwrap();
    world.remove("was link");
    world.write("was link", "text\n");
    world.remove("becomes dir");
    world.write("becomes dir/inner", "x\n");
    fs::remove_dir_all(world.tree.join("becomes file")).unwrap();
    world.write("becomes file", "x\n");
    fs::write(world.tree.join(OsStr::from_bytes(b"not \xff utf-8")), "x\n").unwrap();
    world.write("latin", b"caf\xe9 au lait\n");
    fs::create_dir(world.tree.join("moved")).unwrap();
    fs::rename(world.tree.join("deep/er/file"), world.tree.join("moved/file")).unwrap();
}

fn files_of_every_kind() -> World {
    let world = World::new();
    for path in
        ["modified", "deleted", "line break", "script", "becomes link", "becomes dir", "becomes file/inner"]
    {
        world.write(path, format!("{path}\n"));
    }
    world.write("deep/er/file", lines(&[(1, "deep")]));
    world.write("old name", lines(&[]));
    world.write("line break", "x");
    world.write("no line break", "x\ny\n");
    world.write("binary", b"\0\xff old");
    world.write("latin", b"caf\xe9\n");
    world.write("no script", "x\n");
    world.set_mode("no script", 0o755);
    symlink("somewhere", world.tree.join("link")).unwrap();
    symlink("b", world.tree.join("was link")).unwrap();
    world.commit_all();
    world
}

#[test]
fn every_kind_of_change_is_applied_once_and_can_be_restored() {
    for options in [["-M", "--full-index"].as_slice(), &["--no-renames"], &["-C", "--find-copies-harder"]] {
        let world = files_of_every_kind();
        every_kind_of_change(&world);
        let expected = world.files();
        let diff = world.diff_with(options, || {});
        let before = world.files();
        assert_ne!(before, expected);
        let (report, point) = world.apply_diff(&diff).unwrap();
        assert_eq!(world.files(), expected, "{options:?}");
        assert!(report.files.iter().all(|file| !file.merged), "{report:?}");
        assert!(!world.tree.join("deep").exists(), "directories that became empty are removed");
        let (again, none) = world.apply_diff(&diff).unwrap();
        assert!(is_already_applied(&again) && none.is_none(), "{again:?}");
        assert_eq!((again.already_applied.len(), world.files()), (report.files.len(), expected));
        let (_, undo) = world.undo(&point.unwrap()).unwrap();
        assert!(undo.is_some());
        assert_eq!(world.files(), before, "{options:?}");
        assert_eq!(world.status(), "");
    }
}

#[test]
fn the_report_names_every_change() {
    let world = text_world();
    let diff = world.diff_of(|| {
        world.write("a", "a2\n");
        world.write("new", "new\n");
        world.remove("b");
        fs::rename(world.tree.join("text"), world.tree.join("moved")).unwrap();
    });
    let prepared = world.prepare_diff(&diff, None).unwrap();
    let changes: Vec<(&[u8], &ChangeKind)> =
        prepared.report.files.iter().map(|file| (file.path.as_slice(), &file.change)).collect();
    let renamed = ChangeKind::Renamed { from: b"text".to_vec() };
    let expected: [(&[u8], &ChangeKind); 4] = [
        (b"a", &ChangeKind::Modified),
        (b"b", &ChangeKind::Deleted),
        (b"moved", &renamed),
        (b"new", &ChangeKind::Added),
    ];
    assert_eq!(changes, expected);
    drop(prepared);
    assert_eq!((world.status().as_str(), world.stored_points()), ("", Vec::new()), "nothing was applied");
}

#[test]
fn the_users_changes_are_retained_and_stay_unstaged_or_staged() {
    let world = text_world();
    let diff = world.diff_of(|| world.write("text", lines(&[(3, "task")])));
    world.write("text", lines(&[(10, "staged")]));
    world.git(&["add", "text"]);
    world.write("text", lines(&[(10, "staged"), (18, "unstaged")]));
    world.set_mode("text", 0o600);
    world.write("a", "other\n");
    let report = applied(&world, &diff);
    assert!(report.files.iter().all(|file| file.merged));
    assert_eq!(world.read("text").unwrap(), lines(&[(3, "task"), (10, "staged"), (18, "unstaged")]));
    assert_eq!((world.mode("text"), world.read("a").as_deref()), (0o600, Some("other\n")));
}

#[test]
fn a_file_that_the_user_edits_is_merged_at_its_new_name() {
    let world = text_world();
    let diff = world.diff_of(|| {
        fs::create_dir(world.tree.join("dir")).unwrap();
        fs::rename(world.tree.join("text"), world.tree.join("dir/moved")).unwrap();
        world.write("dir/moved", lines(&[(3, "task")]));
        world.set_mode("dir/moved", 0o755);
    });
    world.write("text", lines(&[(18, "user")]));
    world.set_mode("text", 0o640);
    applied(&world, &diff);
    assert_eq!(world.read("dir/moved").unwrap(), lines(&[(3, "task"), (18, "user")]));
    assert_eq!((world.mode("dir/moved"), world.read("text")), (0o750, None));
}

#[test]
fn mode_and_content_changed_by_one_side_each_are_combined() {
    let world = text_world();
    let diff = world.diff_of(|| world.set_mode("text", 0o755));
    world.write("text", lines(&[(1, "user")]));
    applied(&world, &diff);
    assert_eq!((world.read("text").unwrap(), world.mode("text") & 0o100), (lines(&[(1, "user")]), 0o100));
}

#[test]
fn a_conflict_names_the_hunks_that_do_not_apply() {
    let world = text_world();
    let diff = world.diff_of(|| world.write("text", lines(&[(2, "task"), (11, "task"), (19, "task")])));
    world.write("text", lines(&[(6, "user"), (11, "user")]));
    let named = "text: the lines that the diff changes are different here (@@ -8,7 +8,7 @@)";
    assert_eq!(world.conflicts_with_points(&diff), [named], "with the original version");
    // Without it, the context of the hunks must match.
    let diff: String = String::from_utf8(foreign_diff(&[(2, "task"), (11, "task")]))
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with("index "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(world.conflicts_with_points(diff.as_bytes()), [named], "without the original version");
}

#[test]
fn one_conflict_prevents_every_change_and_all_are_named() {
    let world = files_of_every_kind();
    fs::create_dir(world.tree.join("outside")).unwrap();
    let diff = world.diff_of(|| {
        world.write("a", "task\n");
        world.write("modified", "task\n");
        world.write("binary", b"\0task");
        world.remove("deleted");
        world.write("script", "task\n");
        world.write("no script", "task\n");
        for path in
            ["new", "ignored.o", "tracked", "folder", "through/inner", "file/inner", "sub/inner", "same"]
        {
            world.write(path, "task\n");
        }
    });
    world.repository("sub");
    world.write("modified", "user\n");
    world.write("binary", b"\0user");
    world.write("deleted", "user\n");
    world.remove("script");
    world.remove("no script");
    symlink("a", world.tree.join("no script")).unwrap();
    for path in ["new", "ignored.o", "tracked", "folder/inner", "file"] {
        world.write(path, "user\n");
    }
    world.write("same", "task\n");
    symlink("outside", world.tree.join("through")).unwrap();
    world.git(&["add", "tracked"]);
    let conflicts = world.conflicts(&diff);
    let expected = [
        ("binary", ConflictReason::DoesNotMatch),
        ("deleted", ConflictReason::ChangedAndDeleted),
        ("file/inner", ConflictReason::FileInTheWay),
        ("folder", ConflictReason::DirectoryInTheWay),
        ("ignored.o", ConflictReason::Ignored),
        ("modified", ConflictReason::DoesNotMatch),
        ("new", ConflictReason::Untracked),
        ("no script", ConflictReason::DoesNotMatch),
        ("script", ConflictReason::Missing),
        ("sub/inner", ConflictReason::Submodule),
        ("through/inner", ConflictReason::BehindSymlink),
        ("tracked", ConflictReason::AlreadyExists),
    ];
    assert_eq!(conflicts, expected.map(|(path, reason)| (path.to_owned(), reason)));
    assert!(world.prepare_diff(&diff, None).unwrap().report.conflicts[0].to_string().starts_with("binary: "));
}

#[test]
fn hostile_paths_are_refused() {
    let world = World::new();
    let create = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    let link =
        "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+/tmp\n\
                \\ No newline at end of file\n"
            .to_owned();
    let rename = "diff --git a/x b/y\nsimilarity index 100%\nrename from ../x\nrename to y\n".to_owned();
    let module = "diff --git a/m b/m\nnew file mode 160000\nindex 0000000..1234567\n--- /dev/null\n+++ b/m\n\
                  @@ -0,0 +1 @@\n+Subproject commit 1234567890123456789012345678901234567890\n"
        .to_owned();
    let binary =
        "diff --git a/a b/a\nindex 1234567..89abcde 100644\nBinary files a/a and b/a differ\n".to_owned();
    for (diff, path, reason) in [
        (create("../evil"), "../evil", ConflictReason::OutsideWorkTree),
        (create("a/../../evil"), "a/../../evil", ConflictReason::OutsideWorkTree),
        (create(".git/hooks/post-checkout"), ".git/hooks/post-checkout", ConflictReason::GitDirectory),
        (create("dir/.GIT/config"), "dir/.GIT/config", ConflictReason::GitDirectory),
        (link + &create("link/evil"), "link/evil", ConflictReason::FileInTheWay),
        (create("n") + &create("n"), "n", ConflictReason::ChangedTwice),
        (module, "m", ConflictReason::Submodule),
        (binary, "a", ConflictReason::BinaryWithoutContent),
    ] {
        let conflicts = world.conflicts(diff.as_bytes());
        assert!(conflicts.contains(&(path.to_owned(), reason)), "{diff}{conflicts:?}");
    }
    // git refuses this name itself.
    let refused = world.prepare_diff(rename.as_bytes(), None).map(|prepared| prepared.report.conflicts.len());
    assert!(matches!(refused, Ok(1) | Err(ApplyError::MalformedDiff { .. })), "{refused:?}");
}

#[test]
fn text_that_is_no_diff_and_a_folder_that_is_no_work_tree_are_errors() {
    let world = World::new();
    for empty in ["", "\n \n"] {
        assert!(matches!(world.apply_diff(empty.as_bytes()), Err(ApplyError::EmptyDiff)));
    }
    assert!(matches!(world.apply_diff(b"Done. All tests pass.\n"), Err(ApplyError::NotADiff)));
    let truncated = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n a1\n";
    assert!(matches!(world.apply_diff(truncated), Err(ApplyError::MalformedDiff { .. })));
    let diff = world.diff_of(|| world.write("a", "x\n"));
    let request = ApplyRequest { work_tree: world.root.path(), diff: &diff, base_commit: None, store: None };
    let outside = prepare_diff(&world.runner(), request, &world.temp_dir());
    assert!(matches!(outside, Err(ApplyError::NoWorkTree { .. })));
    world.write(".git/index.lock", "");
    assert!(matches!(
        world.prepare_diff(&diff, None),
        Err(ApplyError::Write(WriteError::IndexLocked { .. }))
    ));
}

/// A diff whose original versions the other repository does not have.
fn foreign_diff(change: &[(usize, &str)]) -> Vec<u8> {
    let other = World::new();
    other.write("text", lines(&[(20, "foreign")]));
    other.commit_all();
    other.diff_of(|| other.write("text", lines(&[&[(20, "foreign")], change].concat())))
}

#[test]
fn without_the_original_version_the_context_must_match() {
    let world = text_world();
    applied(&world, &foreign_diff(&[(5, "task")]));
    assert_eq!(world.read("text").unwrap(), lines(&[(5, "task")]));
    let diff = foreign_diff(&[(10, "task")]);
    world.write("text", lines(&[(11, "user")]));
    assert_eq!(
        world.conflicts_with_points(&diff),
        ["text: the lines that the diff changes are different here (@@ -7,7 +7,7 @@)"]
    );
    let mut without_ids = String::from_utf8(foreign_diff(&[(2, "task")])).unwrap();
    without_ids = without_ids
        .lines()
        .filter(|line| !line.starts_with("index "))
        .map(|line| format!("{line}\n"))
        .collect();
    applied(&world, without_ids.as_bytes());
    let plain = without_ids.split_once("--- ").map(|(_, rest)| format!("--- {rest}")).unwrap();
    assert!(is_already_applied(&world.apply_diff(plain.as_bytes()).unwrap().0));
    world.write("text", "x\n".repeat(9));
    let repeated = b"--- a/text\n+++ b/text\n@@ -3,3 +3,4 @@\n x\n x\n+x\n x\n";
    assert_eq!(world.conflicts_with_points(repeated).len(), 1, "both directions match");
}

impl World {
    fn conflicts_with_points(&self, diff: &[u8]) -> Vec<String> {
        let files = self.files();
        let error = self.apply_diff(diff).unwrap_err();
        assert_eq!(self.files(), files);
        let ApplyError::Conflicts { conflicts } = error else { panic!("{error}") };
        conflicts.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn the_base_commit_provides_the_original_version() {
    let world = text_world();
    let diff = world.diff_of(|| world.write("text", lines(&[(10, "task")])));
    let without_ids: Vec<u8> = String::from_utf8(diff)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with("index "))
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect();
    let base = world.git(&["rev-parse", "HEAD"]);
    world.write("text", lines(&[(13, "user")]));
    world.commit_all();
    assert_eq!(world.prepare_diff(&without_ids, None).unwrap().report.conflicts.len(), 1);
    let prepared = world.prepare_diff(&without_ids, Some(base.trim())).unwrap();
    apply(prepared, REFERENCE).unwrap().unwrap();
    assert_eq!(world.read("text").unwrap(), lines(&[(10, "task"), (13, "user")]));
    for unknown in ["--help", "HEAD", "1234567890123456789012345678901234567890"] {
        assert!(world.prepare_diff(&without_ids, Some(unknown)).is_ok(), "{unknown}");
    }
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn files_retain_their_line_endings() {
    let world = text_world();
    world.write("committed", crlf(&lines(&[])));
    world.git(&["-c", "core.autocrlf=false", "add", "--all"]);
    world.commit("crlf");
    let diff = world.diff_of(|| {
        world.write("text", lines(&[(3, "task")]));
        world.write("committed", crlf(&lines(&[(3, "task")])));
        world.remove("a");
        world.write("new", "1\n2\n");
        world.write("new.bin", b"\0\n");
    });
    world.git(&["config", "core.autocrlf", "true"]);
    for name in ["text", "a"] {
        let text = world.read(name).unwrap();
        world.write(name, crlf(&text));
    }
    let user = lines(&[(15, "user")]);
    world.write("text", crlf(&user));
    applied(&world, &diff);
    assert_eq!(world.read("text").unwrap(), crlf(&lines(&[(3, "task"), (15, "user")])));
    assert_eq!(world.read("committed").unwrap(), crlf(&lines(&[(3, "task")])));
    assert_eq!(world.read("a"), None);
    assert_eq!(
        (world.read("new").as_deref(), world.read("new.bin").as_deref()),
        (Some("1\r\n2\r\n"), Some("\0\n"))
    );
}

#[test]
fn later_edits_survive_when_an_applied_diff_is_restored() {
    let world = text_world();
    let diff = world.diff_of(|| {
        world.write("text", lines(&[(3, "task")]));
        world.write("new.o", "task\n");
    });
    let point = world.apply_diff(&diff).unwrap().1.unwrap();
    world.write("text", lines(&[(3, "task"), (18, "later")]));
    world.undo(&point).unwrap().1.unwrap();
    assert_eq!((world.read("text").unwrap(), world.read("new.o")), (lines(&[(18, "later")]), None));
    // Applied again, it gets another restore point.
    let again = world.apply_diff(&diff).unwrap().1.unwrap();
    assert_eq!(again.reference, format!("{REFERENCE}.2"));
    assert_eq!(world.read("text").unwrap(), lines(&[(3, "task"), (18, "later")]));
    assert!(prepare_restore(&world.runner(), &point, RestoreScope::WholeTree, &world.temp_dir()).is_ok());
}

#[test]
fn a_change_after_the_check_is_not_overwritten() {
    let world = text_world();
    let diff = world.diff_of(|| {
        world.write("a", "task\n");
        world.write("new", "task\n");
    });
    let prepared = world.prepare_diff(&diff, None).unwrap();
    world.write("new", "user\n");
    assert!(matches!(
        apply(prepared, REFERENCE),
        Err(ApplyError::Write(WriteError::ConcurrentChange { .. }))
    ));
    assert_eq!((world.read("a").as_deref(), world.read("new").as_deref()), (Some("a1\n"), Some("user\n")));
    let prepared = world.prepare_diff(&world.diff_of(|| world.write("a", "task\n")), None).unwrap();
    world.write("b", "staged\n");
    world.git(&["add", "b"]);
    assert!(matches!(
        apply(prepared, REFERENCE),
        Err(ApplyError::Write(WriteError::ConcurrentChange { .. }))
    ));
    assert_eq!(world.stored_points(), []);
}

#[test]
fn an_interrupted_application_is_completed_by_another() {
    let world = text_world();
    let diff = world.diff_of(|| {
        world.write("a", "task\n");
        world.write("new", "task\n");
        fs::rename(world.tree.join("text"), world.tree.join("moved")).unwrap();
        world.write("moved", lines(&[(3, "task")]));
    });
    // What a killed process may leave: some files written, a renamed file at both names, its staging
    // directory.
    world.write("text", lines(&[(18, "user")]));
    world.write("a", "task\n");
    world.write("moved", lines(&[(3, "task"), (18, "user")]));
    world.write(".git/mcp-delegator-apply/old/0", "a1\n");
    let (report, _) = world.apply_diff(&diff).unwrap();
    assert_eq!((report.files.len(), report.already_applied.as_slice()), (2, &[b"a".to_vec()][..]));
    assert_eq!(world.read("moved").unwrap(), lines(&[(3, "task"), (18, "user")]));
    assert_eq!((world.read("text"), world.read("new").as_deref()), (None, Some("task\n")));
}

#[test]
fn swapped_and_replaced_files_are_applied_once() {
    let world = World::new();
    // git detects a rewritten file only if it is large enough.
    let text = |word: &str| (0..90).map(|number| format!("{word} {number}\n")).collect::<String>();
    for name in ["one", "two", "three"] {
        world.write(name, text(name));
    }
    world.commit_all();
    let diff = world.diff_with(&["-B", "-M"], || {
        world.write("one", text("two"));
        world.write("two", text("one"));
        world.write("moved", text("three"));
        world.write("three", text("other"));
    });
    let count = |words: &str| String::from_utf8_lossy(&diff).matches(words).count();
    assert_eq!((count("\nrename from "), count("\ncopy from ")), (2, 1));
    let ambiguous: Vec<ConflictReason> =
        world.conflicts(&diff).into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(
        ambiguous,
        [ConflictReason::Ambiguous; 2],
        "without the base, it may have been applied already"
    );
    let base = world.git(&["rev-parse", "HEAD"]);
    let prepare = || world.prepare_diff(&diff, Some(base.trim())).unwrap();
    apply(prepare(), REFERENCE).unwrap().unwrap();
    assert!(is_already_applied(&prepare().report));
    assert_eq!((world.read("one").unwrap(), world.read("two").unwrap()), (text("two"), text("one")));
    assert_eq!((world.read("moved").unwrap(), world.read("three").unwrap()), (text("three"), text("other")));
    world.git(&["reset", "--quiet", "--hard"]);
    world.remove("moved");
    world.write("one", text("user"));
    world.write("three", text("user"));
    let report = prepare().report;
    let conflicts: Vec<(&[u8], ConflictReason)> =
        report.conflicts.iter().map(|found| (found.path.as_slice(), found.reason)).collect();
    assert!(conflicts.contains(&(b"one", ConflictReason::DoesNotMatch)), "{conflicts:?}");
    assert!(conflicts.contains(&(b"three", ConflictReason::DoesNotMatch)), "{conflicts:?}");
}
