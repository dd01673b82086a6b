//! A fake backend of hosted Codex, for tests that run the real `codex cloud`.
//!
//! Codex talks only to trusted HTTPS origins, so the server is an HTTP proxy on a loopback port that answers for
//! chatgpt.com itself, with a certificate that it creates at its start. It refuses every other host: nothing leaves the
//! machine. The payloads are what the client of Codex 0.166.0 reads, not a recording of the live service.
//!
//! A test adds tasks, or sets what a submitted task becomes, and passes [`FakeCloud::variables`] to the program.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;

mod certificates;
mod connection;
mod routes;

/// The state of a task, by the name that the backend uses. `codex cloud` shows a cancelled task as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeState {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
}

/// What a request gets in place of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    HttpError(u16),
    /// Status 200 with a page that is not JSON.
    Garbage,
    /// No response until the client hangs up.
    Hang,
}

/// A task of the backend.
#[derive(Debug, Clone)]
pub struct FakeTask {
    pub title: String,
    pub environment: String,
    /// Each request that returns the task takes the next state; the last one repeats.
    pub states: Vec<FakeState>,
    /// The diff of each attempt, in order. They are shown only once the task has completed.
    pub diffs: Vec<String>,
    /// For requests about this task alone. Lists still contain it.
    pub fault: Option<Fault>,
}

impl FakeTask {
    pub fn new(title: &str) -> FakeTask {
        let environment = ENVIRONMENT.to_owned();
        FakeTask {
            title: title.to_owned(),
            environment,
            states: vec![FakeState::Queued],
            diffs: Vec::new(),
            fault: None,
        }
    }

    #[must_use]
    pub fn states(self, states: &[FakeState]) -> FakeTask {
        FakeTask { states: states.to_vec(), ..self }
    }

    #[must_use]
    pub fn diffs(self, diffs: &[&str]) -> FakeTask {
        FakeTask { diffs: diffs.iter().map(|diff| (*diff).to_owned()).collect(), ..self }
    }

    #[must_use]
    pub fn fault(self, fault: Fault) -> FakeTask {
        FakeTask { fault: Some(fault), ..self }
    }
}

/// The environment that the server has from its start.
pub const ENVIRONMENT: &str = "env_app";
/// Its label.
pub const ENVIRONMENT_LABEL: &str = "example/app";

#[derive(Debug)]
struct Backend {
    environments: Vec<(String, String)>,
    tasks: Vec<(String, FakeTask)>,
    next_task: FakeTask,
    submissions: Vec<Value>,
    requests: Vec<String>,
    page_size: usize,
    fault: Option<Fault>,
}

/// Serves until the test process ends.
#[derive(Debug)]
pub struct FakeCloud {
    port: u16,
    certificates: TempDir,
    backend: Arc<Mutex<Backend>>,
}

impl FakeCloud {
    /// Starts a server with one environment and no tasks.
    pub fn start() -> FakeCloud {
        let certificates = tempfile::tempdir().unwrap();
        let tls = certificates::create(&certificates.path().join("ca.pem"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let backend = Arc::new(Mutex::new(Backend {
            environments: vec![(ENVIRONMENT.to_owned(), ENVIRONMENT_LABEL.to_owned())],
            tasks: Vec::new(),
            next_task: FakeTask::new(""),
            submissions: Vec::new(),
            requests: Vec::new(),
            page_size: 20,
            fault: None,
        }));
        let shared = Arc::clone(&backend);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tls, backend) = (Arc::clone(&tls), Arc::clone(&shared));
                std::thread::spawn(move || connection::serve(stream, tls, &backend));
            }
        });
        FakeCloud { port, certificates, backend }
    }

    /// The variables with which a program reaches this server.
    pub fn variables(&self) -> Vec<(String, String)> {
        let certificate: PathBuf = self.certificates.path().join("ca.pem");
        vec![
            ("HTTPS_PROXY".to_owned(), format!("http://127.0.0.1:{}", self.port)),
            ("CODEX_CA_CERTIFICATE".to_owned(), certificate.display().to_string()),
        ]
    }

    /// Writes the `auth.json` of a ChatGPT sign-in into a home directory of Codex.
    pub fn sign_in(&self, codex_home: &Path) {
        let account = json!({
            "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1", "chatgpt_account_id": "account-1", "user_id": "user-1",
        });
        let claims = json!({
            "email": "user@example.invalid", "sub": "user-1", "iat": 1_700_000_000, "exp": 4_070_908_800_u64,
            "https://api.openai.com/auth": account,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = format!("{}.{}.c2ln", part(&json!({"alg": "none", "typ": "JWT"})), part(&claims));
        let tokens = json!({
            "id_token": token, "access_token": token, "refresh_token": "refresh", "account_id": "account-1",
        });
        // Codex renews a token that it refreshed long ago; this one never needs that.
        let auth = json!({
            "auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": tokens, "last_refresh": "2099-01-01T00:00:00Z",
        });
        std::fs::create_dir_all(codex_home).unwrap();
        std::fs::write(codex_home.join("auth.json"), auth.to_string()).unwrap();
    }

    pub fn add_environment(&self, id: &str, label: &str) {
        self.backend().environments.push((id.to_owned(), label.to_owned()));
    }

    pub fn add_task(&self, id: &str, task: FakeTask) {
        self.backend().tasks.push((id.to_owned(), task));
    }

    /// What the next submitted tasks become; their title is the beginning of the prompt if this one has none.
    pub fn set_next_task(&self, task: FakeTask) {
        self.backend().next_task = task;
    }

    /// Changes a task, for example its states or its fault.
    pub fn change_task(&self, id: &str, change: impl FnOnce(&mut FakeTask)) {
        let mut backend = self.backend();
        let task = backend.tasks.iter_mut().find(|(other, _)| other == id);
        change(&mut task.unwrap_or_else(|| panic!("no task {id}")).1);
    }

    pub fn set_state(&self, id: &str, state: FakeState) {
        self.change_task(id, |task| task.states = vec![state]);
    }

    /// A fault of every request, or none.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.backend().fault = fault;
    }

    /// The largest number of tasks in one page of a list.
    pub fn set_page_size(&self, page_size: usize) {
        self.backend().page_size = page_size;
    }

    /// The ids of all tasks, in the order of their creation.
    pub fn task_ids(&self) -> Vec<String> {
        self.backend().tasks.iter().map(|(id, _)| id.clone()).collect()
    }

    /// The bodies of all submissions so far.
    pub fn submissions(&self) -> Vec<Value> {
        self.backend().submissions.clone()
    }

    /// Method and path of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.backend().requests.clone()
    }

    fn backend(&self) -> MutexGuard<'_, Backend> {
        self.backend.lock().unwrap()
    }
}
