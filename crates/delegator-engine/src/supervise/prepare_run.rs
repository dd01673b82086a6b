//! Builds a run from the launch file of its task: opens the directories, checks them again and plans the
//! processes.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::RunSettings;
use delegator_registry::{TaskDir, TaskFile};
use delegator_supervisor::agent::{LaunchRequest, dialect_of};
use delegator_supervisor::process::{Cgroup, SweepLimits};
use delegator_supervisor::run::RunSpec;
use delegator_transcript::FoldOptions;
use rustix::fs::{Mode as FileMode, OFlags};

use super::run_ports::TaskPorts;
use super::{enclosure, niceness};
use crate::error::{DirectoryProblem, EngineError, Result};
use crate::shared::allowed_paths::{check_within, resolve_allowed_file};
use crate::submit::launch_file::{Launch, Settings};

/// Builds the run from the launch file. Checks directories and files again, because names may have changed
/// meaning. The first pinned directories are the additional ones.
pub(super) fn prepare(launch: &Launch, group: Option<Cgroup>, ports: &TaskPorts) -> Result<RunSpec> {
    let (engine, id, dir, settings) = (&ports.engine, &ports.id, &ports.dir, &launch.settings);
    let roots = &settings.allowed_roots;
    let (workdir, real) = open_dir("working_dir", &settings.run.working_dir, roots)?;
    let pinned = pinned_directories(settings)?;
    let image = |image: &PathBuf| resolve_allowed_file("images", image, roots, &engine.state_dir);
    let images = settings.run.images.iter().map(image).collect::<Result<_, _>>()?;
    let mut environment = launch.variables.clone();
    let workspace = pinned.iter().map(|(directory, path)| (directory, path.as_path()));
    let workspace: Vec<_> = [(&workdir, real.as_path())].into_iter().chain(workspace).collect();
    let enclosure = enclosure::prepare(engine, dir, launch, &workspace, &mut environment)?;
    let niceness =
        niceness::adjusted_niceness(settings.niceness, engine.max_concurrent, niceness::processors());
    let request = LaunchRequest {
        run: RunSettings {
            working_dir: real.clone(),
            images,
            add_dirs: pinned.iter().map(|(_, real)| real.clone()).collect(),
            ..settings.run.clone()
        },
        output_schema: write_output_schema(dir, settings)?,
        ..launch.request(id, &engine.state_dir)
    };
    Ok(RunSpec {
        task: id.clone(),
        protocol: launch.agent.protocol,
        plan: launch.agent.plan(&request, &workdir)?,
        leftovers: launch.agent.leftovers(&environment),
        verify: launch.verify_spec(&request, &environment)?,
        environment,
        workdir,
        enclosure,
        pinned,
        umask: launch.umask,
        limits: settings.run_limits(),
        max_stream_bytes: settings.max_stream_bytes,
        max_processes: settings.max_processes,
        sweep_exempt: settings.sweep_exempt.clone(),
        niceness,
        own_niceness: 0,
        sweep: SweepLimits::default(),
        group,
        redactor: ports.redactor.clone(),
        fold: FoldOptions {
            workdir: Some(real.display().to_string()),
            usage_before: settings.usage_before,
            dialect: dialect_of(launch.agent.protocol),
            ..FoldOptions::default()
        },
        budgets: settings.budgets.clone(),
        salvage: settings.salvage,
        answer_timeout: Duration::from_secs(settings.answer_timeout_sec),
    })
}

fn write_output_schema(dir: &TaskDir, settings: &Settings) -> Result<Option<PathBuf>> {
    let Some(schema) = &settings.output_schema else { return Ok(None) };
    dir.write(TaskFile::OutputSchema, schema.to_string().as_bytes())?;
    Ok(Some(dir.file(TaskFile::OutputSchema)))
}

/// Opens the additional directories, then what git writes when the agent commits in its worktree, which is
/// outside of the allowed roots. The agent accepts names only, so it gets the real path of each open
/// directory. The supervisor compares the two again right before it starts the agent; after that only the
/// agent's sandbox resolves them.
fn pinned_directories(settings: &Settings) -> Result<Vec<(OwnedFd, PathBuf)>> {
    let added = settings.run.add_dirs.iter().map(|dir| open_dir("add_dirs", dir, &settings.allowed_roots));
    let commit_dirs = settings.commit_dirs().into_iter().map(|dir| open_dir("isolation", &dir, &[]));
    added.chain(commit_dirs).collect()
}

/// Opens a directory, then checks the descriptor: the agent starts in the directory that was checked, even if
/// its name is changed afterwards.
fn open_dir(input: &'static str, path: &Path, roots: &[PathBuf]) -> Result<(OwnedFd, PathBuf)> {
    let refuse = |problem| EngineError::UnusableDirectory { input, path: path.to_owned(), problem };
    let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, FileMode::empty())
        .map_err(|error| refuse(std::io::Error::from(error).into()))?;
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let real = std::fs::read_link(name).map_err(|error| refuse(DirectoryProblem::Unusable(error)))?;
    check_within(&real, roots).map_err(refuse)?;
    Ok((fd, real))
}
