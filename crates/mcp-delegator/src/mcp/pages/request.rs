//! A request for a page: its path, its query and who asks.

use http::request::Parts;
use http::{HeaderMap, Method, header};
use serde_json::Map;

use crate::commands::prelude::*;
use crate::commands::sign_in::Scope;
use crate::input::validation;
use crate::mcp::api::routes::{input_of_query, query_pairs};
use crate::mcp::sign_in::Caller;
use crate::mcp::tools::server_state::ServerState;
use crate::spec::{CallOrigin, Input};

#[derive(Debug)]
pub(super) struct PageRequest {
    pub(super) path: String,
    /// Without names that have no value: a form sends every field.
    pub(super) query: Vec<(String, String)>,
    pub(super) caller: Caller,
    /// Only the main part is wanted, to replace the one that is shown.
    pub(super) is_fragment: bool,
    /// False if a browser only prepares the page.
    pub(super) is_looked_at: bool,
}

const FRAGMENT: &str = "x-fragment";

impl PageRequest {
    pub(super) fn of(head: &Parts, caller: Caller) -> Result<PageRequest, AppError> {
        let query = query_pairs(head.uri.query()).map_err(AppError::from)?;
        Ok(PageRequest {
            path: head.uri.path().to_owned(),
            query: query.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            caller,
            is_fragment: head.headers.contains_key(FRAGMENT),
            is_looked_at: head.method == Method::GET && !is_prefetch(&head.headers),
        })
    }

    pub(super) fn scope(&self) -> Scope {
        self.caller.scope
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.value(name)?.parse().ok()
    }

    /// The input of a command: the query without what only the page knows, and the id of the path.
    pub(super) fn input<I: Input>(
        &self,
        state: &ServerState,
        spec: &'static CommandSpec,
        id: Option<(&str, &str)>,
        of_page: &[&str],
    ) -> Result<I, AppError> {
        let query =
            self.query.iter().filter(|(name, _)| !of_page.contains(&name.as_str())).cloned().collect();
        let (mut object, problems) = input_of_query(spec, query, Map::new());
        object.extend(id.map(|(name, id)| (name.to_owned(), id.into())));
        let origin = CallOrigin { surface: Surface::Server, current_dir: &state.process.current_dir };
        validation::validate(spec, object, problems, origin, None)?.into_typed()
    }
}

/// Whether a browser only prepares the page, which its user may never open.
pub(super) fn is_prefetch(headers: &HeaderMap) -> bool {
    let purpose = headers.get("sec-purpose").and_then(|value| value.to_str().ok());
    purpose.is_some_and(|purpose| purpose.contains("prefetch"))
}

/// Whether the client takes a compressed response.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let given = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && parts.all(|parameter| parameter != "q=0")
    })
}
