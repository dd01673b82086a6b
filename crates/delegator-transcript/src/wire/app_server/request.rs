//! Requests of the app server: approvals and questions.

use crate::json::{Object, Text, Value};
use crate::values::read_suggestions;

#[derive(Clone, Debug)]
pub enum ServerRequest<'a> {
    /// `item/commandExecution/requestApproval`, `item/fileChange/requestApproval`
    Approval(ApprovalRequest<'a>),
    /// `item/permissions/requestApproval`: further permissions for the rest of the turn.
    Permissions,
    /// `item/tool/requestUserInput`
    UserInput(Vec<UserInputQuestion<'a>>),
    /// Any other request.
    Unknown { method: Text<'a> },
}

#[derive(Clone, Debug)]
pub struct ApprovalRequest<'a> {
    /// The item that waits for the approval.
    pub item_id: Text<'a>,
    /// The command; absent for a change of files.
    pub command: Option<Text<'a>>,
    /// The directory of the command, or the one that the change of files is about.
    pub directory: Option<Text<'a>>,
    pub reason: Option<Text<'a>>,
}

#[derive(Clone, Debug)]
pub struct UserInputQuestion<'a> {
    pub id: Text<'a>,
    pub question: Text<'a>,
    /// Suggested answers, each with a description.
    pub options: Vec<(Text<'a>, Option<Text<'a>>)>,
}

pub(super) fn read<'a>(method: Text<'a>, params: &'a str) -> ServerRequest<'a> {
    let params = Object::read(params);
    let reason = || params.text("reason");
    let item_id = || params.text("itemId").unwrap_or_default();
    match method.simple().unwrap_or_default() {
        "item/commandExecution/requestApproval" => ServerRequest::Approval(ApprovalRequest {
            item_id: item_id(),
            command: Some(params.text("command").unwrap_or_default()),
            directory: params.text("cwd"),
            reason: reason(),
        }),
        "item/fileChange/requestApproval" => ServerRequest::Approval(ApprovalRequest {
            item_id: item_id(),
            command: None,
            directory: params.text("grantRoot"),
            reason: reason(),
        }),
        "item/permissions/requestApproval" => ServerRequest::Permissions,
        "item/tool/requestUserInput" => ServerRequest::UserInput(params.list(&["questions"], question)),
        _ => ServerRequest::Unknown { method },
    }
}

fn question(question: Value<'_>) -> Option<UserInputQuestion<'_>> {
    let question = question.object()?;
    Some(UserInputQuestion {
        id: question.text("id")?,
        question: question.text("question")?,
        options: read_suggestions(&question),
    })
}
