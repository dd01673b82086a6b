//! An agent that does what a script says.
//!
//! It speaks Codex's `exec --json` dialect on stdout, takes its prompt on stdin and is called with Codex's words, so
//! whoever supervises agents cannot tell it from one. It has no model: a script in JSON says what it does. People
//! without an account meet it in the demo; tests let it misbehave in every way an agent can.
//!
//! ```text
//! argv, environment ─ invocation ─▶ script ─ play, one step after the other ─▶ events, files, processes, exit
//! ```
//!
//! # Script
//!
//! ```json
//! {"about": "says hello", "steps": [
//!   {"read_stdin": "all"},
//!   {"thread_started": {}}, "turn_started",
//!   {"command": {"run": "git --version"}},
//!   {"message": "Hello."},
//!   {"turn_completed": {}}
//! ]}
//! ```
//!
//! [`Step`] documents every step; `examples/` has whole scripts. A step without settings is a word, a step with one
//! setting is `{"name": value}`, others are `{"name": {…}}`. A key or step that is not known is an error: the
//! program says where, on stderr, and ends with 2. Paths are relative to the working directory (`--cd` included);
//! `{pid}` in them is the agent's process id. After the last step the agent ends with 0, or with 1 if its last turn
//! failed, as Codex does; with 101 if nobody reads its output any more.
//!
//! Which script: `--script WHAT` as the first argument, else `SCRIPTED_AGENT_SCRIPT`, else `PROGRAM.json` beside the
//! program (under the name it was called by, or its own). `WHAT` is `demo`, `hello` or a path. The last way needs
//! nothing from the caller: link or copy the program to `codex` and put `codex.json` beside it.

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
