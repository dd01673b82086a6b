//! Collects the results of a command that acts on several items.
//!
//! The rule is the same for every such command. Some items failed: a partial result. All failed: an error,
//! with the code that they share. The entries are part of the data either way, so no item is left out of the
//! output.

use serde::Serialize;
use serde_json::json;

use crate::error::{AppError, ErrorCode, Phase, Retryable};
use crate::output::call_syntax::CallSyntax;
use crate::output::command_data::Data;
use crate::output::data::batch::{BatchItem, BatchResult, ItemError};
use crate::output::outcome::{CommandOutput, Completion};

#[derive(Debug)]
pub struct Batch<'a> {
    /// How the messages of the items name inputs.
    syntax: CallSyntax<'a>,
    items: Vec<BatchItem>,
    errors: Vec<AppError>,
    /// The items were only examined: success and failure are what would happen.
    dry_run: bool,
}

impl<'a> Batch<'a> {
    pub fn new(syntax: CallSyntax<'a>, dry_run: bool) -> Batch<'a> {
        Batch { syntax, items: Vec::new(), errors: Vec::new(), dry_run }
    }

    pub fn succeeded(&mut self, target: impl Into<String>, result: impl Serialize) {
        let result = json!(result).as_object().cloned();
        self.items.push(BatchItem { target: target.into(), success: true, result, error: None });
    }

    pub fn failed(&mut self, target: impl Into<String>, mut error: AppError) {
        self.syntax.name_inputs_of(&mut error);
        let item_error = Some(ItemError::from(&error));
        self.items.push(BatchItem { target: target.into(), success: false, result: None, error: item_error });
        self.errors.push(error);
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn failed_count(&self) -> usize {
        self.errors.len()
    }

    pub fn result(&self) -> BatchResult {
        let (total, failed) = (self.items.len(), self.errors.len());
        BatchResult {
            total_operations: total,
            successful: total - failed,
            failed,
            partial_success: failed > 0 && failed < total,
            results: self.items.clone(),
        }
    }

    /// The output of the call. `data` contains the result of the batch.
    pub fn into_output(self, data: impl Into<Data>) -> CommandOutput {
        let (total, dry_run) = (self.items.len(), self.dry_run);
        let data = data.into().with_batch(self.result());
        let completion = match self.errors.len() {
            0 => Completion::Done,
            failed if failed < total => Completion::Partial,
            _ => Completion::Failed(Box::new(common_error(self.errors, dry_run))),
        };
        CommandOutput { dry_run, ..CommandOutput::new(completion, Some(data)) }
    }
}

/// The error of a batch in which every item failed: the only one, or one with the code that all share.
fn common_error(errors: Vec<AppError>, dry_run: bool) -> AppError {
    let count = errors.len();
    let mut errors = errors.into_iter();
    let Some(first) = errors.next() else { return AppError::new(ErrorCode::AllItemsFailed, "No item.") };
    if count == 1 {
        return first;
    }
    let codes: Vec<ErrorCode> = [first.code].into_iter().chain(errors.map(|error| error.code)).collect();
    let has_one_kind = codes.iter().all(|code| code.facts().kind == first.code.facts().kind);
    // One item that a retry cannot help is enough.
    let permanent = codes.into_iter().find(|code| code.facts().retryable == Retryable::No);
    let code = if has_one_kind { permanent.unwrap_or(first.code) } else { ErrorCode::AllItemsFailed };
    let failed = if dry_run { "would fail" } else { "failed" };
    let summary = AppError::summarizing(code, format!("All {count} items {failed}"), first.message);
    let error = AppError { suggestion: first.suggestion, ..summary };
    // The code of the first item may belong to another phase than the common one.
    if first.phase == Phase::Cleanup { error.in_cleanup() } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ExitCode;
    use crate::output::command_data::CommandData;
    use crate::spec::ServedTools;

    impl CommandData for BatchResult {}

    fn error(code: ErrorCode) -> AppError {
        AppError::new(code, "It did not work.").context("state", "completed")
    }

    fn output(batch: Batch<'_>) -> CommandOutput {
        let result = batch.result();
        batch.into_output(result)
    }

    fn empty() -> Batch<'static> {
        Batch::new(CallSyntax::Commands, false)
    }

    #[test]
    fn the_messages_of_items_name_inputs_as_the_caller_does() {
        let served = ServedTools { prefix: String::new(), names: Vec::new() };
        for (syntax, expected) in
            [(CallSyntax::Commands, "Give --dry-run."), (CallSyntax::Tools(&served), "Give dry_run.")]
        {
            let mut batch = Batch::new(syntax, false);
            batch.failed("a", AppError::new(ErrorCode::WrongState, "Give {input:dry_run}."));
            let message = batch.result().results[0].error.as_ref().map(|error| error.message.clone());
            assert_eq!(message.as_deref(), Some(expected));
        }
    }

    fn exit_when_all_failed(codes: &[ErrorCode]) -> ExitCode {
        let mut batch = empty();
        codes.iter().for_each(|code| batch.failed("T-local-1", error(*code)));
        let output = output(batch);
        let batch = output.data.as_ref().and_then(Data::batch).unwrap();
        assert_eq!((batch.failed, batch.partial_success), (codes.len(), false));
        output.completion.error().unwrap().exit()
    }

    #[test]
    fn a_batch_is_partial_only_if_some_items_failed_and_some_succeeded() {
        let mut batch = empty();
        assert!(matches!(output(empty()).completion, Completion::Done), "an empty batch");
        batch.succeeded("a", json!({"state": "cancelled"}));
        assert_eq!(batch.failed_count(), 0);
        batch.failed("b", error(ErrorCode::WrongState));
        let output = output(batch);
        assert!(matches!(output.completion, Completion::Partial), "{output:?}");
        let item_error = json!({
            "code": "WRONG_STATE", "kind": "wrong_state", "message": "It did not work.", "state": "completed"
        });
        let results = json!([
            {"target": "a", "success": true, "result": {"state": "cancelled"}},
            {"target": "b", "success": false, "error": item_error}
        ]);
        assert_eq!(
            output.data.unwrap().to_json(),
            json!({"total_operations": 2, "successful": 1, "failed": 1, "partial_success": true, "results": results})
        );
    }

    #[test]
    fn the_error_of_a_failed_batch_has_the_phase_of_its_own_code() {
        let errors = || vec![error(ErrorCode::WrongState), error(ErrorCode::TaskNotFound)];
        assert_eq!(errors()[0].phase, Phase::Validation);
        let common = common_error(errors(), false);
        assert_eq!((common.code, common.phase), (ErrorCode::AllItemsFailed, Phase::Execution));
        let in_cleanup = errors().into_iter().map(AppError::in_cleanup).collect();
        assert_eq!(common_error(in_cleanup, false).phase, Phase::Cleanup);
    }

    #[test]
    fn a_dry_run_reports_what_would_fail() {
        let errors = vec![error(ErrorCode::TaskNotFound), error(ErrorCode::TaskNotFound)];
        assert_eq!(common_error(errors, true).message, "All 2 items would fail. First: It did not work.");
        let mut batch = Batch::new(CallSyntax::Commands, true);
        batch.succeeded("a", json!({}));
        batch.failed("b", error(ErrorCode::WrongState));
        assert_eq!(output(batch).partial_message(), "Some items would fail; the others would succeed.");
    }

    #[test]
    fn a_batch_that_failed_completely_has_the_code_that_all_items_share() {
        let (unknown, ended) = (ErrorCode::TaskNotFound, ErrorCode::WrongState);
        assert_eq!(exit_when_all_failed(&[unknown]), ExitCode::NotFound);
        assert_eq!(exit_when_all_failed(&[unknown, ErrorCode::NotFound]), ExitCode::NotFound);
        assert_eq!(exit_when_all_failed(&[ended, ended]), ExitCode::Precondition);
        assert_eq!(exit_when_all_failed(&[ended, unknown]), ExitCode::GeneralError);
    }
}
