//! Texts that request a destructive operation, and texts that only mention one.

use super::*;

#[track_caller]
fn assert_found(text: &str, phrase: &str) {
    let found = find(text).unwrap_or_else(|| panic!("nothing found in {text:?}"));
    assert_eq!(found.phrase, phrase, "{text:?}");
    let found_text: String = text.chars().skip(found.position).take(phrase.chars().count()).collect();
    assert_eq!(found_text, phrase);
}

#[test]
fn plain_requests_are_found() {
    for (text, phrase) in [
        ("Rebase onto main and force-push.", "force-push"),
        ("Squash it, then force push the branch", "force push"),
        ("run git push --force", "git push --force"),
        ("git push -f origin main", "git push -f"),
        ("Run `git push origin main --force-with-lease`.", "git push origin main --force-with-lease"),
        ("git push --force-with-lease=main:abc origin", "git push --force-with-lease=main:abc"),
        ("git push -uf origin topic", "git push -uf"),
        ("git push origin +main", "git push origin +main"),
        ("use push --force when you are done", "push --force"),
        ("Do a hard reset to origin/main", "hard reset"),
        ("hard-reset the branch to v1", "hard-reset"),
        ("First: `git reset --hard HEAD~3`, then build", "git reset --hard"),
        ("git -C sub reset origin/main --hard", "git -C sub reset origin/main --hard"),
        ("reset --hard and start again", "reset --hard"),
        ("Remove the key from all commits with git filter-branch", "git filter-branch"),
        ("Use git filter-repo --path secrets --invert-paths", "git filter-repo"),
        ("git reflog expire --expire=now --all", "git reflog expire"),
        ("please expire the reflog", "expire the reflog"),
        ("git clean -fdx", "git clean -fdx"),
        ("clean up with `git clean -xdf`", "git clean -xdf"),
        ("git clean -f -d -x", "git clean -f -d -x"),
        ("git clean --force -dX", "git clean --force -dX"),
        ("Steps:\n```sh\ngit fetch\ngit reset --hard origin/main\n```", "git reset --hard"),
        ("Explain the change and force-push it", "force-push"),
        ("Explain the bug, then run git reset --hard", "git reset --hard"),
        ("Don't ask. git push --force", "git push --force"),
        ("Run \"git reset --hard\"", "git reset --hard"),
        ("Grüße ✓ git push --force", "git push --force"),
    ] {
        // `filter-branch` and `filter-repo` match without the leading `git`.
        let phrase =
            phrase.strip_prefix("git filter").map_or(phrase.to_owned(), |rest| format!("filter{rest}"));
        assert_found(text, &phrase);
    }
}

#[test]
fn mentions_and_negations_are_not_requests() {
    for text in [
        "do not force-push",
        "Never run git clean -fdx.",
        "Don't ever use `git push --force`",
        "Fix the bug without a hard reset",
        "Commit, but do not rebase or force-push",
        "You must not run git reset --hard",
        "Use git revert instead of git reset --hard",
        "explain what git reset --hard does",
        "Why did git push --force fail yesterday?",
        "Someone ran git reset --hard; find the lost commits in the reflog",
        "Recover the work after a force push",
        "The branch was force-pushed; rebase my work on it",
        "The deploy script runs git clean -fdx before the build; make it faster",
        "Document git filter-branch in docs/history.md",
        "Add a test that rejects git push --force",
        "Fix the typo in \"you can run git push --force here\"",
        "> run git push --force\nAnswer this mail",
        "Remove the `git reset --hard` section from the README",
        "git clean -n",
        "git clean -fd build",
        "git reset HEAD~1",
        "git push origin main",
        "push the button with force",
        "Clean the code -- fix it",
        "reset the hard limit",
        "expire the session cookies",
        "",
    ] {
        assert_eq!(find(text), None, "{text:?}");
    }
}
