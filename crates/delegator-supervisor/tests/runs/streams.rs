//! Reading and storing the agent's output.

use crate::world::World;

#[test]
fn background_process_holding_the_pipe_does_not_delay_the_end() {
    let world = World::new();
    let end = world.run_script("begin; (sleep 300; echo never) & item 0 last; end");
    assert_eq!(end["state"], "completed", "{end}");
    assert!(end["elapsed_ms"].as_u64().unwrap() < 15_000);
    assert_eq!(end["sweep"]["ended"].as_u64().unwrap().min(1), 1, "{end}");
    assert_eq!(world.read("events.jsonl").lines().count(), 4);
    world.assert_no_processes_left();
    // One that also writes without end.
    let end = world.run_script("begin; end; yes noise &");
    assert_eq!((end["code"].as_i64(), end["state"].as_str()), (Some(0), Some("completed")), "{end}");
}

#[test]
fn all_output_before_the_exit_is_read() {
    let world = World::new();
    let end = world.run_script(
        "begin; n=0; while [ $n -lt 3000 ]; do item $n x; n=$((n+1)); done; end; printf tail >&2",
    );
    assert_eq!(end["state"], "completed", "{end}");
    assert_eq!(world.read("events.jsonl").lines().count(), 3003);
    assert_eq!(end["report"]["recent_lines"].as_array().unwrap().len(), 50);
    assert_eq!(end["partial"]["last_stderr"], "tail");
    assert_eq!(end["stdout"]["received"], end["stdout"]["stored"]);
}

#[test]
fn stored_stderr_is_bounded() {
    let world = World::new();
    let mut case = world.case("begin; yes 'a complaint' | head -c 4000000 >&2; end");
    case.max_stream_bytes = 1 << 20;
    let end = world.run(&case);
    assert_eq!(end["state"], "completed", "{end}");
    assert_eq!(
        (end["stderr"]["received"].as_u64(), end["stderr"]["truncated"].as_bool()),
        (Some(4_000_000), Some(true))
    );
    let stored = world.read("stderr.log");
    assert!(stored.len() <= 1 << 20 && stored.contains(" bytes omitted]\n"), "{}", stored.len());
    assert!(!world.path("stderr.log.1").exists());
}

#[test]
fn huge_line_is_truncated_and_still_decoded() {
    let world = World::new();
    let script = r#"begin
        printf '{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"x","aggregated_output":"'
        head -c 20000000 /dev/zero | tr '\0' x
        printf '","exit_code":3,"status":"failed"}}\n'
        item 2 after; end"#;
    let all = world.start(&[world.case(script)]).wait_for_results();
    let end = &all["ends"][0];
    assert_eq!(
        (end["state"].as_str(), end["report"]["final_message"]["text"].as_str()),
        (Some("completed"), Some("after"))
    );
    assert_eq!(end["report"]["commands"]["failed"], 1, "{}", end["report"]["commands"]);
    let stored = world.read("events.jsonl");
    assert!(stored.len() < 2 << 20, "{}", stored.len());
    let lines: Vec<serde_json::Value> =
        stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[2]["item"]["exit_code"], 3);
    let peak: u64 = all["peak"].as_str().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak < 64 << 10, "{peak} KiB");
}

#[test]
fn secrets_are_redacted_before_storage() {
    let world = World::new();
    let secret = "correct-horse-battery-staple";
    let (first, second) = secret.split_at(9);
    let script = format!(
        "begin; item 0 {secret}; printf '{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_1\",\"type\":\
         \"agent_message\",\"text\":\"{first}'; sleep 0.2; echo '{second}\"}}}}'; echo '{secret}' >&2; \
         printf '{first}' >&2; sleep 0.2; echo '{second}' >&2; exit 3"
    );
    let mut case = world.case(&script);
    case.secret = secret.to_owned();
    let end = world.run(&case);
    assert_eq!(end["code"], 3, "{end}");
    std::fs::remove_file(world.path("cases.json")).unwrap();
    for name in ["events.jsonl", "stderr.log", "ended.json", "log"] {
        let text = world.read(name);
        assert!(!text.contains(secret) && !text.contains("battery"), "{name}: {text}");
    }
    assert_eq!(world.read("events.jsonl").matches("[REDACTED:env]").count(), 2);
    assert_eq!(world.read("stderr.log"), "[REDACTED:env]\n[REDACTED:env]\n");
}

#[test]
fn invalid_output_does_not_break_the_run() {
    let world = World::new();
    let end = world.run_script(
        r"begin; printf '\377\376\0\r\nno json\n[[[[\n{}\n'; item 0 after; end; printf 'no newline'",
    );
    assert_eq!(
        (end["state"].as_str(), end["report"]["final_message"]["text"].as_str()),
        (Some("completed"), Some("after"))
    );
    assert!(std::fs::read(world.path("events.jsonl")).unwrap().ends_with(b"no newline"));
}
