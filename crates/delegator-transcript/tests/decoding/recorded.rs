//! The recordings, and helpers that decode them.

use std::path::{Path, PathBuf};

use delegator_transcript::{
    FoldOptions, LineLimits, NormalizeOptions, NormalizeSummary, Normalizer, Report, Summarizer,
};
use serde_json::Value;

pub(crate) fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = transcripts().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every recording in `tests/transcripts`, with its name.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in ["", "versions", "rollouts", "claude", "app_server"] {
        for entry in std::fs::read_dir(transcripts().join(folder)).expect("the folder is there") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|ext| ext == "jsonl") {
                let name = path.strip_prefix(transcripts()).expect("below").to_string_lossy().into_owned();
                found.push((name, std::fs::read(&path).expect("readable")));
            }
        }
    }
    found.sort();
    assert!(found.len() > 150, "the recordings are missing: {}", found.len());
    found
}

/// Whether a recording consists of Codex exec events.
pub(crate) fn is_exec_stream(name: &str) -> bool {
    let is_protocol =
        name.ends_with(".rollout.jsonl") || name.contains("/0.40.0.") || name.contains("/0.42.0.");
    !is_protocol && !name.starts_with("claude/") && !name.starts_with("app_server/")
}

pub(crate) fn summarize(bytes: &[u8]) -> Report {
    summarize_with(bytes, FoldOptions::default())
}

pub(crate) fn summarize_with(bytes: &[u8], options: FoldOptions) -> Report {
    let mut summarizer = Summarizer::new(options, LineLimits::STANDARD);
    summarizer.push(bytes);
    summarizer.finish()
}

pub(crate) fn normalize(bytes: &[u8], options: NormalizeOptions) -> (String, NormalizeSummary) {
    let mut normalizer = Normalizer::new(options, LineLimits::STANDARD);
    let mut out = Vec::new();
    normalizer.push(bytes, &mut out);
    let summary = normalizer.finish(&mut out);
    (String::from_utf8(out).expect("UTF-8"), summary)
}

/// Normalises the stream and parses its lines.
pub(crate) fn normalized(text: &str) -> Vec<Value> {
    let (out, _) = normalize(text.as_bytes(), NormalizeOptions::default());
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// Wraps these messages in a Codex protocol stream.
pub(crate) fn protocol(messages: &[&str]) -> String {
    messages.iter().map(|message| format!("{{\"id\":\"0\",\"msg\":{message}}}\n")).collect()
}
