//! `fleet status`: workers, slots and queue at one moment.
//!
//! With the name of a worker the call fails if that worker has no lease: a container uses this as its health
//! check.

use delegator_fleet::{FleetError, FleetStatus, WorkerStatus};
use jiff::Timestamp;

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::prelude::*;
use crate::output::values::{format_age, format_size};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct FleetStatusInput {
    /// Only this worker; it is an error if it is not running
    #[schemars(length(min = 1, max = 128))]
    pub worker: Option<String>,
    #[serde(flatten)]
    pub database: DatabaseInput,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetOverview {
    /// Whether the whole fleet is paused.
    pub is_paused: bool,
    /// Workers with a lease, by name.
    pub workers: Vec<FleetWorker>,
    pub worker_count: usize,
    pub slot_count: u64,
    pub busy_count: u64,
    pub queued_count: u64,
    /// Claimed or running tasks.
    pub running_count: u64,
    /// How long the oldest queued task has been waiting.
    pub oldest_wait_ms: Option<i64>,
    /// Queued tasks with a label that no worker has.
    pub unmatched_count: u64,
    /// Attempts that ended in the last 24 hours because their worker was lost.
    pub lost_last_day_count: u64,
    /// Tasks that ended in the last 24 hours.
    pub ended_last_day_count: u64,
    /// Size of the stored events, diffs and results of ended tasks.
    pub stored_bytes: u64,
    pub schema_version: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetWorker {
    pub name: String,
    /// idle, busy, full, paused or draining.
    pub state: &'static str,
    pub slot_count: u32,
    /// Tasks that it has.
    pub busy_count: u32,
    pub labels: BTreeMap<String, String>,
    pub version: String,
    pub heartbeat_age_ms: i64,
    pub started_at: String,
    /// Since its start.
    pub age_ms: i64,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("fleet"),
    network: true,
    examples: &[
        example("mcp-delegator fleet status", "workers, slots and queue"),
        example(
            "mcp-delegator fleet status --worker build-3 --quiet",
            "fails unless this worker has a lease",
        ),
    ],
    ..CommandSpec::read_only::<FleetStatusInput, FleetOverview>(
        &["fleet", "status"],
        "Show workers, slots and queue of the fleet",
    )
};

pub fn run(context: &Context<'_>, input: FleetStatusInput) -> Result<CommandOutput, AppError> {
    Ok(CommandOutput::done(read(context, input)?))
}

pub fn read(context: &Context<'_>, input: FleetStatusInput) -> Result<FleetOverview, AppError> {
    let mut status = database_from(context, &input.database)?.status()?;
    if let Some(worker) = input.worker {
        let (found, others) = status.workers.into_iter().partition(|candidate| candidate.name == worker);
        status.workers = found;
        if status.workers.is_empty() {
            let others: Vec<WorkerStatus> = others;
            let known = others.into_iter().map(|worker| worker.name).collect();
            return Err(FleetError::UnknownWorker { worker, known }.into());
        }
    }
    Ok(overview(status))
}

fn overview(status: FleetStatus) -> FleetOverview {
    let sum =
        |count: fn(&WorkerStatus) -> u32| status.workers.iter().map(|worker| u64::from(count(worker))).sum();
    FleetOverview {
        is_paused: status.is_paused,
        worker_count: status.workers.len(),
        slot_count: sum(|worker| worker.slots),
        busy_count: sum(|worker| worker.busy),
        queued_count: status.queued,
        running_count: status.running,
        oldest_wait_ms: status.oldest_wait_ms,
        unmatched_count: status.unmatched,
        lost_last_day_count: status.lost_last_day,
        ended_last_day_count: status.ended_last_day,
        stored_bytes: status.stored_bytes,
        schema_version: status.schema.to_string(),
        workers: status.workers.into_iter().map(|worker| fleet_worker(worker, status.is_paused)).collect(),
    }
}

fn fleet_worker(worker: WorkerStatus, is_fleet_paused: bool) -> FleetWorker {
    let state = match worker.busy {
        _ if worker.is_draining => "draining",
        _ if worker.is_paused || is_fleet_paused => "paused",
        0 => "idle",
        busy if busy < worker.slots => "busy",
        _ => "full",
    };
    let started_at = Timestamp::from_millisecond(worker.opened_at_ms).unwrap_or_default();
    FleetWorker {
        name: worker.name,
        state,
        slot_count: worker.slots,
        busy_count: worker.busy,
        labels: worker.labels,
        version: worker.version,
        heartbeat_age_ms: worker.heartbeat_age_ms,
        age_ms: worker.age_ms,
        started_at: started_at.to_string(),
    }
}

impl CommandData for FleetOverview {
    fn document(&self) -> Document {
        let paused = if self.is_paused { ", paused" } else { "" };
        let title = format!(
            "{}, {} of {} slots busy, {} queued{paused}",
            plural(self.worker_count, "worker"),
            self.busy_count,
            self.slot_count,
            self.queued_count,
        );
        let document = Document::titled(title).block(Block::facts([
            ("oldest wait", self.oldest_wait_ms.map(format_age)),
            ("queued without a matching worker", Some(self.unmatched_count.to_string())),
            ("lost in the last day", Some(self.lost_last_day_count.to_string())),
            ("ended in the last day", Some(self.ended_last_day_count.to_string())),
            ("stored", Some(format_size(self.stored_bytes))),
        ]));
        if self.workers.is_empty() {
            document.text("No worker is running.")
        } else {
            document.block(Block::Table {
                columns: vec!["worker", "state", "busy", "heartbeat", "labels", "runs for", "version"],
                rows: self.workers.iter().map(row).collect(),
            })
        }
    }
}

fn row(worker: &FleetWorker) -> Vec<String> {
    let labels: Vec<String> = worker.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        worker.name.clone(),
        worker.state.to_owned(),
        format!("{}/{}", worker.busy_count, worker.slot_count),
        format!("{} ago", format_age(worker.heartbeat_age_ms)),
        labels.join(" "),
        format_age(worker.age_ms),
        worker.version.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::documents::text::TextStyle;

    #[test]
    fn the_workers_are_readable_in_60_columns() {
        let labels = [("gpu", "no"), ("os", "linux")];
        let worker = FleetWorker {
            name: "build-1".to_owned(),
            state: "idle",
            slot_count: 16,
            busy_count: 0,
            labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            version: "3.6.0".to_owned(),
            heartbeat_age_ms: 12_345,
            started_at: String::new(),
            age_ms: 9_000_000,
        };
        let data = FleetOverview {
            is_paused: false,
            workers: vec![worker],
            worker_count: 1,
            slot_count: 16,
            busy_count: 0,
            queued_count: 3,
            running_count: 0,
            oldest_wait_ms: Some(200_000),
            unmatched_count: 0,
            lost_last_day_count: 0,
            ended_last_day_count: 12,
            stored_bytes: 5_500_000,
            schema_version: "1".to_owned(),
        };
        let text = data.document().to_text(TextStyle { columns: Some(60), ..TextStyle::default() });
        let expected = "1 worker, 0 of 16 slots busy, 3 queued

oldest wait                       3 min
queued without a matching worker  0
lost in the last day              0
ended in the last day             12
stored                            5.2 MiB

WORKER   STATE  BUSY  HEARTBEAT  LABELS           RUNS FOR
build-1  idle   0/16  12 s ago   gpu=no os=linux  2 h";
        assert_eq!(text, expected);
    }
}
