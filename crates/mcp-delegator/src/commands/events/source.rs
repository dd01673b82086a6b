//! Opens a transcript: of a task, from a file or from standard input.
//!
//! On the command line the user may name any of them. Over MCP a model names the source, so only a task id or
//! a regular file below `allowed_roots` is accepted, and never standard input, which carries the protocol.

use std::fs::File;
use std::io::{self, Read, Take};

use delegator_domain::task::TaskIdPrefix;
use delegator_engine::dialect_of;
use delegator_registry::TaskFile;
use delegator_transcript::{AssumedThread, Dialect};

use crate::commands::prelude::*;
use crate::error::engine::file_problem;
use crate::output::data::failure::EndedWriter;

/// Size of one read; large enough that system calls do not dominate.
const CHUNK: usize = 256 * 1024;

const SOURCE: &str = "source";

#[derive(Debug)]
pub enum Source {
    Stdin,
    File { file: File, name: String, task: Option<(Engine, TaskId)> },
    BoundedFile { file: Take<File>, name: String },
}

impl Source {
    /// Opens the named source. Without a name: standard input, unless it is a terminal.
    pub fn open(context: &Context<'_>, named: Option<&str>) -> Result<Source, AppError> {
        if context.surface == Surface::Server {
            return Source::open_for_tool_call(context, named);
        }
        let stdin_is_terminal = context.process.stdin_is_terminal;
        match named {
            Some("-") => Ok(Source::Stdin),
            None if stdin_is_terminal => Err(AppError::new(
                ErrorCode::MissingArgument,
                "No transcript was given, and standard input is a terminal.",
            )
            .suggest("Give a task id or a file, or - for standard input.")),
            None => Ok(Source::Stdin),
            Some(name) if name.contains('/') || Path::new(name).exists() => {
                open_any_file(name).map(|file| Source::File { file, name: name.to_owned(), task: None })
            }
            Some(name) if looks_like_task_id(name) => open_task_events(context, name),
            Some(name) => Source::open_by_short_id(context, name),
        }
    }

    /// Opens the events of a task whose id is given without `T-local-`. A name that is no such id was meant
    /// as a file.
    fn open_by_short_id(context: &Context<'_>, name: &str) -> Result<Source, AppError> {
        let is_prefix = name.parse::<TaskIdPrefix>().is_ok();
        let found = if is_prefix { open_task_events(context, name).map_err(Some) } else { Err(None) };
        found.map_err(|error| match error {
            Some(error) if error.code != ErrorCode::TaskNotFound => error,
            _ => no_such_file(name).suggest("Give the path of a transcript or a task id."),
        })
    }

    fn open_for_tool_call(context: &Context<'_>, named: Option<&str>) -> Result<Source, AppError> {
        let refuse = |code, problem: &str| {
            let suggestion = "Give a task id, or the absolute path of a transcript file.";
            AppError::from(Problem::new(code, SOURCE, problem).suggest(Some(suggestion)))
        };
        match named {
            None => Err(refuse(ErrorCode::MissingArgument, "is missing")),
            Some("-") => Err(refuse(ErrorCode::InvalidValue, "cannot be standard input in a tool call")),
            Some(name) if looks_like_task_id(name) => open_task_events(context, name),
            Some(name) => {
                let file = open_allowed_file(context, SOURCE, Path::new(name))?;
                Ok(Source::BoundedFile { file, name: name.to_owned() })
            }
        }
    }

    pub fn dialect(&self, context: &Context<'_>) -> Result<Option<Dialect>, AppError> {
        match self {
            Source::File { task: Some((engine, id)), .. } => task_dialect(context, engine, id),
            _ => Ok(None),
        }
    }

    /// The thread that the events belong to, if the lines do not show it.
    pub fn thread(&self) -> Result<AssumedThread, AppError> {
        let Source::File { task: Some((engine, id)), .. } = self else { return Ok(AssumedThread::Derived) };
        let task = engine.results().task(id)?;
        Ok(task.thread_id.or(task.resumed_thread).map_or(AssumedThread::Derived, AssumedThread::Known))
    }

    pub fn ended_writer(&self) -> Result<Option<EndedWriter>, AppError> {
        let Source::File { task: Some((engine, id)), .. } = self else { return Ok(None) };
        Ok(EndedWriter::of(&engine.results().recorded_task(id)?))
    }

    pub fn size(&self) -> Option<u64> {
        match self {
            Source::Stdin => None,
            Source::File { file, .. } => {
                file.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len())
            }
            Source::BoundedFile { file, .. } => Some(file.limit()),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Source::Stdin => "standard input",
            Source::File { name, .. } | Source::BoundedFile { name, .. } => name,
        }
    }

    /// Reads to the end in chunks; `take` returns whether to continue.
    pub fn read_all(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<bool, AppError>,
    ) -> Result<(), AppError> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match self {
                Source::Stdin => io::stdin().lock().read(&mut chunk),
                Source::File { file, .. } => file.read(&mut chunk),
                Source::BoundedFile { file, .. } => file.read(&mut chunk),
            };
            match read {
                Ok(0) => return Ok(()),
                Ok(count) if !take(&chunk[..count])? => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error(&format!("Reading {}", self.name()), &error)),
            }
        }
    }
}

/// The dialect of a task's events, if the lines do not show it. That of a task without a record is known as
/// long as its agent is configured.
pub fn task_dialect(
    context: &Context<'_>,
    engine: &Engine,
    id: &TaskId,
) -> Result<Option<Dialect>, AppError> {
    if let Some(record) = engine.results().files(id)?.record {
        return Ok(record.report.dialect.filter(|dialect| *dialect == Dialect::Plain));
    }
    let agent = context.config.agent(&engine.results().task(id)?.agent);
    Ok(agent.and_then(|agent| dialect_of(agent.protocol)))
}

fn open_task_events(context: &Context<'_>, given: &str) -> Result<Source, AppError> {
    let engine = engine(context)?;
    let id = engine.results().resolve(given)?;
    let recorded = engine.results().recorded_task(&id)?;
    engine.remote().check_events(&recorded)?;
    // Those of an unfinished task are complete only after its end was recorded.
    let task = if recorded.remote.is_some() { engine.results().task(&id)? } else { recorded };
    engine.remote().fetch_events(&task)?;
    let unknown = || AppError::from(EngineError::UnknownTask { given: given.to_owned() });
    let path = engine.results().task_dir(&id)?.ok_or_else(unknown)?.file(TaskFile::Events);
    let name = path.display().to_string();
    // A task that has not started has no events.
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => File::open("/dev/null"),
        opened => opened,
    };
    let file = file.map_err(|error| io_error("Opening the task's events", &error))?;
    Ok(Source::File { file, name, task: Some((engine, id)) })
}

fn no_such_file(name: &str) -> AppError {
    AppError::new(ErrorCode::NotFound, format!("{name}: there is no such file")).context("file", name)
}

fn open_any_file(name: &str) -> Result<File, AppError> {
    let refuse =
        |code, message: String| AppError::new(code, format!("{name}: {message}")).context("file", name);
    match File::open(name) {
        Ok(_) if Path::new(name).is_dir() => {
            Err(refuse(ErrorCode::InvalidValue, "this is a directory, not a transcript".into()))
        }
        Ok(file) => Ok(file),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => no_such_file(name),
            io::ErrorKind::PermissionDenied => refuse(ErrorCode::PermissionDenied, error.to_string()),
            _ => refuse(ErrorCode::InvalidValue, error.to_string()),
        }),
    }
}

/// Opens a file named in a tool call. It must be a regular file below `allowed_roots` and outside the state
/// directory, and not the server's own standard input. Only the bytes that it has now can be read: reading on
/// in a file that grows for ever, or in a regular file of the kernel that blocks (`/proc/kmsg`, `trace_pipe`;
/// size 0), would never end.
pub fn open_allowed_file(
    context: &Context<'_>,
    field: &'static str,
    path: &Path,
) -> Result<Take<File>, AppError> {
    if path.is_relative() {
        let problem = Problem::invalid(field, "must be an absolute path");
        return Err(problem.value(path.display().to_string().into()).into());
    }
    let roots = &context.config.settings.allowed_roots;
    let (file, _) = delegator_engine::open_allowed_file(path, roots, context.state_dir.as_deref())
        .map_err(|problem| file_problem(field, path, &problem))?;
    if is_standard_input(&file) {
        let problem = Problem::invalid(field, "is the server's standard input");
        return Err(problem.value(path.display().to_string().into()).into());
    }
    let size =
        file.metadata().map_err(|error| io_error(&format!("Reading {}", path.display()), &error))?.len();
    Ok(file.take(size))
}

fn is_standard_input(file: &File) -> bool {
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let stdin = rustix::fs::fstat(io::stdin()).map(identity);
    stdin.is_ok() && stdin == rustix::fs::fstat(file).map(identity)
}

fn looks_like_task_id(name: &str) -> bool {
    name.starts_with("T-local-") || name.starts_with("T-cloud-")
}
