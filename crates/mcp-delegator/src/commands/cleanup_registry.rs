//! `cleanup-registry`: end stuck tasks, delete old ones.
//!
//! The engine decides what is stuck or old. Restore points that contain the only copy of some content are
//! never deleted without `include_restore_points`, and nothing is deleted after a clock jump without
//! `trust_clock`; both can be set only on the command line.

use delegator_engine::{
    CleanFailure, CleanProblem, CleanReport, CleanRequest, MAX_LISTED_POINTS, RetainedRestorePoint,
    RetentionReason, clean,
};

use crate::commands::prelude::*;
use crate::output::batch::Batch;
use crate::output::data::batch::BatchResult;
use crate::output::data::registry::{
    Cleanup, CleanupCounts, Leftovers, OldTasks, RestorePointCounts, StuckTasks, TaskRestorePoint,
};

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CleanupRegistry {
    /// End tasks active longer without a supervisor
    #[serde(default = "default_number::<3600>")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub stuck_task_max_age_seconds: u32,
    /// Delete tasks finished longer ago (default: retention_hours)
    #[schemars(range(min = 1, max = 87_600))]
    pub old_task_max_age_hours: Option<u32>,
    /// Change nothing
    #[schemars(extend("x-markers" = [Marker::SelfExplanatory]))]
    pub dry_run: bool,
    /// Also delete restore points with content that no branch has; that content is lost for good
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub include_restore_points: bool,
    /// Delete even though the clock jumped by more than a day relative to the uptime; check the date first
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub trust_clock: bool,
}

const CLEANUP_PLANNED: &str = "cleanup_planned";
const NOTHING_TO_CLEAN: &str = "nothing_to_clean";

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Action("registry_cleaned"),
    other_actions: &[CLEANUP_PLANNED, NOTHING_TO_CLEAN],
    danger: Danger::Destructive,
    idempotent: true,
    toolset: Toolset::Registry,
    failures: &[ErrorCode::WrongState, ErrorCode::PartialFailure, ErrorCode::AllItemsFailed],
    former_names: &["cleanup"],
    ..CommandSpec::new::<CleanupRegistry, Cleanup>(
        &["cleanup-registry"],
        "End stuck tasks and delete old finished ones",
    )
};

const HOUR_MS: i64 = 60 * 60 * 1000;

pub fn run(context: &Context<'_>, input: CleanupRegistry) -> Result<CommandOutput, AppError> {
    let retention_hours = context.config.settings.retention.as_secs() / 3600;
    let old_after_hours = input.old_task_max_age_hours.map_or(retention_hours, u64::from);
    let request = CleanRequest {
        stuck_after_ms: i64::from(input.stuck_task_max_age_seconds) * 1000,
        old_after_ms: i64::try_from(old_after_hours).unwrap_or(i64::MAX).saturating_mul(HOUR_MS),
        dry_run: input.dry_run,
        include_restore_points: input.include_restore_points,
        trust_clock: input.trust_clock,
        environment: variables(context),
    };
    let mut cleaned = clean(&engine(context)?, &request)?;
    let failures = std::mem::take(&mut cleaned.failures);
    let batch = Batch::new(context.screen.presentation.call_syntax(), input.dry_run);
    let batch = batch_of(batch, &cleaned, failures, input.dry_run);
    let result = (batch.failed_count() > 0).then(|| batch.result());
    let data = report(&cleaned, input.dry_run, result);
    let message = Some(data.summary.clone());
    let shape = match (input.dry_run, batch.is_empty()) {
        (true, _) => Some(Shape::Action(CLEANUP_PLANNED)),
        (false, true) => Some(Shape::Action(NOTHING_TO_CLEAN)),
        (false, false) => None,
    };
    let warnings = warnings(&cleaned, input.dry_run);
    Ok(CommandOutput { message, shape, warnings, ..batch.into_output(data) }
        .fact("dry_run", input.dry_run)
        .fact("stuck_threshold_seconds", input.stuck_task_max_age_seconds)
        .fact("old_threshold_hours", old_after_hours))
}

fn warnings(cleaned: &CleanReport, dry_run: bool) -> Vec<Warning> {
    let dropped = if dry_run { cleaned.dropped_points.len() } else { 0 };
    let counted = [
        (
            WarningCode::Retained,
            cleaned.unclaimed.len() as u64,
            "task directories with results are not in the registry; they are retained",
        ),
        (
            WarningCode::Retained,
            cleaned.retained_points_found,
            "restore points without a task may contain the only copy of some content; they are retained, see restore_points",
        ),
        (
            WarningCode::PointsWouldBeDeleted,
            dropped as u64,
            "restore points would be deleted permanently; see restore_points.dropped_items",
        ),
    ];
    let counted = counted.into_iter().filter(|(_, count, _)| *count > 0);
    let mut warnings: Vec<Warning> =
        counted.map(|(code, count, message)| Warning::new(code, format!("{count} {message}"))).collect();
    warnings.extend(cleaned.clock_jumped_by_ms.map(|by_ms| {
        let hours = by_ms / HOUR_MS;
        let message = format!(
            "the clock jumped by {hours} hours relative to the uptime: nothing is deleted without trust_clock"
        );
        Warning::new(WarningCode::ClockJumped, message)
    }));
    warnings
}

fn batch_of<'a>(
    mut batch: Batch<'a>,
    cleaned: &CleanReport,
    failures: Vec<CleanFailure>,
    dry_run: bool,
) -> Batch<'a> {
    let is_failed = |id: &TaskId| failures.iter().any(|failure| failure.target == id.as_str());
    let stuck = cleaned.stuck.iter().filter(|id| !is_failed(id)).map(|id| (id.as_str(), "stuck_task"));
    let old = cleaned.old.iter().map(|id| (id.as_str(), "old_task"));
    let leftovers = cleaned.leftovers.iter().map(|id| (id.as_str(), "leftover"));
    let points = cleaned.dropped_points.iter().map(|point| (point.reference.as_str(), "restore_point"));
    for (item, kind) in stuck.chain(old).chain(leftovers).chain(points) {
        batch.succeeded(item, json!({"kind": kind}));
    }
    for CleanFailure { target, problem } in failures {
        batch.failed(target, clean_error(problem, dry_run));
    }
    batch
}

/// A dry run ends and deletes nothing, so its errors do not occur in the cleanup phase.
fn clean_error(problem: CleanProblem, dry_run: bool) -> AppError {
    match problem {
        CleanProblem::Failed(error) if dry_run => error.into(),
        CleanProblem::Failed(error) => EngineError::Cleanup(Box::new(error)).into(),
        CleanProblem::DirectoryLeft(error) => {
            let error = AppError::from(EngineError::Cleanup(Box::new(error)));
            let state = "The task is no longer in the registry, but its directory could not be removed; the next cleanup \
                         tries again.";
            AppError { message: format!("{state} {}", error.message), ..error }
        }
        CleanProblem::Locked => {
            AppError::new(ErrorCode::LockHeld, "Another process holds the lock of the task.").in_cleanup()
        }
        CleanProblem::NotDropped(reason) => {
            AppError::new(ErrorCode::IoError, format!("The restore point was not deleted: {reason}."))
                .in_cleanup()
        }
    }
}

fn report(cleaned: &CleanReport, dry_run: bool, batch: Option<BatchResult>) -> Cleanup {
    let ids = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    let deleted = if dry_run { 0 } else { cleaned.old.len() as u64 };
    let (stuck, old) = ("stuck task", "old task");
    let summary = if dry_run {
        let (stuck, old) = (plural(cleaned.stuck.len(), stuck), plural(cleaned.old_found, old));
        format!("Would clean {stuck} and delete {old}")
    } else {
        format!("Cleaned {}, deleted {}", plural(cleaned.stuck_ended, stuck), plural(deleted, old))
    };
    let summary = match &batch {
        Some(batch) if dry_run => format!("{summary}; {} would fail", batch.failed),
        Some(batch) => format!("{summary}; {} failed", batch.failed),
        None => summary,
    };
    Cleanup {
        dry_run,
        batch,
        counts: CleanupCounts {
            stuck_tasks: StuckTasks {
                found: cleaned.stuck.len(),
                cleaned: cleaned.stuck_ended,
                task_ids: ids(&cleaned.stuck),
            },
            old_tasks: OldTasks {
                found: cleaned.old_found,
                deleted,
                oldest_age_hours: cleaned.oldest_age_ms.map(|age| age / HOUR_MS),
            },
        },
        leftovers: Leftovers {
            found: cleaned.leftovers_found,
            removed_count: if dry_run { 0 } else { cleaned.leftovers.len() },
        },
        unclaimed: ids(&cleaned.unclaimed),
        restore_points: RestorePointCounts {
            retained_count: cleaned.retained_points_found,
            dropped_count: cleaned.dropped_points.len(),
            items: cleaned.retained_points.iter().map(restore_point).collect(),
            dropped_items: cleaned
                .dropped_points
                .iter()
                .take(MAX_LISTED_POINTS as usize)
                .map(restore_point)
                .collect(),
        },
        summary,
    }
}

fn restore_point(point: &RetainedRestorePoint) -> TaskRestorePoint {
    TaskRestorePoint {
        task_id: point.task.to_string(),
        repository: point.repository.clone(),
        reference: point.reference.clone(),
        reason: retention_reason(&point.reason),
        expires_ts: point.expires_at_ms.map(UtcTime::from_ms),
    }
}

fn retention_reason(reason: &RetentionReason) -> String {
    match reason {
        RetentionReason::UniqueContent => "holds content that no branch has".to_owned(),
        RetentionReason::Unreachable => "the repository is not there".to_owned(),
        RetentionReason::NotExamined { problem: None } => "not examined yet".to_owned(),
        RetentionReason::NotExamined { problem: Some(problem) } => {
            format!("could not be examined: {problem}")
        }
    }
}

impl CommandData for Cleanup {
    fn document(&self) -> Document {
        let Cleanup { counts, leftovers, restore_points, .. } = self;
        let (deleted, heading) = if self.dry_run {
            ("restore points that would be deleted", "Restore points that would be deleted:")
        } else {
            ("restore points deleted", "Restore points deleted:")
        };
        let listed = |ids: &[String]| Some(ids.join(", ")).filter(|text| !text.is_empty());
        let count = |count: u64| (count > 0).then(|| count.to_string());
        let mut document = Document::titled(&self.summary).block(Block::facts([
            ("stuck", listed(&counts.stuck_tasks.task_ids)),
            (
                "age of the oldest task in hours",
                counts.old_tasks.oldest_age_hours.filter(|age| *age != 0).map(|age| age.to_string()),
            ),
            ("leftovers found", count(leftovers.found as u64)),
            ("leftovers removed", count(leftovers.removed_count as u64)),
            ("retained, but not in the registry", listed(&self.unclaimed)),
            ("restore points retained", count(restore_points.retained_count)),
            (deleted, count(restore_points.dropped_count as u64)),
        ]));
        let lists =
            [(&restore_points.items, "Restore points retained:"), (&restore_points.dropped_items, heading)];
        for (points, heading) in lists.into_iter().filter(|(points, _)| !points.is_empty()) {
            let columns = vec!["task", "repository", "ref", "reason", "expires"];
            let rows = points.iter().map(point_row).collect();
            document = document.text(heading).block(Block::Table { columns, rows });
        }
        document
    }
}

fn point_row(point: &TaskRestorePoint) -> Vec<String> {
    vec![
        point.task_id.clone(),
        point.repository.clone(),
        point.reference.clone(),
        point.reason.clone(),
        cell(point.expires_ts.as_ref().map(|time| &time.0)),
    ]
}
