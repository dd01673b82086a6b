//! What a permission request is about, and the options that answer it.
//!
//! A request contains the call, but not always all of it: Kimi names the kind only when it announces the
//! call. So the last calls are remembered, in bounded memory. Ids and order of options differ between agents,
//! so only the kind of an option counts.

use std::collections::VecDeque;
use std::path::PathBuf;

use delegator_domain::question::{AnswerOption, OptionKind};
use delegator_domain::text::beginning;
use delegator_transcript::Text;
use delegator_transcript::wire::acp::outgoing::{cancel_request, select_option};
use delegator_transcript::wire::acp::{PermissionOption, ToolCall, ToolKind};
use delegator_transcript::wire::json_rpc::RequestId;

use super::super::permissions::{Decision, PermissionPolicy, RequestedAction};

/// More calls than this do not wait for permission at once.
const MAX_CALLS: usize = 64;
const MAX_TEXT_BYTES: usize = 4 << 10;
const MAX_PATHS: usize = 100;

const ALLOWING: [OptionKind; 2] = [OptionKind::AllowOnce, OptionKind::AllowAlways];
const REJECTING: [OptionKind; 2] = [OptionKind::RejectOnce, OptionKind::RejectAlways];

#[derive(Debug, Clone, Default)]
pub(super) struct KnownCall {
    id: String,
    kind: Option<ToolKind>,
    title: String,
    description: String,
    command: Option<String>,
    paths: Vec<String>,
}

/// The last calls, the newest at the end.
#[derive(Debug, Default)]
pub(super) struct KnownCalls {
    calls: VecDeque<KnownCall>,
}

impl KnownCalls {
    /// Adds what a message says about a call; returns all that is known of it.
    pub(super) fn record(&mut self, message: &ToolCall<'_>) -> KnownCall {
        let id = bounded(&message.id);
        let index = self.calls.iter().position(|call| call.id == id);
        let mut call = index.and_then(|index| self.calls.remove(index)).unwrap_or_default();
        call.id = id;
        call.merge(message);
        if self.calls.len() == MAX_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(call.clone());
        call
    }
}

impl KnownCall {
    fn merge(&mut self, message: &ToolCall<'_>) {
        self.kind = message.kind.or(self.kind);
        if let Some(title) = message.title.as_ref().filter(|title| !title.is_empty()) {
            self.title = bounded(title);
        }
        if let Some(content) = &message.content {
            self.description = bounded(content);
        }
        self.command = message.command.as_ref().map(bounded).or(self.command.take());
        let changed = message.changes.iter().map(|change| &change.path);
        let mut paths: Vec<String> = Vec::new();
        for path in changed.chain(&message.locations).chain(&message.input_path).map(bounded).take(MAX_PATHS)
        {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        if !paths.is_empty() {
            self.paths = paths;
        }
        if !message.changes.is_empty() && self.kind.is_none_or(|kind| kind == ToolKind::Other) {
            self.kind = Some(ToolKind::Edit);
        }
    }

    /// Gemini CLI writes the command only into the title, Kimi only into the text beside it.
    fn description(&self) -> Option<String> {
        let texts = [self.title.as_str(), self.description.as_str()];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Some(texts.join("\n")).filter(|text| !text.is_empty())
    }

    /// Goose marks no kind, and the title of a request is the name of the tool.
    fn kind(&self) -> ToolKind {
        match (self.kind.unwrap_or(ToolKind::Other), self.title.as_str()) {
            (ToolKind::Other, "write" | "edit") => ToolKind::Edit,
            (kind, _) => kind,
        }
    }
}

fn bounded(text: &Text<'_>) -> String {
    beginning(&text.resolve(), MAX_TEXT_BYTES).to_owned()
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestedChange {
    /// To run a command, or a tool whose effects are unknown.
    Command,
    Edit(Vec<PathBuf>),
    /// To read, search or fetch.
    Harmless,
}

impl RequestedChange {
    pub(super) fn of(call: &KnownCall) -> RequestedChange {
        match call.kind() {
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
                RequestedChange::Edit(call.paths.iter().map(PathBuf::from).collect())
            }
            ToolKind::Execute | ToolKind::Other => RequestedChange::Command,
            ToolKind::Read | ToolKind::Search | ToolKind::Fetch => RequestedChange::Harmless,
        }
    }

    /// All files have to be permitted. An edit of unknown files counts as one in the working directory.
    pub(super) fn decide(&self, policy: &PermissionPolicy) -> Decision {
        match self {
            RequestedChange::Command => policy.decide(RequestedAction::Command),
            RequestedChange::Harmless => policy.decide(RequestedAction::Harmless),
            RequestedChange::Edit(paths) => {
                let unknown = PathBuf::new();
                let paths = if paths.is_empty() { std::slice::from_ref(&unknown) } else { paths.as_slice() };
                let decisions = paths.iter().map(|path| policy.decide(RequestedAction::Edit(path)));
                decisions.into_iter().find(|decision| *decision != Decision::Allow).unwrap_or(Decision::Allow)
            }
        }
    }

    /// Title and detail of the question to the user.
    pub(super) fn question(&self, call: &KnownCall) -> (String, Option<String>) {
        let title = Some(call.title.clone()).filter(|title| !title.is_empty());
        match (self, &call.command) {
            (_, Some(command)) => ("Run a command".to_owned(), Some(command.clone())),
            (RequestedChange::Edit(paths), _) => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                (
                    "Change files".to_owned(),
                    Some(paths.join("\n")).filter(|paths| !paths.is_empty()).or(title),
                )
            }
            (RequestedChange::Command, None) if call.kind() == ToolKind::Execute => {
                ("Run a command".to_owned(), call.description())
            }
            (RequestedChange::Command, None) => ("Use a tool".to_owned(), call.description()),
            (RequestedChange::Harmless, None) => ("Read or search".to_owned(), title),
        }
    }
}

pub(super) fn answer_option(option: &PermissionOption<'_>) -> AnswerOption {
    let id = option.id.resolve().into_owned();
    let label = Some(option.name.resolve().into_owned()).filter(|name| !name.is_empty());
    AnswerOption { label: label.unwrap_or_else(|| id.clone()), id, kind: option.kind }
}

/// The answer that allows or refuses this call, alone if there is such an option.
pub(super) fn choose(id: &RequestId, options: &[AnswerOption], is_allowed: bool) -> Vec<u8> {
    let kinds = if is_allowed { ALLOWING } else { REJECTING };
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
    match option {
        Some(option) => select_option(id, &option.id),
        None => cancel_request(id),
    }
}
