//! Replaces what differs between two runs: ids, times, numbers of this machine, paths.

use std::path::Path;

use regex::Regex;

/// Patterns and their replacements, applied in order.
const PATTERNS: [(&str, &str); 12] = [
    (r"T-local-[0-9a-z]{10}", "T-local-0000000000"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000"),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.0-9]*Z", "2026-01-01T00:00:00Z"),
    (r"(?m)^(seconds|elapsed)( +)[0-9]+", "$1${2}N"),
    (r"(?m)^(T-local-0{10}) +[0-9]+[sm] +", "$1  Ns  "),
    // A slow Claude Code is terminated, or killed, after its answer.
    (r"(?m)^exit code +1(37|43)\n", ""),
    (r"index [0-9a-f]{7}[.][.][0-9a-f]{7}", "index 0000000..0000000"),
    (r"[0-9]+([.][0-9]+)? [KMGT]iB free", "N GiB free"),
    (r"[0-9]+([.][0-9]+)? (s|ms|MB|GB|MiB|GiB|TiB)([^a-z]|$)", "N $2$3"),
    (r"(git|bubblewrap|kernel|Linux|node)( version)? [0-9][0-9A-Za-z.-]*", "$1$2 N"),
    (r"[(][0-9]+ bytes[)]", "(N bytes)"),
    // Depends on the control groups of this machine.
    (r"(?m)^[a-z]+ +containment +.*(?:\n {20,}.*)*$", "-        containment    -"),
];

/// The screen of any run.
pub(super) fn normalized(screen: &str, root: &Path) -> String {
    let screen = screen.replace(&root.display().to_string(), "");
    PATTERNS.iter().fold(screen, |text, (pattern, replacement)| {
        Regex::new(pattern).unwrap().replace_all(&text, *replacement).into_owned()
    })
}
