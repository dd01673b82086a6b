//! Measures frame + decode + fold on one core, next to two references on the same bytes: counting newlines with memchr,
//! and `serde_json::from_slice::<Value>` per line. Then peak memory by input size.
//!
//! `cargo bench -p delegator-transcript [-- MEGABYTES]`; `-- --memory MEGABYTES` only folds that much and prints the
//! peak, so that each size runs in its own process; `-- --line MEGABYTES` does the same with a single line of that
//! size; `-- --tests MEGABYTES` folds commands with that much test runner output; `-- --failed MEGABYTES` parses error
//! locations from the output of one failed command, normal and hostile.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]

use std::hint::black_box;
use std::time::Instant;

use delegator_transcript::{FoldOptions, LineLimits, Summarizer};

const ROUNDS: usize = 11;

/// A small deterministic generator, so that the input is the same everywhere.
struct Rng(u64);

impl Rng {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const WORDS: [&str; 16] = [
    "error",
    "warning:",
    "test",
    "ok",
    "src/main.rs:42:17",
    "Compiling",
    "finished",
    "`serde`",
    "expected",
    "found",
    "\"value\"",
    "->",
    "0.42s",
    "note:",
    "running",
    "thread 'main'",
];

/// Output lines of compilers and tests, JSON-escaped.
fn output(rng: &mut Rng, bytes: u64) -> String {
    let mut text = String::new();
    while (text.len() as u64) < bytes {
        for _ in 0..4 + rng.below(10) {
            text.push_str(WORDS[rng.below(16) as usize]);
            text.push(' ');
        }
        text.push('\n');
        if rng.below(40) == 0 {
            text.push_str("\u{1b}[31mred\u{1b}[0m\t✓ ");
        }
    }
    serde_json::to_string(&text).expect("a string")
}

/// A realistic session: commands with outputs of a few kilobytes, messages, reasoning, edits, a plan.
fn realistic(megabytes: usize) -> Vec<u8> {
    let mut rng = Rng(0x5EED);
    let mut out =
        String::from("{\"type\":\"thread.started\",\"thread_id\":\"01a1\"}\n{\"type\":\"turn.started\"}\n");
    let mut n = 0;
    while out.len() < megabytes << 20 {
        n += 1;
        let command = format!("/bin/bash -lc 'cargo test -p crate{} -- --nocapture'", rng.below(20));
        match rng.below(8) {
            0..=3 => {
                let size = [200, 2_000, 6_000, 40_000][rng.below(4) as usize];
                let printed = output(&mut rng, size);
                let code = u8::from(rng.below(5) == 0);
                let status = if code == 0 { "completed" } else { "failed" };
                out.push_str(&format!("{{\"type\":\"item.started\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"command_execution\",\"command\":\"{command}\",\"aggregated_output\":\"\",\"exit_code\":null,\"status\":\"in_progress\"}}}}\n"));
                out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"command_execution\",\"command\":\"{command}\",\"aggregated_output\":{printed},\"exit_code\":{code},\"status\":\"{status}\"}}}}\n"));
            }
            4 => {
                let text = output(&mut rng, 1_500);
                out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"agent_message\",\"text\":{text}}}}}\n"));
            }
            5 => {
                let text = output(&mut rng, 400);
                out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"reasoning\",\"text\":{text}}}}}\n"));
            }
            6 => {
                let file = rng.below(300);
                for (kind, status) in [("started", "in_progress"), ("completed", "completed")] {
                    out.push_str(&format!("{{\"type\":\"item.{kind}\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"file_change\",\"changes\":[{{\"path\":\"/home/dev/project/src/file{file}.rs\",\"kind\":\"update\"}},{{\"path\":\"/home/dev/project/src/mod.rs\",\"kind\":\"update\"}}],\"status\":\"{status}\"}}}}\n"));
                }
            }
            _ => {
                let result = output(&mut rng, 800);
                out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"mcp_tool_call\",\"server\":\"lab\",\"tool\":\"read\",\"arguments\":{{\"path\":\"a/b\",\"limit\":20}},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{result}}}],\"structured_content\":null}},\"error\":null,\"status\":\"completed\"}}}}\n"));
            }
        }
    }
    out.push_str("{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":120,\"cached_input_tokens\":20,\"output_tokens\":30}}\n");
    out.into_bytes()
}

/// Many small events of at most a few hundred bytes.
fn small(megabytes: usize) -> Vec<u8> {
    let mut rng = Rng(0xD1CE);
    let mut out =
        String::from("{\"type\":\"thread.started\",\"thread_id\":\"01a1\"}\n{\"type\":\"turn.started\"}\n");
    let mut n = 0;
    while out.len() < megabytes << 20 {
        n += 1;
        match rng.below(4) {
            0 | 1 => {
                let command = format!("/bin/bash -lc 'sed -n {},200p src/lib.rs'", rng.below(100));
                out.push_str(&format!("{{\"type\":\"item.started\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"command_execution\",\"command\":\"{command}\",\"aggregated_output\":\"\",\"exit_code\":null,\"status\":\"in_progress\"}}}}\n"));
                out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"command_execution\",\"command\":\"{command}\",\"aggregated_output\":\"ok\\n\",\"exit_code\":0,\"status\":\"completed\"}}}}\n"));
            }
            2 => out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"agent_message\",\"text\":\"Step {n} is done, looking at the next file.\"}}}}\n")),
            _ => out.push_str(&format!("{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"reasoning\",\"text\":\"**Checking** the parser\"}}}}\n")),
        }
    }
    out.into_bytes()
}

/// The best of several rounds for each function, in MB/s. The machine is shared, so the best round shows what the code
/// can do; the functions alternate, so that load affects them equally.
fn speeds<const N: usize>(bytes: &[u8], works: [fn(&[u8]); N]) -> [f64; N] {
    let mut best = [f64::MAX; N];
    for _ in 0..ROUNDS {
        for (best, work) in best.iter_mut().zip(works) {
            let start = Instant::now();
            work(black_box(bytes));
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best.map(|seconds| bytes.len() as f64 / 1e6 / seconds)
}

fn count_newlines(bytes: &[u8]) {
    black_box(memchr::memchr_iter(b'\n', bytes).count());
}

fn parse_values(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        black_box(serde_json::from_slice::<serde_json::Value>(line).expect("JSON"));
    }
}

fn fold(bytes: &[u8]) {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    for piece in bytes.chunks(64 << 10) {
        summarizer.push(piece);
    }
    black_box(summarizer.finish());
}

fn compare(name: &str, bytes: &[u8]) {
    let [newlines, value, ours] = speeds(bytes, [count_newlines, parse_values, fold]);
    let lines = memchr::memchr_iter(b'\n', bytes).count();
    println!("| {name} | {lines} | {newlines:.0} | {value:.0} | {ours:.0} | {:.2} |", ours / value);
}

/// Peak resident memory of this process in kB, from the kernel.
fn peak_kb() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: unknown");
    line.trim_start_matches("VmHWM:").trim().to_owned()
}

fn memory(megabytes: usize) {
    let piece = realistic(8);
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    let before = peak_kb();
    let mut fed = 0;
    while fed < megabytes << 20 {
        piece.chunks(64 << 10).for_each(|bytes| summarizer.push(bytes));
        fed += piece.len();
    }
    let report = summarizer.finish();
    println!("| {megabytes} MB | {} lines | {before} before | {} peak |", report.counts.lines, peak_kb());
}

/// One command whose output is a single line of that many megabytes.
fn one_line(megabytes: usize) {
    let piece = "a line of output\\n".repeat(4 << 10);
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    let start = Instant::now();
    summarizer.push(br#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"yes","aggregated_output":""#);
    for _ in 0..(megabytes << 20) / piece.len() {
        summarizer.push(piece.as_bytes());
    }
    summarizer.push(br#"","exit_code":3,"status":"failed"}}"#);
    summarizer.push(b"\n");
    let report = summarizer.finish();
    let exit_code = report.commands.list.first().and_then(|command| command.exit_code);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "| one line of {megabytes} MB | exit code {exit_code:?} | {seconds:.2} s | {} peak |",
        peak_kb()
    );
}

/// The cost of test results: commands with megabytes of test runner output.
fn test_outputs(megabytes: usize) {
    println!("| {megabytes} MB of | MB/s |");
    println!("|---|---|");
    for (name, lines) in [
        ("cargo test", "test shop::cart::adds_up ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"),
        ("coloured pytest", "\u{1b}[32mtests/test_a.py::test_x PASSED\u{1b}[0m\n3 passed in 0.01s\n"),
        ("go test -json", "{\"Action\":\"pass\",\"Package\":\"a\",\"Test\":\"TestA\",\"Elapsed\":0}\n"),
        ("failing unittest", "FAIL: test_x (a.b.C.test_x)\nRan 1 test in 0.1s\n\nFAILED (failures=1)\n"),
        (
            "all of them",
            "--- FAIL: TestA (0.0s)\nTests: 1 passed, 1 total\n  1 passing (1s)\n  1 failing\n  1) a\nOK (1 test)\nTests run: 1, Failures: 0, Errors: 0\n1 example, 0 failures\nok  \ta\nDONE 1 tests in 1s\nℹ cancelled 0\n9 tests completed, 1 failed\n100% tests passed, 0 tests failed out of 1\nTotal tests: 1\n   Tests  1 passed (1)\n1 passed in 1s\nRan 1 test in 1s\ntest result: ok. 1 passed; 0 failed; 0 ignored\n",
        ),
    ] {
        let output = serde_json::to_string(&lines.repeat((megabytes << 20) / lines.len())).expect("a string");
        let line = format!(
            "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_0\",\"type\":\"command_execution\",\"command\":\"make test\",\"aggregated_output\":{output},\"exit_code\":0,\"status\":\"completed\"}}}}\n"
        );
        let [speed] = speeds(line.as_bytes(), [fold]);
        println!("| {name} | {speed:.0} |");
    }
}

/// One failed command whose output is one piece repeated.
fn failed(megabytes: usize) {
    let friendly = output(&mut Rng(0xFA11), 8 << 10);
    let friendly: String = serde_json::from_str(&friendly).expect("a string");
    let pieces = [
        friendly.as_str(),
        ":1",
        "a.rs:1:",
        "\n    at f (",
        "E   ",
        "  | ^\n",
        "(",
        "\u{1b}[",
        "x.c:1:1: note: y\n",
    ];
    for piece in pieces {
        let printed = piece.repeat((megabytes << 20) / piece.len());
        let item = serde_json::json!({"type": "item.completed", "item": {"id": "item_0", "type": "command_execution",
            "command": "make", "aggregated_output": printed, "exit_code": 2, "status": "failed"}});
        let line = format!("{item}\n");
        let [speed] = speeds(line.as_bytes(), [fold]);
        let name: String = piece.chars().take(24).collect();
        println!("| {name:?} | {:.1} ms | {speed:.0} MB/s |", line.len() as f64 / 1e3 / speed);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok());
    let measure: Option<fn(usize)> = match arguments.first().map(String::as_str) {
        Some("--memory") => Some(memory),
        Some("--line") => Some(one_line),
        Some("--tests") => Some(test_outputs),
        Some("--failed") => Some(failed),
        _ => None,
    };
    if let Some(measure) = measure {
        return measure(number(arguments.get(1)).unwrap_or(10));
    }
    let megabytes = number(arguments.first()).unwrap_or(64);
    println!("| stream | lines | memchr MB/s | Value MB/s | frame + decode + fold MB/s | over Value |");
    println!("|---|---|---|---|---|---|");
    compare("realistic", &realistic(megabytes));
    compare("small events", &small(megabytes));
}
