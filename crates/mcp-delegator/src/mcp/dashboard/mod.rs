//! `dashboard`: serve the pages to the user's browser, and sign it in.
//!
//! A server of this state directory that runs already is used: the command then only makes a link to it.

pub mod sessions;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use delegator_engine::DashboardAddress;
use http::Uri;
use http::uri::Scheme;
use jiff::Timestamp;
use schemars::{Schema, SchemaGenerator};

use crate::commands::inputs::choices;
use crate::commands::prelude::*;
use crate::commands::sign_in::{CODE_LIFETIME, Scope, page_of, qr_code, sign_in_link};
use crate::mcp::serve::{self, Serve, ServeOutput, own_address};
use crate::mcp::transport::http::token::Token;
use crate::mcp::transport::http::{Listen, Listening, load_tls};

/// A fixed port, so that the pages of a browser find the server again after its restart.
const DEFAULT_PORT: u16 = 7788;

fn scopes(_: &mut SchemaGenerator) -> Schema {
    choices(Scope::NAMES)
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dashboard {
    /// Open the page of this task or group
    #[schemars(extend("x-markers" = [Marker::Positional]))]
    pub task_id: Option<TaskRef>,
    /// Port to serve on; 0 for any that is free
    #[schemars(extend("default" = DEFAULT_PORT))]
    pub port: Option<u16>,
    /// Address to serve on, for other devices; needs TLS or --insecure-http unless it is a loopback address
    #[schemars(length(min = 1, max = 64), extend("default" = "127.0.0.1"))]
    pub host: Option<String>,
    /// File with the certificate to serve with, in PEM form
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Path]))]
    pub tls_cert: Option<PathBuf>,
    /// File with the key of the certificate, in PEM form
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Path]))]
    pub tls_key: Option<PathBuf>,
    /// Serve other devices without TLS: all who can read the network can then act as you
    pub insecure_http: bool,
    /// Address that browsers use if it is another one: of a proxy, a tunnel, or with the name in the certificate
    #[schemars(length(min = 1, max = 300))]
    pub public_url: Option<String>,
    /// Show a QR code that signs another device in
    pub pair: bool,
    /// What the link permits: read, answer (also answer questions, send messages) or write (default: write; with --pair: answer)
    #[schemars(schema_with = "scopes", extend("default" = null))]
    pub scope: Option<String>,
    /// Do not open a browser
    pub no_open: bool,
}

/// The link to a server that runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DashboardLink {
    pub url: String,
    /// Signs one browser in, once.
    pub link: String,
    pub scope: &'static str,
    /// When the link expires.
    pub expires_at: UtcTime,
    /// Whether a browser was started with it.
    pub is_opened: bool,
    #[serde(skip)]
    qr_code: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Serves the pages on this machine until it is stopped with Ctrl-C, opens a browser and signs it in. If the dashboard of \
              this state directory runs already, makes a link to it. A link is valid for 60 seconds and for one browser. Tasks keep running \
              when the dashboard ends.",
    shape: Shape::Show("dashboard"),
    open_ended: true,
    toolset: Toolset::Hidden,
    config: ConfigUse::Reported,
    failures: &[ErrorCode::PolicyBlocked, ErrorCode::PermissionDenied, ErrorCode::AlreadyExists],
    examples: &[
        example("mcp-delegator dashboard", "the list of tasks, in a browser"),
        example("mcp-delegator dashboard T-local-…", "the page of a task"),
        example("mcp-delegator dashboard --pair", "a QR code that signs a phone in, to look and to answer"),
    ],
    input: InputType::with_rules::<Dashboard>(),
    ..CommandSpec::new::<Dashboard, DashboardLink>(
        &["dashboard"],
        "Look at tasks and act on them in a browser",
    )
};

impl InputRules for Dashboard {
    fn problems(&self) -> Vec<Problem> {
        let address = self.host.as_deref().map(str::parse::<IpAddr>);
        let is_open = matches!(&address, Some(Ok(address)) if !address.is_loopback());
        let has_tls = self.tls_cert.is_some() && self.tls_key.is_some();
        let host = match address {
            Some(Err(_)) => Some(
                Problem::invalid("host", "is not an address")
                    .suggest(Some("Give for example 127.0.0.1 or 0.0.0.0.")),
            ),
            _ if is_open && !has_tls && !self.insecure_http => {
                let message = "can be reached from other machines, which needs a certificate";
                let advice = "Give --tls-cert and --tls-key, or --insecure-http to serve without encryption.";
                Some(Problem::new(ErrorCode::PolicyBlocked, "host", message).suggest(Some(advice)))
            }
            _ => None,
        };
        let alone = |name: &str, other: &str, is_alone: bool| {
            is_alone.then(|| Problem::invalid(name, format!("needs {{input:{other}}}")))
        };
        let public = self.public_url.as_deref().and_then(|url| match public_name(url) {
            None => Some(
                Problem::invalid("public_url", "is not the address of a host")
                    .value(url.into())
                    .suggest(Some("Give for example https://box.example.ts.net, without a path.")),
            ),
            Some((_, scheme)) if scheme == Scheme::HTTP && !is_local(url) && !self.insecure_http => {
                let message = "names another machine without encryption";
                let advice = "Give an address with https, or --insecure-http to do without encryption.";
                Some(Problem::new(ErrorCode::PolicyBlocked, "public_url", message).suggest(Some(advice)))
            }
            Some(_) => None,
        });
        let cert = alone("tls_cert", "tls_key", self.tls_cert.is_some() && self.tls_key.is_none());
        let key = alone("tls_key", "tls_cert", self.tls_key.is_some() && self.tls_cert.is_none());
        [host, public, cert, key].into_iter().flatten().collect()
    }
}

/// The host and the scheme of a public address.
fn public_name(url: &str) -> Option<(String, Scheme)> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme().filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme))?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    (matches!(uri.path(), "" | "/") && uri.query().is_none()).then(|| (host.to_owned(), scheme.clone()))
}

pub fn run(context: &Context<'_>, input: Dashboard) -> Result<CommandOutput, AppError> {
    let unknown = || AppError::new(ErrorCode::ConfigInvalid, "The state directory is unknown.");
    let state_dir = context.state_dir.clone().ok_or_else(unknown)?;
    let page = |id| engine(context).and_then(|engine| page_of(&engine, id));
    let page = input.task_id.as_ref().map(page).transpose()?;
    let links = Links { context, input: &input, state_dir: &state_dir, page };
    let address = DashboardAddress::read(&state_dir);
    if let Some(url) = address.map_err(|error| io_error("Reading the address", &error))? {
        links.refuse_other_address(&url)?;
        return Ok(CommandOutput::done(links.create(&url)?));
    }
    serve_pages(&links)?;
    Ok(CommandOutput::done(ServeOutput {}))
}

struct Links<'a> {
    context: &'a Context<'a>,
    input: &'a Dashboard,
    state_dir: &'a Path,
    page: Option<String>,
}

impl Links<'_> {
    fn refuse_other_address(&self, url: &str) -> Result<(), AppError> {
        let Dashboard { port, host, tls_cert, public_url, .. } = self.input;
        let is_other = port.is_some() || host.is_some() || tls_cert.is_some() || public_url.is_some();
        if !is_other {
            return Ok(());
        }
        let message = format!("A dashboard of this state directory runs already, on {url}.");
        let advice = "Leave out the address to get a link to it, or stop it first.";
        Err(AppError::new(ErrorCode::AlreadyExists, message).context("url", url).suggest(advice))
    }

    fn create(&self, url: &str) -> Result<DashboardLink, AppError> {
        let given = self.input.scope.as_deref().and_then(Scope::from_name);
        let scope = given.unwrap_or(if self.input.pair { Scope::Answer } else { Scope::Write });
        let opens = !self.input.no_open && !self.input.pair;
        let link = sign_in_link(self.context, url, self.page.as_deref(), (scope, opens))?;
        let lifetime_ms = i64::try_from(CODE_LIFETIME.as_millis()).unwrap_or(i64::MAX);
        Ok(DashboardLink {
            url: url.to_owned(),
            qr_code: self.input.pair.then(|| qr_code(&link.url)).flatten(),
            scope: scope.name(),
            expires_at: UtcTime::from_ms(Timestamp::now().as_millisecond().saturating_add(lifetime_ms)),
            is_opened: link.is_opened,
            link: link.url,
        })
    }
}

fn serve_pages(links: &Links<'_>) -> Result<(), AppError> {
    let Links { context, input, state_dir, .. } = *links;
    let tls = match (&input.tls_cert, &input.tls_key) {
        (Some(certificate), Some(key)) => Some(load_tls(certificate, key)?),
        _ => None,
    };
    let given = input.host.as_deref().and_then(|host| host.parse().ok());
    let address =
        SocketAddr::new(given.unwrap_or(Ipv4Addr::LOCALHOST.into()), input.port.unwrap_or(DEFAULT_PORT));
    let scheme = if tls.is_some() { "https" } else { "http" };
    let token = Token::load_or_create(&state_dir.join(serve::TOKEN_FILE))?;
    let own_address = if given.is_none() { Some(own_address(state_dir)?) } else { None };
    let listen = Listen {
        address,
        scope: Scope::Write,
        tls,
        public_name: input.public_url.as_deref().and_then(public_name),
        has_pages: true,
        own_address,
        token,
    };
    let server = serve::server(context, &Serve::default())?;
    let handler = server.clone();
    serve::over_http(context, server, handler, listen, |Listening { address, pages_address }| {
        let own = || format!("{scheme}://{}", reachable(pages_address));
        let public = input.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned());
        let url = public.unwrap_or_else(own);
        if input.public_url.is_some() {
            context.screen.announce_always(&format!("Serving on {scheme}://{address}"));
        }
        let link = links.create(&url)?;
        for line in link.lines() {
            context.screen.announce_always(&line);
        }
        Ok(url)
    })
}

/// An address that a browser can open: of a server on all addresses, that which other machines use.
fn reachable(address: SocketAddr) -> SocketAddr {
    // Nothing is sent: this only asks for the route to some other machine.
    let own = || {
        let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("192.0.2.1:9").ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    if !address.ip().is_unspecified() {
        return address;
    }
    SocketAddr::new(own().unwrap_or(Ipv4Addr::LOCALHOST.into()), address.port())
}

/// Whether only this machine can open the address.
fn is_local(url: &str) -> bool {
    let Some((host, _)) = public_name(url) else { return false };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

const ONLY_HERE: &str = "Only this machine can open this address. For a phone, serve with --host and a certificate, or through a \
    tunnel with --public-url: see docs/dashboard.md.";

impl DashboardLink {
    /// For a person who waits for the browser.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("The dashboard is on {}", self.url)];
        lines.extend(self.qr_code.clone());
        lines.extend((self.qr_code.is_some() && is_local(&self.url)).then(|| ONLY_HERE.to_owned()));
        lines.push(match self.is_opened {
            true => format!("Opened in your browser. If it did not open, use this link: {}", self.link),
            false => format!("Open this link within 60 seconds: {}", self.link),
        });
        lines.push("Another link: mcp-delegator dashboard, in another terminal. End with Ctrl-C.".to_owned());
        lines
    }
}

impl CommandData for DashboardLink {
    fn document(&self) -> Document {
        let opened = if self.is_opened { "opened in your browser" } else { "open it within 60 seconds" };
        let document = Document::titled(format!("The dashboard is on {}", self.url));
        let document =
            document.with(self.qr_code.clone(), |document, code| document.block(Block::Verbatim(code)));
        let is_unreachable = self.qr_code.is_some() && is_local(&self.url);
        let document = document.with(is_unreachable.then_some(ONLY_HERE), Document::text);
        document.block(Block::facts([
            ("link", Some(self.link.clone())),
            ("", Some(opened.to_owned())),
            ("permits", Some(self.scope.to_owned())),
        ]))
    }
}
