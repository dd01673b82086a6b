//! The calls of `codex cloud`: arguments, interpretation of the result, errors.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use delegator_domain::redact::Redactor;
use delegator_subprocess::{End, Finished};

use crate::error::CloudError;
use crate::parse::{self, Failure, ParseProblem, classify};
use crate::run::{MAX_STDOUT, Runner};
use crate::task::{HostedPage, HostedStatus, HostedTaskRef, NewHostedTask};

/// A call takes less than a second; the rest is for a slow network.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// An error shows this many bytes of a text that Codex printed.
const MAX_SHOWN: usize = 4 << 10;
/// What Codex takes without a branch outside a repository.
const DEFAULT_BRANCH: &str = "main";

pub struct CodexCloud {
    runner: Runner,
    redactor: Redactor,
}

/// Never shows the value of a variable.
impl fmt::Debug for CodexCloud {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CodexCloud").field("program", &self.runner.program).finish_non_exhaustive()
    }
}

impl CodexCloud {
    /// `variables` is the whole environment of the calls. `scratch` is the directory in which Codex runs; it
    /// is created if it is missing, for this user only.
    pub fn new(program: PathBuf, variables: Vec<(OsString, OsString)>, scratch: PathBuf) -> CodexCloud {
        let texts = variables.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
        let redactor = Redactor::builder().environment(texts).build();
        CodexCloud {
            runner: Runner { program, leading_args: Vec::new(), variables, scratch, limit: TIME_LIMIT },
            redactor,
        }
    }

    /// The same with arguments before `cloud`, as for a program that an interpreter runs.
    #[must_use]
    pub fn with_leading_args(self, leading_args: Vec<OsString>) -> CodexCloud {
        CodexCloud { runner: Runner { leading_args, ..self.runner }, ..self }
    }

    /// The same with another time limit per call.
    #[must_use]
    pub fn with_time_limit(self, limit: Duration) -> CodexCloud {
        CodexCloud { runner: Runner { limit, ..self.runner }, ..self }
    }

    /// Submits a task. The prompt goes through stdin, so other users do not see it in the process list.
    pub fn submit(&self, task: &NewHostedTask) -> Result<HostedTaskRef, CloudError> {
        let branch = task.branch.as_deref().unwrap_or(DEFAULT_BRANCH);
        let args = [
            "exec".to_owned(),
            format!("--env={}", task.environment),
            format!("--attempts={}", task.attempts),
            format!("--branch={branch}"),
            "-".to_owned(),
        ];
        let call = Call { command: "exec", environment: Some(&task.environment), ..Call::default() };
        let printed = self.run(&call, &args, &task.prompt)?;
        self.parsed(&call, &printed, printed.status.success(), parse::submitted)
    }

    /// One page of the tasks, the newest first; `limit` is at most 20. `environment` is an id or a label.
    pub fn list(
        &self,
        environment: Option<&str>,
        limit: u8,
        cursor: Option<&str>,
    ) -> Result<HostedPage, CloudError> {
        let mut args = vec!["list".to_owned(), "--json".to_owned(), format!("--limit={limit}")];
        args.extend(environment.map(|environment| format!("--env={environment}")));
        args.extend(cursor.map(|cursor| format!("--cursor={cursor}")));
        let call = Call { command: "list", environment, ..Call::default() };
        let printed = self.run(&call, &args, "")?;
        self.parsed(&call, &printed, printed.status.success(), parse::page)
    }

    /// The state of one task. Codex exits with 1 for each state but `READY`, so the output decides.
    pub fn status(&self, id: &str) -> Result<HostedStatus, CloudError> {
        let call = Call { command: "status", id, ..Call::default() };
        self.check_id(&call)?;
        let printed = self.run(&call, &["status".to_owned(), id.to_owned()], "")?;
        let has_state = printed.status.code() == Some(1) && !printed.stdout.is_empty();
        self.parsed(&call, &printed, has_state || printed.status.success(), parse::status)
    }

    /// The diff of one attempt, by default of the first; `None` if it has none, or none yet. The text is what
    /// the backend sent, whether it is a diff or not.
    pub fn diff(&self, id: &str, attempt: Option<u8>) -> Result<Option<String>, CloudError> {
        let call = Call { command: "diff", id, attempt: attempt.unwrap_or(1), ..Call::default() };
        self.check_id(&call)?;
        let mut args = vec!["diff".to_owned()];
        args.extend(attempt.map(|attempt| format!("--attempt={attempt}")));
        args.push(id.to_owned());
        let printed = self.run(&call, &args, "")?;
        if !printed.status.success() && failure(&printed) == Failure::NoDiff {
            return Ok(None);
        }
        let text = self.parsed(&call, &printed, printed.status.success(), |text| Ok(text.to_owned()))?;
        Ok((!text.trim().is_empty()).then_some(text))
    }

    fn check_id(&self, call: &Call<'_>) -> Result<(), CloudError> {
        if parse::is_task_id(call.id) {
            return Ok(());
        }
        let output = format!("{:?} is not the id of a hosted task", call.id);
        Err(CloudError::Refused { command: call.command, output })
    }

    fn run(&self, call: &Call<'_>, args: &[String], input: &str) -> Result<Finished, CloudError> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let command = call.command;
        let printed = self.runner.run(&args, input)?;
        match printed.end {
            End::Exited => Ok(printed),
            End::TimedOut | End::Cancelled => {
                Err(CloudError::Timeout { command, limit: self.runner.limit, output: self.shown(&printed) })
            }
            End::TooMuchOutput => {
                let problem = format!("more than {MAX_STDOUT} bytes");
                Err(CloudError::UnexpectedOutput { command, problem, output: self.shown(&printed) })
            }
        }
    }

    fn parsed<T>(
        &self,
        call: &Call<'_>,
        printed: &Finished,
        is_success: bool,
        parse: impl FnOnce(&str) -> Result<T, ParseProblem>,
    ) -> Result<T, CloudError> {
        if !is_success {
            return Err(self.error(call, printed));
        }
        let text = str::from_utf8(&printed.stdout).map_err(|error| ParseProblem(error.to_string()));
        text.and_then(parse).map_err(|ParseProblem(problem)| CloudError::UnexpectedOutput {
            command: call.command,
            problem,
            output: self.shown(printed),
        })
    }

    fn error(&self, call: &Call<'_>, printed: &Finished) -> CloudError {
        let (command, output) = (call.command, self.shown(printed));
        match (failure(printed), call.environment) {
            (Failure::NotSignedIn, _) => CloudError::NotSignedIn { output },
            (Failure::TaskNotFound, _) => CloudError::NotFound { id: call.id.to_owned() },
            (Failure::AttemptNotFound, _) => {
                CloudError::AttemptNotFound { id: call.id.to_owned(), attempt: call.attempt, output }
            }
            (Failure::EnvironmentNotFound, Some(environment)) => {
                CloudError::EnvironmentNotFound { environment: environment.to_owned(), output }
            }
            (Failure::Unreachable, _) => CloudError::Unreachable { command, output },
            (Failure::Refused, _) => CloudError::Refused { command, output },
            (Failure::Unknown | Failure::NoDiff | Failure::EnvironmentNotFound, _) => {
                CloudError::UnexpectedOutput { command, problem: printed.status.to_string(), output }
            }
        }
    }

    /// What Codex printed, errors first, shortened and without secrets.
    fn shown(&self, printed: &Finished) -> String {
        let beginning =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(64 << 10)]).into_owned();
        let text =
            [beginning(&printed.stderr), beginning(&printed.stdout)].map(|text| text.trim().to_owned());
        let text = text.join("\n");
        let text = self.redactor.redact_str(text.trim());
        match text.floor_char_boundary(MAX_SHOWN) {
            end if end < text.len() => format!("{} […]", &text[..end]),
            _ => text.into_owned(),
        }
    }
}

fn failure(printed: &Finished) -> Failure {
    classify(printed.status.code(), &String::from_utf8_lossy(&printed.stderr))
}

/// What a call is about, for its errors.
#[derive(Debug, Default)]
struct Call<'a> {
    command: &'static str,
    environment: Option<&'a str>,
    id: &'a str,
    attempt: u8,
}
