//! A TypeScript program that imports the package: compiled by `tsc --strict`, then run by Node. Needs `scripts/install-browser`.

#![expect(clippy::disallowed_methods, reason = "the test runs the compiler and Node")]

use std::path::Path;
use std::process::{Command, Stdio};

use delegator_testkit::generated::workspace;
use delegator_testkit::program::wait_for_output;
use serde_json::Value;
use tempfile::TempDir;

/// Constants with types of the package `t`, and the names of the guards that accept each.
pub(super) struct Program {
    text: String,
    files: Vec<String>,
    count: usize,
    wrong_count: usize,
}

impl Program {
    pub(super) fn new(guards: &[&str]) -> Program {
        let guards: Vec<String> = guards.iter().map(|guard| format!("{guard}: t.{guard}")).collect();
        let text = format!(
            "import * as t from \"@mcp-delegator/types\";\n\
             const guards = {{ {} }};\n\
             const show = (answer: unknown) =>\n\
             console.log(JSON.stringify(Object.entries(guards).flatMap(([name, accepts]) => accepts(answer) ? [name] : [])));\n",
            guards.join(", ")
        );
        Program { text, files: Vec::new(), count: 0, wrong_count: 0 }
    }

    /// Adds a value of this type, which the program shows to the guards.
    pub(super) fn declare(&mut self, kind: &str, value: &Value) {
        let number = self.count;
        self.text += &format!("const answer{number}: {kind} = {value};\nshow(answer{number});\n");
        self.count += 1;
    }

    /// Adds a value that does not have this type; the compiler fails if it has.
    pub(super) fn declare_wrong(&mut self, kind: &str, value: &Value) {
        let number = self.wrong_count;
        self.text += &format!("// @ts-expect-error\nconst wrong{number}: {kind} = {value};\n");
        self.wrong_count += 1;
    }

    /// Adds a file that is only compiled.
    pub(super) fn add_file(&mut self, text: &str) {
        self.files.push(text.to_owned());
    }

    /// The errors of the compiler, each with the line that it is about and the next one.
    fn with_lines(&self, errors: &str) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        let line = |error: &str| error.strip_prefix("answers.ts(")?.split(',').next()?.parse::<usize>().ok();
        let shown = errors.lines().map(|error| match line(error) {
            Some(number) => format!("{error}\n{}", lines[number - 1..lines.len().min(number + 1)].join("\n")),
            None => error.to_owned(),
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    /// The guards that accept each value.
    pub(super) fn compile_and_run(self) -> Vec<Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        let scope = dir.path().join("node_modules/@mcp-delegator");
        std::fs::create_dir_all(&scope).unwrap();
        std::os::unix::fs::symlink(workspace().join("packages/types"), scope.join("types")).unwrap();
        std::fs::write(dir.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
        std::fs::write(dir.path().join("answers.ts"), &self.text).unwrap();
        let mut names = vec!["answers.ts".to_owned()];
        for (number, text) in self.files.iter().enumerate() {
            names.push(format!("example{number}.ts"));
            std::fs::write(dir.path().join(names.last().unwrap()), text).unwrap();
        }
        let compiler = workspace().join(".tools/browser-1/node_modules/typescript/bin/tsc");
        assert!(compiler.exists(), "run scripts/install-browser first");
        let options =
            ["--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext"];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let compiled = node(&dir, &[&[compiler.to_str().unwrap()], &options[..], &names].concat());
        assert!(compiled.is_ok(), "{}", self.with_lines(&compiled.unwrap_err()));
        let output = node(&dir, &["answers.js"]).unwrap();
        let found: Vec<Vec<String>> =
            output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.len(), self.count);
        found
    }
}

/// What a script printed; an error if it failed.
fn node(dir: &TempDir, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("node");
    command.args(args).current_dir(Path::new(dir.path()));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = wait_for_output(child);
    if run.exit == Some(0) { Ok(run.stdout) } else { Err(format!("{}{}", run.stdout, run.stderr)) }
}
