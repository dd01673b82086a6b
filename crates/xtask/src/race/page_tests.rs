//! The page as a whole: marks of the first place, the list of lost metrics, and the stored page.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::results::Machine;
use super::*;

fn entry(name: &str, origin: Origin, values: &[(Metric, f64)]) -> Entry {
    let median = |value: f64| Outcome::Median { value, samples: 3 };
    Entry {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        origin,
        agent: "codex".to_owned(),
        has_background_tasks: false,
        tools: Some(2),
        problem: None,
        outcomes: values.iter().map(|(metric, value)| (*metric, median(*value))).collect(),
    }
}

fn results(entries: Vec<Entry>) -> RaceResults {
    RaceResults {
        date: "2026-11-17".to_owned(),
        machine: Machine { processor: "x".to_owned(), cores: 2, kernel: "6".to_owned() },
        rounds: 9,
        agent_alone: 0.3,
        twenty_agents_alone: 9.5,
        loads: BTreeMap::from([(Group::Server, Load { load1_before: 1.0, load1_after: 2.0, steal: 12.4 })]),
        entries,
    }
}

fn ours(values: &[(Metric, f64)]) -> Entry {
    entry("mcp-delegator", Origin::Ours { profile: "dist".to_owned() }, values)
}

fn peer(values: &[(Metric, f64)]) -> Entry {
    entry("peer", Origin::Npm, values)
}

#[test]
fn the_first_place_is_bold_and_lost_metrics_are_listed() {
    let page = render(&results(vec![
        ours(&[(Metric::Start, 3.0), (Metric::Status, 0.5)]),
        peer(&[(Metric::Start, 40.0), (Metric::Status, 0.2)]),
    ]));
    assert!(page.contains("| mcp-delegator | **3.00 ms** | 0.50 ms |"), "{page}");
    assert!(page.contains("| peer | 40.0 ms | **0.20 ms** |"), "{page}");
    assert!(page.contains("- **status call**: 0.50 ms; peer has 0.20 ms. One peer is better.\n"), "{page}");
    assert!(!page.contains("- **start"), "{page}");
    assert!(page.contains("Load 1.0 before and 2.0 after, steal 12 %."), "{page}");
}

#[test]
fn values_that_are_written_the_same_share_the_first_place() {
    let results = results(vec![ours(&[(Metric::Start, 3.001)]), peer(&[(Metric::Start, 3.0)])]);
    assert_eq!(results.first(Metric::Start).len(), 2);
    assert!(render(&results).contains("Nowhere in this run."));
}

#[test]
fn peers_that_fail_are_listed_with_their_reason() {
    let mut broken = peer(&[]);
    broken.problem = Some("not installed: npm failed".to_owned());
    let mut partly = entry("partly", Origin::PyPi, &[(Metric::Start, 9.0)]);
    partly.outcomes.insert(Metric::RunGit, Outcome::Failed { reason: "no reply".to_owned() });
    let page = render(&results(vec![ours(&[(Metric::Start, 3.0)]), broken, partly]));
    assert_eq!(page.matches("| peer | not installed: npm failed").count(), Group::ALL.len(), "{page}");
    assert!(page.contains("\npartly: no reply.\n"), "{page}");
    assert!(page.contains("complete a task with the agent of this race"), "{page}");
}

#[test]
fn a_metric_we_failed_counts_as_lost() {
    let mut failed = ours(&[]);
    failed.outcomes.insert(Metric::Start, Outcome::Failed { reason: "timed out".to_owned() });
    let page = render(&results(vec![failed, peer(&[(Metric::Start, 3.0)])]));
    assert!(
        page.contains("- **start → initialize**: failed; peer has 3.00 ms. One peer is better.\n"),
        "{page}"
    );
}

#[test]
fn limits_of_peers_come_from_measurements() {
    let page = render(&results(vec![peer(&[(Metric::ProcessesLeft, 2.0)])]));
    assert!(page.contains("end a cancelled task: 2 processes left"), "{page}");
    let page = render(&results(vec![peer(&[(Metric::ProcessesLeft, 0.0)])]));
    assert!(!page.contains("end a cancelled task"), "{page}");
}

#[test]
fn an_older_version_of_this_program_does_not_hide_a_lost_metric() {
    let mut before = ours(&[(Metric::Start, 1.0)]);
    before.name = "before".to_owned();
    let page = render(&results(vec![before, ours(&[(Metric::Start, 3.0)]), peer(&[(Metric::Start, 2.0)])]));
    assert!(
        page.contains("- **start → initialize**: 3.00 ms; peer has 2.00 ms. One peer is better.\n"),
        "{page}"
    );
    assert!(page.contains("| before | **1.00 ms** |"), "{page}");
}

/// The page in the repository was rendered by this code from the figures beside it.
#[test]
fn the_stored_page_is_the_rendering_of_the_stored_figures() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reports");
    let figures = std::fs::read_to_string(docs.join("performance.json")).unwrap();
    let results: RaceResults = serde_json::from_str(&figures).unwrap();
    let page = std::fs::read_to_string(docs.join("performance.md")).unwrap();
    assert_eq!(
        page,
        render(&results),
        "run `cargo xtask race --render docs/reports/performance.json --write docs/reports/performance.md`"
    );
}
