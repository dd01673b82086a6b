//! Error locations in the recorded output of real programs.

use std::path::{Path, PathBuf};

use delegator_transcript::{CommandFailure, FoldOptions, LineLimits, Report, Summarizer};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A stream in which one command ends.
fn stream(command: &str, exit_code: i64, output: &str) -> String {
    let status = if exit_code == 0 { "completed" } else { "failed" };
    let item = json!({"id": "item_0", "type": "command_execution", "command": command,
        "aggregated_output": output, "exit_code": exit_code, "status": status});
    format!("{}\n", json!({"type": "item.completed", "item": item}))
}

fn report_of(stream: &str, limits: LineLimits) -> Report {
    let options = FoldOptions { workdir: Some("/var/tmp/proj".into()), ..FoldOptions::default() };
    let mut summarizer = Summarizer::new(options, limits);
    summarizer.push(stream.as_bytes());
    summarizer.finish()
}

fn failures(command: &str, exit_code: i64, output: &str) -> Vec<CommandFailure> {
    report_of(&stream(command, exit_code, output), LineLimits::STANDARD).failures
}

fn samples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/error_locations");
    let folders = std::fs::read_dir(root).expect("the samples").map(|entry| entry.expect("readable").path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| {
        std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path())
    });
    let mut samples: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "txt")).collect();
    samples.sort();
    assert!(samples.len() > 30, "the samples are missing: {}", samples.len());
    samples
}

fn expected_for(sample: &Path) -> Value {
    let text = std::fs::read_to_string(sample.with_extension("json")).expect("a truth for every sample");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_sample_is_read_as_a_person_reads_it() {
    for sample in samples() {
        let (truth, output) = (expected_for(&sample), std::fs::read_to_string(&sample).expect("text"));
        let command = truth["command"].as_str().expect("a command");
        let found = failures(command, truth["exit_code"].as_i64().expect("a code"), &output);
        assert_eq!(found.len(), 1, "{}", sample.display());
        assert_eq!(json!(found[0].places), truth["places"], "{}", sample.display());
        assert_eq!(found[0].command, command);
        if let Some(first) = found[0].places.first() {
            assert_eq!((&found[0].message, &found[0].kind), (&first.message, &first.kind));
        }
    }
}

#[test]
fn windows_line_ends_and_colours_change_nothing() {
    for sample in samples() {
        let output = std::fs::read_to_string(&sample).expect("text");
        let places = |output: &str| failures("./build", 1, output)[0].places.clone();
        let plain = places(&output);
        let windows = output.replace("\r\n", "\n").replace('\n', "\r\n");
        assert_eq!(places(&windows), plain, "{}", sample.display());
        let coloured: String = output.lines().map(|line| format!("\u{1b}[0m{line}\u{1b}[39m\n")).collect();
        assert_eq!(places(&coloured), plain, "{}", sample.display());
    }
}

#[test]
fn truncated_output_is_read_at_both_ends() {
    let limits = LineLimits { whole: 8 << 10, head: 4 << 10, tail: 4 << 10 };
    let head = "./first.go:3:5: one\n";
    let noise = "nothing to see here\n".repeat(4_000);
    let tail = "./last.go:9:1: two\n";
    let report = report_of(&stream("go build", 1, &format!("{head}{noise}{tail}")), limits);
    let files: Vec<&str> = report.failures[0].places.iter().map(|location| location.file.as_str()).collect();
    assert_eq!(files, ["./first.go", "./last.go"]);
    assert_eq!(report.failures[0].message, "one");
}

#[test]
fn each_location_is_listed_once_and_at_most_20() {
    let many: String = (1..100).map(|n| format!("x.c:{n}:1: error: no\nx.c:{n}:1: error: no\n")).collect();
    let found = failures("cc x.c", 1, &many);
    let lines: Vec<u32> = found[0].places.iter().map(|location| location.line).collect();
    assert_eq!(lines, (1..=20).collect::<Vec<_>>());
}

#[test]
fn terminal_control_characters_are_removed() {
    let hostile = "x.c:1:1: error: \u{1b}[2Jgone\u{7} \u{9b}31m and \u{0}more\n";
    let message = &failures("cc x.c", 1, hostile)[0].message;
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.starts_with("gone"), "{message:?}");
}

/// Lines of every format, to be combined in any order.
const PIECES: [&str; 40] = [
    "error[E0308]: x",
    "  --> a.rs:1:2",
    "  | ^^^ y",
    "warning: z",
    "thread 'a' panicked at b.rs:1:2:",
    "  left: 1",
    "Traceback (most recent call last):",
    "  File \"a.py\", line 3, in f",
    "ValueError: x",
    "E   File \"b.py\", line 1",
    "E   assert 0",
    "a.py:3: ValueError",
    "During handling of the above exception, another exception occurred:",
    "TypeError: x",
    "    at f (/a.js:1:2)",
    "    at /b.js:1:2",
    "/a.js:1",
    "    at a.B.c(B.java:1)",
    "Caused by: a.E: x",
    "a.BException: x",
    "\t... 3 more",
    "B.java:1: error: x",
    "   ^",
    "[ERROR] /B.java:[1,2] x",
    "panic: x",
    "goroutine 1 [running]:",
    "main.f(...)",
    "\t/a.go:1 +0x1",
    "--- FAIL: T (0.00s)",
    "    a_test.go:1: x",
    "=== RUN T",
    "./a.go:1:2: x",
    "a.c:1:2: error: x",
    "/usr/bin/ld: a.c:1: undefined reference to `f'",
    "a.ts(1,2): error TS1: x",
    "a.ts:1:2 - error TS1: x",
    "/a.js",
    "  1:2  error  x  rule",
    "a.rb:1:2: x",
    "",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(output in any::<String>()) {
        let found = failures("./build", 1, &output);
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].message.chars().count() <= 300);
    }

    #[test]
    fn any_mixture_of_formats_is_read(
        pieces in proptest::collection::vec((0..PIECES.len(), any::<u8>()), 0..60),
        cut in any::<proptest::sample::Index>(),
    ) {
        let text: String = pieces
            .iter()
            .map(|(piece, end)| format!("{}{}", PIECES[*piece], if *end < 8 { "\r" } else { "\n" }))
            .collect();
        let cut = text.floor_char_boundary(cut.index(text.len() + 1));
        for output in [&text[..], &text[..cut], &text[cut..]] {
            let places = &failures("./build", 1, output)[0].places;
            prop_assert!(places.len() <= 20);
            for (at, location) in places.iter().enumerate() {
                prop_assert!(!location.file.is_empty() && location.line > 0);
                let is_same = |other: &&delegator_transcript::ErrorLocation| {
                    (&other.file, other.line, other.column) == (&location.file, location.line, location.column)
                };
                prop_assert_eq!(places.iter().filter(is_same).count(), 1, "{} twice", at);
            }
        }
    }
}

/// Texts that would take long with repeated searches; the time limit of the test suite catches them.
#[test]
fn hostile_texts_are_parsed_in_bounded_time() {
    for piece in [
        ":1",
        "a.rs:1:",
        "(",
        "at (",
        "\n    at f (",
        "E   ",
        "\nFile \"",
        "^",
        "  | ^\n",
        "error[",
        "x.go:1:1:",
        "\nerror: x\n  --> ",
        "): error ",
        "\t",
        "\n\tat a.b(",
        "ld: ",
        "\n[ERROR] a:[",
        "\u{1b}[",
        "\r",
        "panic: \n",
    ] {
        let text = piece.repeat((128 << 10) / piece.len());
        for text in
            [text.clone(), format!("error: y\n{text}"), format!("Traceback (most recent call last):\n{text}")]
        {
            assert_eq!(failures("./build", 1, &text).len(), 1);
        }
    }
}
