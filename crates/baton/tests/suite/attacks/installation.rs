//! A project of two tenants with required authentication, and requests with keys.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::served::{LONG, Served};

pub(super) const THREAD: &str = "7b0f6d6e-3f7b-4b1c-9a51-0d6a1f4a5c11";

pub(super) struct Installation(TempDir);

impl Installation {
    /// `auth` is added to the section `[auth]`.
    pub(super) fn new(auth: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("agents")).unwrap();
        let agent = "---\ndescription: Helps.\n---\nYou help.\n";
        std::fs::write(dir.path().join("agents/assistant.md"), agent).unwrap();
        let config =
            format!("[agents]\nmain = 'assistant'\nwatch = false\n[auth]\nmode = 'required'\n{auth}");
        std::fs::write(dir.path().join("baton.toml"), config).unwrap();
        Self(dir)
    }

    pub(super) fn dir(&self) -> &Path {
        self.0.path()
    }

    /// Exit code, stdout and stderr of a command.
    pub(super) fn run(&self, args: &[&str], env: &[(&str, &str)]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(args)
            .env_remove("BATON_AUDIT_KEY")
            .env("NO_COLOR", "1")
            .envs(env.iter().copied())
            .current_dir(self.dir())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// The output of a command that succeeds.
    pub(super) fn baton(&self, args: &[&str], env: &[(&str, &str)]) -> String {
        let (code, stdout, stderr) = self.run(args, env);
        assert_eq!(code, 0, "{args:?}: {stderr}");
        stdout
    }

    /// A new key.
    pub(super) fn key(&self, tenant: &str, user: &str, role: &str) -> String {
        self.key_with(tenant, user, role, &[])
    }

    pub(super) fn key_with(&self, tenant: &str, user: &str, role: &str, env: &[(&str, &str)]) -> String {
        let args = ["keys", "create", "--tenant", tenant, "--user", user, "--role", role];
        self.baton(&args, env).trim().to_owned()
    }

    /// Status and JSON body of a response.
    #[expect(clippy::unused_self, reason = "reads like the other methods")]
    pub(super) fn send(
        &self,
        served: &Served,
        key: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let accept = format!("application/json\r\nAuthorization: Bearer {key}");
        let body = body.map(Value::to_string).unwrap_or_default();
        let text = served.read(method, path, &accept, &body);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::String(body.to_owned())))
    }

    pub(super) fn say(&self, served: &Served, key: &str, thread: &str, text: &str) -> Value {
        let path = format!("/api/v1/threads/{thread}/messages");
        let body = serde_json::json!({ "content": text });
        let (status, answer) = self.send(served, key, "POST", &path, Some(&body));
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Entries with this action, without those that the store adds itself.
    pub(super) fn trail(&self, served: &Served, key: &str, action: &str) -> Vec<Value> {
        let (status, found) = self.send(served, key, "GET", &format!("/api/v1/audit?action={action}"), None);
        assert_eq!(status, 200, "{found}");
        let entries = found["data"].as_array().unwrap().clone();
        entries.into_iter().filter(|entry| entry["decision"] != "deleted").filter(of_requests).collect()
    }

    /// Asks the server to end and waits until it has.
    #[expect(clippy::unused_self, reason = "reads like the other methods")]
    pub(super) fn end(&self, served: &mut Served) {
        let pid = rustix::process::Pid::from_child(&served.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let until = std::time::Instant::now() + LONG;
        while served.child.try_wait().unwrap().is_none() {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Commands have no address.
fn of_requests(entry: &Value) -> bool {
    entry["address"].is_string()
}
