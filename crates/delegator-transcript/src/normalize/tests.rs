//! Tests of `strict` and of what normalising preserves.

use super::*;

fn strict(line: &str) -> String {
    let mut out = Vec::new();
    let options = NormalizeOptions { strict: true, ..NormalizeOptions::default() };
    let mut normalizer = Normalizer::new(options, LineLimits::STANDARD);
    normalizer.push(format!("{line}\n").as_bytes(), &mut out);
    normalizer.finish(&mut out);
    String::from_utf8(out).expect("UTF-8").trim_end().to_owned()
}

/// The documented example of Codex exec events.
const EXAMPLE: &str = r#"{"type":"thread.started","thread_id":"67e55044-10b1-426f-9247-bb680e5fe0c8"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"echo hello","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"echo hello","aggregated_output":"hello\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":123,"cached_input_tokens":0,"output_tokens":45}}
"#;

#[test]
fn the_codex_exec_example_is_unchanged_strict_or_not() {
    for strict in [false, true] {
        let mut out = Vec::new();
        let mut normalizer =
            Normalizer::new(NormalizeOptions { strict, ..NormalizeOptions::default() }, LineLimits::STANDARD);
        normalizer.push(EXAMPLE.as_bytes(), &mut out);
        let summary = normalizer.finish(&mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), EXAMPLE);
        assert_eq!((summary.lines_written, summary.lost_lines()), (6, 0));
    }
}

#[test]
fn strict_drops_unnamed_fields_and_a_null_exit_code() {
    let line = r#"{"type":"item.started","extra":1,"item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","exit_code":null,"status":"in_progress","cwd":"/"}}"#;
    let expected = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","status":"in_progress"}}"#;
    assert_eq!(strict(line), expected);
    let line = r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"cache_write_input_tokens":3,"output_tokens":4}}"#;
    let expected =
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":4}}"#;
    assert_eq!(strict(line), expected);
}

#[test]
fn strict_keeps_an_item_of_unknown_type_as_an_item() {
    let line = r#"{"type":"item.completed","item":{"id":"item_0","type":"hologram","x":{"y":[1]}}}"#;
    assert_eq!(strict(line), r#"{"type":"item.completed","item":{"id":"item_0","type":"hologram"}}"#);
}

#[test]
fn white_space_around_a_line_is_not_part_of_it() {
    let mut out = Vec::new();
    let mut normalizer = Normalizer::new(NormalizeOptions::default(), LineLimits::STANDARD);
    normalizer.push(b"\xEF\xBB\xBF  {\"type\":\"turn.started\"}\t\r\n \n", &mut out);
    let summary = normalizer.finish(&mut out);
    assert_eq!(out, b"{\"type\":\"turn.started\"}\n");
    assert_eq!(summary.no_place.get(&UnmappedReason::Blank), Some(&1));
}
