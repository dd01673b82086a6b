//! The steps of the Dockerfile, run in [`ImageRoot`]: installing, the user and its directories, and the entry point.
//!
//! The program is the one that the tests use; the stage that compiles it is only compared with the workspace.

use std::path::Path;
use std::process::{Command, Stdio};

use delegator_testkit::generated::workspace;
use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::stage::wait_until;
use parse_dockerfile::{
    Command as Arguments, CopyInstruction, Dockerfile, HealthcheckArguments, Instruction, Source,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::image_root::{ImageRoot, assert_success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// The path of the program in the stage that compiles it.
const COMPILED: &str = "/source/target/release/mcp-delegator";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image after all its steps.
#[derive(Debug)]
struct Image {
    root: ImageRoot,
    /// Variables of the container.
    environment: Vec<(String, String)>,
    /// Also variables of the steps.
    arguments: Vec<(String, String)>,
    shell: Vec<String>,
    user: String,
    directory: String,
    volumes: Vec<String>,
    entrypoint: Vec<String>,
    health_check: String,
}

impl Image {
    /// Runs the steps of the last stage.
    fn build(dockerfile: &Dockerfile<'_>) -> Image {
        let mut image = Image {
            root: ImageRoot::mount(),
            environment: vec![("PATH".to_owned(), PATH.to_owned())],
            // Answers of the registry that this machine has downloaded already.
            arguments: [
                ("HOME", "/root"),
                ("npm_config_prefer_offline", "true"),
                ("DEBIAN_FRONTEND", "noninteractive"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            shell: Vec::new(),
            user: "0:0".to_owned(),
            directory: "/".to_owned(),
            volumes: Vec::new(),
            entrypoint: Vec::new(),
            health_check: String::new(),
        };
        let stage = dockerfile.stages().last().unwrap();
        for instruction in stage.instructions {
            image.step(instruction);
        }
        image
    }

    fn step(&mut self, instruction: &Instruction<'_>) {
        match instruction {
            Instruction::Shell(shell) => {
                self.shell = shell.arguments.iter().map(|word| word.value.to_string()).collect();
            }
            Instruction::Arg(arg) => self.arguments.extend(assignments(&arg.arguments.value)),
            Instruction::Env(env) => self.environment.extend(assignments(&env.arguments.value)),
            Instruction::Run(run) => {
                let Arguments::Shell(script) = &run.arguments else { panic!("not in shell form: {run:?}") };
                let environment = [&self.environment[..], &self.arguments].concat();
                let mut command = self.root.command(&self.user, &self.directory, &environment);
                assert_success(command.args(&self.shell).arg(script.value));
            }
            Instruction::Copy(copy) => self.copy(copy),
            Instruction::User(user) => self.user = user.arguments.value.to_string(),
            Instruction::Workdir(workdir) => self.directory = workdir.arguments.value.to_string(),
            Instruction::Volume(volume) => match &volume.arguments {
                parse_dockerfile::JsonOrStringArray::String(paths) => {
                    self.volumes.extend(paths.iter().map(|path| path.value.to_string()));
                }
                json => panic!("{json:?}"),
            },
            Instruction::Healthcheck(check) => match &check.arguments {
                HealthcheckArguments::Cmd { arguments: Arguments::Shell(script), .. } => {
                    self.health_check = script.value.to_owned();
                }
                other => panic!("{other:?}"),
            },
            Instruction::Entrypoint(entrypoint) => match &entrypoint.arguments {
                Arguments::Exec(words) => {
                    self.entrypoint = words.value.iter().map(|word| word.value.to_string()).collect();
                }
                shell => panic!("a shell would not pass signals on: {shell:?}"),
            },
            Instruction::Stopsignal(signal) => assert_eq!(signal.arguments.value, "SIGTERM"),
            other => panic!("this test does not know the step {other:?}"),
        }
    }

    fn copy(&self, copy: &CopyInstruction<'_>) {
        let option = |name: &str| {
            let flag = copy.options.iter().find(|flag| flag.name.value == name);
            flag.and_then(|flag| flag.value.as_ref()).map(|value| value.value.as_ref())
        };
        let [Source::Path(source)] = &copy.src[..] else { panic!("{copy:?}") };
        let (from, mode) = match option("from") {
            Some("build") => {
                assert_eq!(source.value, COMPILED);
                (Path::new(PROGRAM).to_owned(), "0755")
            }
            _ => (workspace().join(source.value.as_ref()), option("chmod").unwrap_or("0644")),
        };
        self.root.copy(&from, &copy.dest.value, mode);
    }

    /// A program in a container of this image.
    fn run(&self, words: &[&str]) -> Command {
        let host = [("HOSTNAME".to_owned(), "worker-1".to_owned())];
        let environment = [&self.environment[..], &host].concat();
        let mut command = self.root.command(&self.user, &self.directory, &environment);
        command.args(words);
        command
    }
}

fn assignments(text: &str) -> Vec<(String, String)> {
    let text = text.replace("\\\n", " ");
    let pairs = text.split_whitespace().map(|word| word.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_steps_of_the_image_make_a_worker_without_root() {
    let is_root = rustix::process::geteuid().is_root();
    assert!(
        is_root,
        "only root can install packages into an image; `scripts/test` leaves this test out for others"
    );
    let text = std::fs::read_to_string(workspace().join("deploy/Dockerfile")).unwrap();
    let dockerfile = parse_dockerfile::parse(&text).unwrap();
    let image = Image::build(&dockerfile);

    let codex = assert_success(&mut image.run(&["codex", "--version"]));
    assert!(codex.contains("0.166.0"), "{codex}");
    assert!(assert_success(&mut image.run(&["git", "--version"])).starts_with("git version"));
    let ids = assert_success(&mut image.run(&["sh", "-c", "id -u; id -g; id -G"]));
    assert_eq!(ids, "10001\n10001\n10001\n", "no root, and no other group");
    assert!(!image.run(&["touch", "/usr/local/bin/mcp-delegator"]).status().unwrap().success());

    // All that the program writes is on the volume.
    let [volume] = &image.volumes[..] else { panic!("{:?}", image.volumes) };
    for (name, path) in &image.environment {
        if matches!(name.as_str(), "HOME" | "CODEX_HOME" | "MCP_DELEGATOR_HOME") {
            assert!(Path::new(path).starts_with(volume), "{name}={path}");
        }
    }
    assert_success(&mut image.run(&["sh", "-c", "touch \"$CODEX_HOME/x\""]));
    runs_as_worker_until_it_is_stopped(&image);
}

/// The entry point runs a worker of a fleet, its health check agrees with the database, and SIGTERM drains it.
fn runs_as_worker_until_it_is_stopped(image: &Image) {
    let server = PostgresServer::options().fast().start();
    let url = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(url.path(), server.url()).unwrap();
    image.root.copy(url.path(), "/run/secrets/database-url", "0444");
    let check: Vec<&str> =
        image.shell.iter().map(String::as_str).chain([image.health_check.as_str()]).collect();
    let is_healthy = || image.run(&check).output().unwrap().status.success();
    assert!(!is_healthy(), "there is no worker yet");

    let entrypoint: Vec<&str> = image.entrypoint.iter().map(String::as_str).chain(["--slots", "1"]).collect();
    let mut worker = image.run(&entrypoint).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the worker is healthy", || {
        assert_eq!(worker.try_wait().unwrap(), None, "the worker ended by itself");
        is_healthy()
    });
    let name = server.value("select worker from delegator.sessions where ended_at is null");
    assert_eq!(name, "worker-1");
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert!(!is_healthy(), "the worker has ended");
    assert_eq!(server.value("select end_reason from delegator.sessions"), "closed");
}

#[test]
fn the_image_compiles_the_program_from_what_the_build_context_has() {
    let text = std::fs::read_to_string(workspace().join("deploy/Dockerfile")).unwrap();
    let dockerfile = parse_dockerfile::parse(&text).unwrap();
    let build = dockerfile.stages().next().unwrap();
    assert_eq!(build.from.as_.as_ref().map(|(_, name)| name.value.as_ref()), Some("build"));
    let compiles = build.instructions.iter().any(|instruction| match instruction {
        Instruction::Run(run) => matches!(&run.arguments, Arguments::Shell(script)
            if script.value == "cargo build --release --locked --package mcp-delegator --bin mcp-delegator"),
        _ => false,
    });
    assert!(compiles, "{:?}", build.instructions);
    let ignore = std::fs::read_to_string(workspace().join(".dockerignore")).unwrap();
    let included: Vec<&str> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for needed in ["Cargo.toml", "Cargo.lock", "crates", "rust-toolchain.toml", "deploy/start-worker"] {
        assert!(included.contains(&needed) && workspace().join(needed).exists(), "{needed}");
    }
}
