//! A scripted agent: it does what a JSON script defines.
//!
//! It writes Codex exec events to stdout, reads its prompt from stdin and accepts the arguments of Codex, so that a
//! supervisor cannot distinguish it from Codex. It has no model. The demo uses it for users without an account;
//! tests make it misbehave in every way an agent can.
//!
//! ```text
//! argv, environment ─ invocation ─▶ script ─ runner, one step after the other ─▶ events, files, processes, exit
//! ```
//!
//! # Script
//!
//! ```json
//! {"about": "greets", "steps": [
//!   {"read_stdin": "all"},
//!   {"thread_started": {}}, "turn_started",
//!   {"command": {"run": "git --version"}},
//!   {"message": "Hello."},
//!   {"turn_completed": {}}
//! ]}
//! ```
//!
//! [`Step`] documents every step; `examples/` contains whole scripts. A step without settings is a word, a step
//! with one setting is `{"name": value}`, others are `{"name": {…}}`. An unknown key or step is an error: the
//! program reports its position on stderr and exits with 2. Paths are relative to the working directory (`--cd`
//! included); `{pid}` in them is the process id of the agent. After the last step the agent exits with 0, or with 1
//! if its last turn failed, as Codex does; with 101 if its output is closed.
//!
//! The script is selected by `--script WHAT` as the first argument, else by `SCRIPTED_AGENT_SCRIPT`, else it is
//! `PROGRAM.json` next to the program (under the name it was called by, or its own). `WHAT` is `demo`, `hello` or a
//! path. The last option needs nothing from the caller: link or copy the program to `codex` and put `codex.json`
//! next to it.

pub mod demo;
mod hello;
mod invocation;
mod process_context;
mod runner;
mod script;

pub use hello::script as hello;
pub use invocation::{InvocationError, start};
pub use process_context::ProcessContext;
pub use runner::run;
pub use script::{
    BigLine, ChildProcess, ChildWork, Choice, Command, Events, Flood, LineShape, PlanSteps, ProcessTree,
    Program, RawBytes, Record, Repeat, Replacement, Script, ScriptError, Session, SignalName, StdinRead,
    Step, Stream, ThreadStarted, Trap, Usage, WrittenFile,
};
