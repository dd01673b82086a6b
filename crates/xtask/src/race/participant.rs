//! A participant: a program, how it is started, its open sessions and its results so far.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::arena::{Arena, INSTANT, Place, REPLY};
use super::peers::{Background, Inserted, OUR_TOOLS, Peer, ToolCall, Tools};
use super::reaper::REAP;
use super::results::{Entry, Origin};
use super::session::{Session, ToolResponse, excerpt};
use crate::error::LoadError;

/// Tasks that this program may run at once: as many as the race starts at once.
pub(crate) const SLOTS: usize = 20;

/// Before the first sample of a session.
const WARM_UP_TASKS: usize = 3;

/// For a task of a peer that has to be polled.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Program, leading arguments and additional environment of a server.
#[derive(Debug, Clone)]
struct Launch {
    program: PathBuf,
    args: Vec<&'static str>,
    environment: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) struct Participant {
    pub(crate) entry: Entry,
    pub(crate) tools: Tools,
    pub(crate) dir: PathBuf,
    launch: Launch,
    git: Option<Session>,
    plain: Option<Session>,
}

impl Participant {
    /// This program.
    pub(crate) fn ours(arena: &Arena, label: &str, program: &Path) -> Result<Participant, LoadError> {
        let dir = create_dirs(arena, label)?;
        let version = super::arena::run_to_end(
            arena.clean_command(program, &dir).arg("--version"),
            "mcp-delegator --version",
        )?;
        // Cargo builds into a directory with the name of the profile.
        let profile =
            program.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let environment = vec![
            ("MCP_DELEGATOR_HOME", dir.join("state").display().to_string()),
            ("MCP_DELEGATOR_MAX_CONCURRENT", SLOTS.to_string()),
        ];
        let entry = Entry {
            name: label.to_owned(),
            version: version.split_whitespace().last().unwrap_or_default().to_owned(),
            origin: Origin::Ours { profile: profile.unwrap_or_default() },
            agent: "codex".to_owned(),
            has_background_tasks: true,
            tools: None,
            problem: None,
            outcomes: Default::default(),
        };
        let launch = Launch { program: program.to_owned(), args: vec!["serve"], environment };
        Ok(Participant { entry, tools: OUR_TOOLS, dir, launch, git: None, plain: None })
    }

    /// A peer with its command, or with the reason why it has none.
    pub(crate) fn peer(
        arena: &Arena,
        peer: &Peer,
        installed: Result<PathBuf, LoadError>,
    ) -> Result<Participant, LoadError> {
        let dir = create_dirs(arena, peer.name)?;
        let problem = installed.as_ref().err().map(|error| format!("not installed: {error}"));
        let environment = peer.environment.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let entry = Entry {
            name: peer.name.to_owned(),
            version: peer.version.to_owned(),
            origin: peer.registry.origin(),
            agent: peer.agent.to_owned(),
            has_background_tasks: peer.tools.background.is_some(),
            tools: None,
            problem,
            outcomes: Default::default(),
        };
        let launch = Launch { program: installed.unwrap_or_default(), args: Vec::new(), environment };
        Ok(Participant { entry, tools: peer.tools, dir, launch, git: None, plain: None })
    }

    fn server(&self, arena: &Arena, place: Place) -> Command {
        let mut command = arena.clean_command(&self.launch.program, &self.dir);
        self.prepare(&mut command, arena, place);
        command.args(&self.launch.args);
        command
    }

    /// The same below a reaper.
    fn reaped_server(&self, arena: &Arena, place: Place) -> Result<Command, LoadError> {
        let reaper = std::env::current_exe().map_err(LoadError::io("find this program"))?;
        let mut command = arena.clean_command(&reaper, &self.dir);
        self.prepare(&mut command, arena, place);
        command.arg(REAP).arg(&self.launch.program).args(&self.launch.args);
        Ok(command)
    }

    /// A command-line call of this program.
    pub(crate) fn command_line(&self, arena: &Arena, place: Place) -> Command {
        let mut command = arena.clean_command(&self.launch.program, &self.dir);
        self.prepare(&mut command, arena, place);
        command
    }

    fn prepare(&self, command: &mut Command, arena: &Arena, place: Place) {
        command.current_dir(arena.place(place));
        command.envs(self.launch.environment.iter().map(|(name, value)| (name, value)));
    }

    fn stderr(&self) -> PathBuf {
        self.dir.join("stderr.log")
    }

    /// Starts a server. Also returns the milliseconds until it had answered `initialize`.
    pub(crate) fn open(&self, arena: &Arena, place: Place) -> Result<(Session, f64), LoadError> {
        Session::open(self.server(arena, place), &self.stderr())
    }

    /// Starts a server below a reaper, and runs one task.
    pub(crate) fn open_reaped(&self, arena: &Arena, place: Place) -> Result<Session, LoadError> {
        let (mut session, _) = Session::open(self.reaped_server(arena, place)?, &self.stderr())?;
        self.run_task(&mut session, arena, place, INSTANT)?;
        Ok(session)
    }

    /// The open session of a directory. A new one runs some tasks first, so that caches and compilers are warm.
    pub(crate) fn session(&mut self, arena: &Arena, place: Place) -> Result<&mut Session, LoadError> {
        let open = match place {
            Place::Git => self.git.take(),
            Place::Plain => self.plain.take(),
        };
        let session = match open {
            Some(session) => session,
            None => {
                let (mut session, _) = self.open(arena, place)?;
                for _ in 0..WARM_UP_TASKS {
                    self.run_task(&mut session, arena, place, INSTANT)?;
                }
                session
            }
        };
        Ok(match place {
            Place::Git => self.git.insert(session),
            Place::Plain => self.plain.insert(session),
        })
    }

    /// Ends the open sessions and every process that is left.
    pub(crate) fn close(&mut self, arena: &Arena) {
        self.git.take().into_iter().chain(self.plain.take()).for_each(Session::close);
        arena.kill_processes(&self.dir);
    }

    /// Runs a task with one call.
    pub(crate) fn run_task(
        &self,
        session: &mut Session,
        arena: &Arena,
        place: Place,
        prompt: &str,
    ) -> Result<ToolResponse, LoadError> {
        call_with_task(session, self.tools.run, arena, place, prompt).and_then(check_reply)
    }
}

/// Starts a task in the background. Returns its id.
pub(crate) fn start_background(
    session: &mut Session,
    background: Background,
    arena: &Arena,
    place: Place,
    prompt: &str,
) -> Result<String, LoadError> {
    let response = call_with_task(session, background.start, arena, place, prompt)?;
    task_id(background, &response)
}

/// The id of a task in the response to its start.
pub(crate) fn task_id(background: Background, response: &ToolResponse) -> Result<String, LoadError> {
    let text = response.text()?;
    let after = text.split_once(background.id_after).map(|(_, rest)| rest);
    let id = after.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
    id.ok_or_else(|| LoadError::Refused { response: excerpt(&text) })
}

/// Waits for a task in the background; calls again while the response is that it still runs.
pub(crate) fn wait_background(
    session: &mut Session,
    background: Background,
    id: &str,
) -> Result<ToolResponse, LoadError> {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while Instant::now() < deadline {
        let response = session.call(background.wait, Inserted { task_id: id, ..Inserted::default() })?;
        let text = response.text()?;
        if !background.running.is_some_and(|running| text.contains(running)) {
            return check_reply(response);
        }
    }
    Err(LoadError::OutOfTime { doing: "waiting for a task".to_owned() })
}

fn call_with_task(
    session: &mut Session,
    call: ToolCall,
    arena: &Arena,
    place: Place,
    prompt: &str,
) -> Result<ToolResponse, LoadError> {
    let directory = arena.place(place).display().to_string();
    session.call(call, Inserted { prompt, directory: &directory, task_id: "" })
}

/// A result without the agent's reply is a failure.
pub(crate) fn check_reply(response: ToolResponse) -> Result<ToolResponse, LoadError> {
    let text = response.text()?;
    match text.contains(REPLY) {
        true => Ok(response),
        false => Err(LoadError::Refused { response: excerpt(&text) }),
    }
}

fn create_dirs(arena: &Arena, name: &str) -> Result<PathBuf, LoadError> {
    let dir = arena.participant_dir(name);
    for folder in ["home", "tmp"] {
        fs::create_dir_all(dir.join(folder)).map_err(LoadError::io("create a participant's directory"))?;
    }
    Ok(dir)
}
