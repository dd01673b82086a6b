//! Cancels a task that a provider runs.

use delegator_domain::task::{TaskId, TaskLocation};
use delegator_registry::Registry;

use super::provider::CancelProgress;
use super::submit_remote::provider_error;
use crate::Engine;
use crate::error::EngineError;
use crate::provider_error::ProviderError;

impl Engine {
    /// Passes the request on to the provider of the task, if one runs it and it has not ended. `None` if there is none.
    pub(crate) fn request_remote_cancel(
        &self,
        registry: &Registry,
        id: &TaskId,
        reason: Option<&str>,
    ) -> Result<Option<CancelProgress>, EngineError> {
        if id.location() == TaskLocation::Local {
            return Ok(None);
        }
        let task = registry.get(id)?.filter(|task| !task.state.is_terminal());
        let Some(remote) = task.and_then(|task| task.remote) else { return Ok(None) };
        let provider = remote.environment.provider;
        let cancelled = self.providers.get(provider).and_then(|service| match &remote.accepted {
            Some(accepted) => service.cancel(accepted, reason),
            None => {
                let reason = "the submission of the task has not been confirmed yet".to_owned();
                Err(ProviderError::NotAvailable { provider, reason })
            }
        });
        cancelled.map(Some).map_err(|error| provider_error(provider, Some(id), error))
    }
}
