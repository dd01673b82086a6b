//! Comparison of generated files with the committed ones. They are committed so that readers need not build
//! anything.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates live two levels below the root")
        .to_owned()
}

/// Asserts that a committed file equals the generated text. `UPDATE_GENERATED=1` writes it instead.
#[expect(clippy::disallowed_methods, reason = "a developer's switch, not the program's input")]
pub fn assert_up_to_date(path: &str, generated: &str) {
    let path = workspace().join(path);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).unwrap();
        std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != generated {
        let same = committed.lines().zip(generated.lines()).take_while(|(one, other)| one == other).count();
        panic!(
            "{}:{} differs from what the code generates, which is {:?}; run the tests with UPDATE_GENERATED=1 and review \
             the change",
            path.display(),
            same + 1,
            generated.lines().nth(same)
        );
    }
}
