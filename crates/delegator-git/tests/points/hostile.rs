//! A repository that configures a command wherever git could run one.

use std::os::unix::fs::PermissionsExt;

use delegator_git::{Baseline, DiffPaths, Limits, NewCommit, diff_until_now, parse_unified_diff};

use crate::world::World;

/// Configures a command in every place from which git is known to run one.
fn plant_commands(world: &World) {
    let canaries = world.root.path().join("canaries");
    std::fs::create_dir(&canaries).unwrap();
    let program = |name: &str| -> String {
        let path = world.root.path().join(format!("evil-{name}"));
        let text = format!("#!/bin/sh\n: > {}\ncat 2>/dev/null\nexit 0\n", canaries.join(name).display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    for hook in [
        "post-index-change",
        "reference-transaction",
        "post-checkout",
        "pre-commit",
        "post-commit",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ] {
        world.write(&format!(".git/hooks/{hook}"), "");
        let hook_path = world.tree.join(".git/hooks").join(hook);
        std::fs::copy(program(hook), &hook_path).unwrap();
        std::fs::set_permissions(&hook_path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let included = format!(
        "[core]\n\tfsmonitor = {fsmonitor}\n\tpager = {pager}\n\teditor = {editor}\n\tsshCommand = {ssh}\n\
         \taskPass = {askpass}\n\tgitProxy = {proxy}\n\talternateRefsCommand = {refs}\n\
         [filter \"evil\"]\n\tclean = {clean}\n\tsmudge = {smudge}\n\trequired = true\n\
         [filter \"long\"]\n\tprocess = {process}\n\trequired = true\n\
         [diff]\n\texternal = {external}\n[diff \"evil\"]\n\tcommand = {diff}\n\ttextconv = {textconv}\n\
         [merge \"evil\"]\n\tdriver = {merge}\n[gpg]\n\tprogram = {gpg}\n[commit]\n\tgpgSign = true\n\
         [credential]\n\thelper = {credential}\n[pager]\n\tupdate-ref = {pager}\n\trev-parse = {pager}\n\
         [alias]\n\trev-parse = !{alias}\n\tupdate-ref = !{alias}\n\twrite-tree = !{alias}\n\
         [extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\turl = ext::{remote}\n\tpromisor = true\n",
        fsmonitor = program("fsmonitor"),
        pager = program("pager"),
        editor = program("editor"),
        ssh = program("ssh"),
        askpass = program("askpass"),
        proxy = program("proxy"),
        refs = program("refs"),
        clean = program("clean"),
        smudge = program("smudge"),
        process = program("process"),
        external = program("external"),
        diff = program("diff"),
        textconv = program("textconv"),
        merge = program("merge"),
        gpg = program("gpg"),
        credential = program("credential"),
        alias = program("alias"),
        remote = program("remote"),
    );
    world.write(".git/evil.config", included);
    world.git(&["config", "core.hooksPath", ".git/hooks"]);
    world.git(&["config", "include.path", "evil.config"]);
    world.write(
        ".gitattributes",
        "*.evil filter=evil diff=evil merge=evil\n*.long filter=long\n* diff=evil\n",
    );
}

fn canaries(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.root.path().join("canaries")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn comparing_runs_no_command_planted_before_or_after_the_baseline() {
    let world = World::new();
    world.write("x.evil", "1\n");
    world.write("x.long", "1\n");
    world.git(&["add", "."]);
    world.commit("bait");
    let take = || {
        let taken = Baseline::take(&world.runner(), &world.tree, &world.temp_dir(), Limits::default());
        taken.unwrap().unwrap()
    };
    let clean = take();
    plant_commands(&world);
    let hostile = take();
    world.write("x.evil", "2\n");
    world.write("x.long", "2\n");
    world.write("new.evil", "untracked\n");
    std::fs::rename(world.tree.join("a"), world.tree.join("a.evil")).unwrap();
    for (baseline, files) in [(clean, 5), (hostile, 4)] {
        let compared = baseline.compare(Limits::default(), 0).unwrap();
        assert_eq!(compared.files.len(), files, "{compared:?}");
        assert_eq!(baseline.ignored(&[b"new.evil"]).unwrap().len(), 0);
    }
    assert_eq!(canaries(&world), Vec::<String>::new());
    world.run_git_in(&["add", "-A"], &world.tree);
    assert_ne!(canaries(&world), Vec::<String>::new(), "an ordinary git runs the planted commands");
}

#[test]
fn no_command_configured_by_a_repository_is_run() {
    let world = World::new();
    world.write("x.evil", "1\n");
    world.write("x.long", "1\n");
    world.git(&["add", "."]);
    world.commit("bait");
    let diff = world.diff_of(|| {
        world.write("x.evil", "1\napplied\n");
        world.write("new.long", "applied\n");
    });
    plant_commands(&world);
    world.write("x.evil", "0\n1\n");
    let applied = crate::world::apply(world.prepare_diff(&diff, None).unwrap(), "refs/mcp-delegator/applied")
        .unwrap()
        .unwrap();
    assert_eq!(world.read("x.evil").as_deref(), Some("0\n1\napplied\n"));
    delegator_git::drop_point(&world.runner(), &applied).unwrap();
    world.remove("new.long");
    assert_eq!(canaries(&world), Vec::<String>::new());
    // The same size and time: git has to compare the content.
    world.write("x.evil", "2\n");
    world.write("x.long", "2\n");
    world.write("new.evil", "untracked\n");
    let reference = "refs/mcp-delegator/T-local-1";
    let point = world.try_create_point(&world.tree, reference).unwrap().unwrap();
    assert_eq!(canaries(&world), Vec::<String>::new());
    world.write("x.evil", "agent\n");
    world.write("x.long", "agent\n");
    world.write("new.evil", "agent\n");
    world.write("added.evil", "agent\n");
    let shown = diff_until_now(&world.runner(), &point, DiffPaths::Relative, &world.temp_dir()).unwrap();
    assert_eq!(parse_unified_diff(shown.diff.bytes()).len(), 4);
    let (_, undo) = world.restore(&point, true).unwrap();
    assert_eq!(world.read("x.evil").as_deref(), Some("2\n"));
    assert_eq!(world.read("new.evil").as_deref(), Some("untracked\n"));
    assert_eq!(world.read("added.evil"), None);
    world.restore(&undo, true).unwrap();
    assert_eq!(delegator_git::stored_points(&world.runner(), &world.tree).unwrap().unwrap().len(), 3);
    assert!(delegator_git::holds_unique_content(&world.runner(), &point).unwrap());
    delegator_git::drop_point(&world.runner(), &point).unwrap();
    assert_eq!(canaries(&world), Vec::<String>::new());
    // Check the test itself: an ordinary git runs the planted commands.
    for args in [
        ["add", "-A"].as_slice(),
        &["diff", "HEAD"],
        &["show", "--ext-diff", "HEAD"],
        &["commit", "-m", "x"],
        &["checkout", "HEAD", "--", "."],
        &["update-ref", "refs/heads/x", "HEAD"],
    ] {
        world.run_git_in(args, &world.tree);
    }
    let caught = canaries(&world);
    for name in
        ["clean", "smudge", "process", "diff", "fsmonitor", "post-index-change", "reference-transaction"]
    {
        assert!(caught.contains(&name.to_owned()), "{caught:?}");
    }
}

#[test]
fn a_worktree_runs_no_command_configured_by_its_repository() {
    let world = World::new();
    world.write("x.evil", "1\n");
    world.write("x.long", "1\n");
    world.git(&["add", "."]);
    world.commit("bait");
    plant_commands(&world);
    world.write("x.evil", "carried\n");
    let worktree = crate::worktrees::worktree(&world, "T-1", None);
    let (git, temp) = (world.runner(), world.temp_dir());
    worktree.carry(&git, Limits::default(), &temp).unwrap();
    worktree.create(&git, &temp).unwrap();
    worktree.record_setup(&git, &temp).unwrap();
    std::fs::write(worktree.path.join("x.evil"), "agent\n").unwrap();
    std::fs::write(worktree.path.join("new.long"), "agent\n").unwrap();
    let found = worktree.diff(&git, &temp).unwrap();
    let commit = NewCommit { branch: "result", message: "m", time_sec: 1 };
    worktree.create_branch(&git, &found, commit).unwrap();
    worktree.remove(&git).unwrap();
    assert_eq!(canaries(&world), Vec::<String>::new());
}
