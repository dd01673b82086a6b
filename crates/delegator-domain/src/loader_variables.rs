//! Variables that make a program run code its command line does not name: preloaded libraries, interpreter
//! options, startup files, search paths for modules, commands that git runs.
//!
//! They are never passed to an agent, not even when the user's configuration names them: one of them in a
//! caller's environment would run in the agent and in every command it starts, inside and outside of its
//! sandbox.
//!
//! Not listed are variables that only name a program the user chose (`EDITOR`, `RUSTC_WRAPPER`) or tune one
//! (`MAVEN_OPTS`, `PYTHONUNBUFFERED`): they pass where the user's configuration names them.

/// Every variable with one of these prefixes counts.
const PREFIXES: &[&str] = &[
    // The dynamic linkers of Linux and macOS.
    "LD_",
    "DYLD_",
    // Functions that bash imports from its environment.
    "BASH_FUNC_",
    // Configuration by variables: aliases, hooks, filters, pagers.
    "GIT_CONFIG",
    "CORECLR_PROFILER",
    "COR_PROFILER",
    "LUA_INIT",
];

/// Names between spaces, by the program that reads them.
const NAMES: &[&str] = &[
    // The C library: modules it loads, and their search paths.
    "GCONV_PATH GLIBC_TUNABLES LOCPATH",
    // OpenSSL: engines and providers are shared libraries.
    "OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES",
    // Shells.
    "BASHOPTS BASH_ENV ENV FPATH IFS PROMPT_COMMAND PS4 SHELLOPTS ZDOTDIR",
    // JavaScript.
    "BUN_OPTIONS ELECTRON_RUN_AS_NODE NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE",
    // Python.
    "PYTHONBREAKPOINT PYTHONEXECUTABLE PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX PYTHONSTARTUP PYTHONUSERBASE PYTHONWARNINGS",
    // Perl.
    "PERL5DB PERL5LIB PERL5OPT PERL5SHELL PERLLIB",
    // Ruby.
    "RUBYLIB RUBYOPT",
    // Java.
    "CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS",
    // .NET.
    "CORECLR_ENABLE_PROFILING COR_ENABLE_PROFILING DOTNET_ADDITIONAL_DEPS DOTNET_STARTUP_HOOKS",
    // PHP, R, Erlang, Elixir.
    "ELIXIR_ERL_OPTIONS ERL_AFLAGS ERL_FLAGS ERL_ZFLAGS PHPRC PHP_INI_SCAN_DIR R_ENVIRON R_ENVIRON_USER",
    "R_PROFILE R_PROFILE_USER",
    // Commands that git and ssh run.
    "GIT_ASKPASS GIT_EDITOR GIT_EXEC_PATH GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_TEMPLATE_DIR SSH_ASKPASS",
    // Commands that less and vim run.
    "EXINIT LESSCLOSE LESSOPEN VIMINIT",
];

/// npm reads its settings from variables without regard to case.
const NPM_SETTINGS: &[&str] = &["npm_config_node_options", "npm_config_script_shell"];

pub fn is_loader_variable(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || NAMES.iter().any(|group| group.split(' ').any(|known| known == name))
        || NPM_SETTINGS.iter().any(|setting| setting.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_run_code_are_recognized() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "JAVA_TOOL_OPTIONS",
            "NPM_CONFIG_NODE_OPTIONS",
        ] {
            assert!(is_loader_variable(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "CODEX_HOME",
            "GIT_AUTHOR_NAME",
            "NODE_EXTRA_CA_CERTS",
            "PYTHONUNBUFFERED",
            "ENVIRONMENT",
            "CARGO_HOME",
            "NPM_CONFIG_REGISTRY",
        ] {
            assert!(!is_loader_variable(name), "{name}");
        }
    }
}
