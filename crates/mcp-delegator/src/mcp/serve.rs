//! `serve`: run the MCP server until the client disconnects.
//!
//! It resolves flags and configuration into a tool selection and starts the stdio or HTTP transport of `mcp`.
//! Stdout belongs to the protocol; this command prints only to stderr.

use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use delegator_config::{Settings, ToolFormat, built_in_default};
use delegator_engine::wait_thread::WaitThread;
use delegator_engine::{ConnectionPool, DashboardAddress, Engine, LiveFeed, is_peer_in_task};
use delegator_fleet::DatabasePool;
use delegator_registry::make_private_path;
use rmcp::handler::server::ServerHandler;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::commands::context::Context;
use crate::commands::inputs::choices;
use crate::commands::local::agent_candidates::installed_agents;
use crate::commands::local::tasks::{TOKEN_FILE_PATH, engine};
use crate::commands::sign_in::{Scope, Sessions};
use crate::error::{AppError, ErrorCode, Problem, io_error};
use crate::mcp::api::Api;
use crate::mcp::server::Server;
use crate::mcp::tools::server_state::ServerState;
use crate::mcp::tools::toolbox::Toolbox;
use crate::mcp::transport::http::token::Token;
use crate::mcp::transport::http::{IsInTask, Listen, Listening};
use crate::mcp::transport::{http, stdio};
use crate::output::command_data::CommandData;
use crate::output::outcome::CommandOutput;
use crate::spec::{
    CommandSpec, ConfigUse, Danger, InputRules, InputType, NoInputs, RawOutput, Toolset, example,
};

fn tool_formats(_: &mut SchemaGenerator) -> Schema {
    choices(["markdown", "json"])
}

fn scopes(_: &mut SchemaGenerator) -> Schema {
    choices(Scope::NAMES)
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Serve {
    /// Address to serve HTTP on instead of stdio, as in 127.0.0.1:7777
    pub http: Option<String>,
    /// File with the bearer token for HTTP (default: http-token in the state directory, created on first use)
    #[schemars(length(min = 1, max = 4096))]
    pub token_file: Option<PathBuf>,
    /// What the token permits over HTTP: read, answer (also answer questions, send messages) or write
    #[schemars(schema_with = "scopes", extend("default" = Scope::Write.name()))]
    pub scope: Option<String>,
    /// Toolsets to serve: local, cloud, registry, worktree, extra, codex-compat
    #[schemars(extend("default" = built_in_default("toolsets")))]
    pub toolsets: Vec<String>,
    /// Serve only these tools
    #[schemars(extend("default" = null))]
    pub tools: Vec<String>,
    /// Do not serve these tools
    #[schemars(extend("default" = null))]
    pub exclude_tools: Vec<String>,
    /// Serve only read-only tools
    pub read_only: bool,
    /// Format of responses to calls without format
    #[schemars(schema_with = "tool_formats", extend("default" = built_in_default("default_format")))]
    pub default_format: Option<ToolFormat>,
    /// Prefix of the tool names
    #[schemars(
        regex(pattern = "^[A-Za-z0-9_-]{0,32}$"),
        extend("default" = built_in_default("tool_prefix"))
    )]
    pub tool_prefix: Option<String>,
    /// Declare output schemas in the tool list (with --default-format json)
    pub output_schemas: bool,
}

/// For a user who starts the server by hand.
const ON_A_TERMINAL: &str = "This is an MCP server: it reads requests from an MCP client on standard input. An MCP client starts \
    it by itself; to register it with one, run 'mcp-delegator setup CLIENT'. To try the program, run 'mcp-delegator demo'. \
    End the server with Ctrl-D.";

pub const SPEC: CommandSpec = CommandSpec {
    details: "On stdin and stdout for one client, or with --http for clients on this machine. Tasks keep running when the server exits.",
    danger: Danger::Mutating,
    toolset: Toolset::Hidden,
    open_ended: true,
    raw: RawOutput::Protocol,
    config: ConfigUse::Reported,
    failures: &[ErrorCode::PolicyBlocked, ErrorCode::PermissionDenied],
    input: InputType::with_rules::<Serve>(),
    examples: &[
        example("mcp-delegator serve", "the command that an MCP client runs"),
        example("mcp-delegator serve --http 127.0.0.1:7777", "the address and the token file, on stderr"),
    ],
    ..CommandSpec::new::<Serve, NoInputs>(&["serve"], "Serve the tools over MCP")
};

/// In the state directory, with the bearer token.
pub const TOKEN_FILE: &str = "http-token";

/// A server that ended has no data.
#[derive(Debug, Clone, Serialize)]
pub struct ServeOutput {}

impl CommandData for ServeOutput {}

impl InputRules for Serve {
    /// A token file or a scope without --http is an error: stdio does not use a token.
    fn problems(&self) -> Vec<Problem> {
        let given = [("token_file", self.token_file.is_some()), ("scope", self.scope.is_some())];
        let surplus = given.into_iter().filter(|(_, is_given)| *is_given && self.http.is_none());
        let problem = |(name, _)| {
            Problem::invalid(name, "requires http, which is not given")
                .suggest(Some("Give --http with an address, or omit this flag."))
        };
        surplus.map(problem).collect()
    }
}

pub fn run(context: &Context<'_>, input: Serve) -> Result<CommandOutput, AppError> {
    serve(context, input, |server| server)
}

/// Serves until the client closes the connection or the process ends. `wrap` may put another handler in front
/// of the server.
pub fn serve<H: ServerHandler + Clone>(
    context: &Context<'_>,
    input: Serve,
    wrap: impl FnOnce(Server) -> H,
) -> Result<CommandOutput, AppError> {
    let parse = |given: &String| http::parse_address(given, input.token_file.is_some());
    let address = input.http.as_ref().map(parse).transpose()?;
    let server = server(context, &input)?;
    let Some(address) = address else {
        if context.process.stdin_is_terminal {
            context.screen.announce(ON_A_TERMINAL);
        }
        stdio::serve(wrap(server))?;
        return Ok(CommandOutput::done(ServeOutput {}));
    };
    let path = match (&input.token_file, &context.state_dir) {
        (Some(given), _) => context.process.current_dir.join(given),
        (None, Some(dir)) => dir.join(TOKEN_FILE),
        (None, None) => return Err(no_state_dir()),
    };
    let token = Token::load_or_create(&path)?;
    if let (Some(_), Some(dir)) = (&input.token_file, &context.state_dir) {
        let recorded = make_private_path(dir)
            .and_then(|()| std::fs::write(dir.join(TOKEN_FILE_PATH), path.as_os_str().as_bytes()));
        recorded.map_err(|error| io_error("Recording the path of the token file", &error))?;
    }
    context.screen.announce_always(&format!("The bearer token is in {}", path.display()));
    let scope = scope(&input);
    // On other addresses only `dashboard` lets browsers sign in, which wants TLS for that.
    let has_pages = address.ip().is_loopback() && scope == Scope::Write;
    let own_address = match context.state_dir.as_deref().filter(|_| has_pages) {
        Some(state_dir) => Some(own_address(state_dir)?),
        None => None,
    };
    let listen = Listen { address, token, scope, tls: None, public_name: None, has_pages, own_address };
    let handler = wrap(server.clone());
    over_http(context, server, handler, listen, |Listening { address, pages_address }| {
        context.screen.announce_always(&format!("Serving on http://{address}/mcp"));
        Ok(format!("http://{pages_address}"))
    })?;
    Ok(CommandOutput::done(ServeOutput {}))
}

/// The loopback address that only browsers of this state directory use.
pub fn own_address(state_dir: &Path) -> Result<Ipv4Addr, AppError> {
    let found = Sessions::new(state_dir).own_address();
    found.map_err(|error| io_error("Choosing the address of the dashboard", &error))
}

fn no_state_dir() -> AppError {
    AppError::new(ErrorCode::ConfigInvalid, "The state directory is unknown.")
}

pub fn server(context: &Context<'_>, input: &Serve) -> Result<Server, AppError> {
    let selection = tool_selection(context, input);
    let mut toolbox = Toolbox::select(context.commands.catalog, &selection)?;
    toolbox.settings.agents = installed_agents(context);
    if selection.output_schemas && selection.default_format != ToolFormat::Json {
        let problem = "describes JSON, but the default format is Markdown";
        let problem = Problem::invalid("output_schemas", problem);
        return Err(problem.suggest(Some("Serve with --default-format json.")).into());
    }
    let state = ServerState {
        commands: context.commands,
        process: context.process.clone(),
        config: context.config.clone(),
        config_error: context.config_error.cloned(),
        state_dir: context.state_dir.clone(),
        printer: Arc::clone(context.screen.printer),
        toolbox,
        connections: ConnectionPool::of_service(),
        fleet: DatabasePool::default(),
    };
    for warning in context.config_error.iter().flat_map(|error| error.ignored_values()) {
        context.screen.announce_always(&format!("warning: {}", warning.message));
    }
    let waits = WaitThread::start(engine(context)?.with_connections(connections(context, &state)))?;
    Ok(Server::new(state, waits))
}

/// The connections of the server, for what reads besides its calls.
fn connections(context: &Context<'_>, state: &ServerState) -> ConnectionPool {
    state.connections.clone().with_redactor(context.screen.printer.redactor().clone())
}

/// Serves MCP by `handler`, the API and the pages. `on_listening` returns the address that a browser opens, which is
/// recorded unless another server of this state directory is.
pub fn over_http(
    context: &Context<'_>,
    server: Server,
    handler: impl ServerHandler + Clone,
    listen: Listen,
    on_listening: impl FnOnce(Listening) -> Result<String, AppError>,
) -> Result<(), AppError> {
    let state_dir = context.state_dir.as_deref().ok_or_else(no_state_dir)?;
    let connections = connections(context, &server.state);
    let live = LiveFeed::new(engine(context)?.with_connections(connections))?;
    let api = Api::new(server.clone(), live, state_dir);
    let is_in_task = is_in_task(engine(context)?);
    let (mut recorded, has_pages) = (None, listen.has_pages);
    http::serve(handler, (server, api), &Sessions::new(state_dir), listen, is_in_task, |address| {
        let url = on_listening(address)?;
        if !has_pages {
            return Ok(());
        }
        let record = DashboardAddress::record(state_dir, &url);
        recorded = record.map_err(|error| io_error("Recording the address", &error))?;
        Ok(())
    })
}

/// A client whose task cannot be determined counts as belonging to one.
fn is_in_task(engine: Engine) -> IsInTask {
    Arc::new(move |peer, own| {
        let found = is_peer_in_task(&engine, peer, own);
        found.inspect_err(|error| tracing::warn!(%error, "could not identify a client")).unwrap_or(true)
    })
}

/// The configuration with the tool selection of the flags.
fn tool_selection(context: &Context<'_>, input: &Serve) -> Settings {
    let mut settings = context.config.settings.clone();
    settings.tool_prefix = input.tool_prefix.clone().unwrap_or(settings.tool_prefix);
    for (given, names) in [
        (&input.toolsets, &mut settings.toolsets),
        (&input.tools, &mut settings.tools),
        (&input.exclude_tools, &mut settings.exclude_tools),
    ] {
        if !given.is_empty() {
            *names = split_names(given);
        }
    }
    // A tool that changes nothing is the only one that each scope permits.
    settings.read_only |= input.read_only || scope(input) < Scope::Write;
    settings.output_schemas |= input.output_schemas;
    settings.default_format = input.default_format.unwrap_or(settings.default_format);
    settings
}

fn scope(input: &Serve) -> Scope {
    input.scope.as_deref().map_or(Scope::Write, |name| Scope::from_name(name).unwrap_or(Scope::Read))
}

/// Splits comma-separated names of a repeatable flag.
fn split_names(given: &[String]) -> Vec<String> {
    let names = given.iter().flat_map(|item| item.split(',')).map(str::trim);
    names.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
