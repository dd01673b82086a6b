//! Runs a verification in `codex sandbox`: a pure function from validated values to arguments.
//!
//! Measured with 0.146 and 0.166; 0.110 takes other arguments, and a probe of it fails. The sandbox passes
//! exit codes and signals through as a shell does, disables the network, and passes the environment on
//! unchanged without applying `env_policy`; so the environment is built by us.
//!
//! Two gaps are closed by a constant shell script inside the sandbox: Codex needs `CODEX_HOME`, which the
//! command may not see, so the script unsets it; and a sandbox that failed to start looks like a failed
//! command, so the script first prints a sentinel line. The command's arguments are never part of that
//! script.
//!
//! A project's own `.codex` could widen the sandbox, see [`super::project_trust`]. Here the directory is
//! untrusted even without one: the agent may have created it meanwhile, and a verification needs nothing that
//! trust provides.

use std::ffi::OsString;
use std::path::Path;

use super::permissions::Confinement;
use super::project_trust::{ProjectTrust, projects_setting};
use crate::agent::arg_list::{ArgList, toml_array, toml_string};
use crate::agent::verification::{
    SENTINEL_SCRIPT, SHELL, VerifyPlan, VerifyRequest, command_environment, sentinel,
};
use crate::program::Version;
use crate::variables::Variables;

const CODEX_HOME: &str = "CODEX_HOME";
const SENTINEL_SCRIPT_UNSET_HOME: &str = r#"printf '%s\n' "$0"; unset CODEX_HOME; exec "$@""#;

pub(in crate::agent) fn sandboxed(
    program: &Path,
    version: Version,
    request: &VerifyRequest,
    agent: &Variables,
) -> VerifyPlan {
    let mut environment = command_environment(request, agent);
    let is_passed = environment.iter().any(|(name, _)| name == CODEX_HOME);
    let home = agent.iter().find(|(name, _)| name == CODEX_HOME).filter(|_| !is_passed);
    environment.extend(home.cloned());
    let sentinel = sentinel(request);
    let mut args = sandbox_args(request, version);
    let script = if home.is_some() { SENTINEL_SCRIPT_UNSET_HOME } else { SENTINEL_SCRIPT };
    args.push(&["--", SHELL, "-c", script, &sentinel]);
    args.0.extend(request.command.argv().into_iter().map(OsString::from));
    VerifyPlan { program: program.to_owned(), args: args.0, environment, sentinel: Some(sentinel) }
}

fn sandbox_args(request: &VerifyRequest, version: Version) -> ArgList {
    let run = &request.run;
    let confinement = Confinement::of(run.effective_mode(), request.denied_dir.as_deref(), version);
    let mut args = ArgList::default();
    args.push(&["sandbox"]);
    args.push_option("--profile", run.profile.as_deref());
    if let Confinement::Mode(mode) = &confinement {
        args.push_setting("sandbox_mode", &toml_string(mode.name()));
        let roots: Vec<&str> = run.add_dirs.iter().filter_map(|path| path.to_str()).collect();
        if !roots.is_empty() {
            args.push_setting("sandbox_workspace_write.writable_roots", &toml_array(roots));
        }
    }
    confinement.push_settings(&run.add_dirs, &mut args);
    args.push_setting("projects", &projects_setting(&run.working_dir, ProjectTrust::Untrusted));
    args
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::{EnvPolicy, Mode, RunSettings};

    use super::*;
    use crate::agent::verification::{VerifyCommand, VerifySandbox};
    use crate::variables::MARKER;

    fn agent_variables() -> Variables {
        let variables = [
            ("PATH", "/bin"),
            ("CODEX_HOME", "/c"),
            ("MY_FLAG", "1"),
            ("OPENAI_API_KEY", "k"),
            (MARKER, "old"),
        ];
        variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn plan_for(run: RunSettings) -> VerifyPlan {
        let words = ["cargo", "test", "-- $(x)"].map(str::to_owned);
        let request = VerifyRequest {
            command: VerifyCommand::Program(words.to_vec()),
            sandbox: VerifySandbox::Agent,
            run: RunSettings { working_dir: "/work \"here\"".into(), ..run },
            denied_dir: None,
            marker: "T:0".to_owned(),
        };
        sandboxed(Path::new("/opt/codex"), (0, 166, 0), &request, &agent_variables())
    }

    fn names(plan: &VerifyPlan) -> Vec<&str> {
        plan.environment.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    #[test]
    fn sandboxed_command_keeps_its_arguments() {
        let plan = plan_for(RunSettings {
            mode: Mode::WorkspaceWrite,
            add_dirs: vec!["/more".into()],
            profile: Some("p".to_owned()),
            ..RunSettings::default()
        });
        let args: Vec<&str> = plan.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let expected = [
            "sandbox",
            "--profile=p",
            "-c",
            "sandbox_mode=\"workspace-write\"",
            "-c",
            "sandbox_workspace_write.writable_roots=[\"/more\"]",
            "-c",
            "projects={\"/work \\\"here\\\"\"={trust_level=\"untrusted\"},\"/\"={trust_level=\"untrusted\"}}",
            "--",
            "/bin/sh",
            "-c",
            SENTINEL_SCRIPT_UNSET_HOME,
            "verifying T:0",
            "cargo",
            "test",
            "-- $(x)",
        ];
        assert_eq!(args, expected);
        assert_eq!(plan.sentinel.as_deref(), Some("verifying T:0"));
    }

    #[test]
    fn codex_home_is_visible_to_codex_but_not_to_the_command() {
        let plan_with = |env_policy| plan_for(RunSettings { env_policy, ..RunSettings::default() });
        let has_script = |plan: &VerifyPlan, script: &str| plan.args.iter().any(|arg| arg == script);
        let narrow = plan_with(EnvPolicy::InheritNone);
        assert_eq!(names(&narrow), ["PATH", MARKER, CODEX_HOME]);
        assert!(has_script(&narrow, SENTINEL_SCRIPT_UNSET_HOME));
        let listed = plan_with(EnvPolicy::AllowList(vec!["MY_FLAG".to_owned()]));
        assert_eq!(names(&listed), ["PATH", "MY_FLAG", MARKER, CODEX_HOME]);
        let all = plan_with(EnvPolicy::InheritAll);
        assert_eq!(names(&all), ["PATH", CODEX_HOME, "MY_FLAG", "OPENAI_API_KEY", MARKER]);
        assert!(has_script(&all, SENTINEL_SCRIPT));
    }
}
