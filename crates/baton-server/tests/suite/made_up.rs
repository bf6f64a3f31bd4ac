//! Requests that a program made up from the description of the API: whatever they are, the answer is one that is described.

use std::process::Stdio;
use std::time::Duration;

use baton_models::scripted::Scripted;
use tokio::process::Command;

use crate::openapi::checkers;
use crate::site::Plan;

/// What has to be true of every answer.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/// Together with what starting and ending take.
const SPARE: Duration = Duration::from_mins(2);

/// Twenty seconds and always the same requests; with `make soak` ten minutes and always others.
#[tokio::test]
async fn every_answer_to_requests_that_are_made_up_is_described() {
    let is_soak = std::env::var_os("BATON_SOAK").is_some();
    let seconds = if is_soak { 600 } else { 20 };
    let plan = Plan::new(&Scripted::default()).required();
    let plan = plan.settings(|settings| settings.limits.requests_per_minute = std::num::NonZeroU32::MAX);
    let site = plan.start().await;
    let key = site.key("acme", "ada", &["admin"]).await;
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(checkers().join("schemathesis"));
    command
        .args(["run", &site.url("/openapi.json"), "--checks", CHECKS, "--max-examples", "2000"])
        .args(["--max-time", &seconds.to_string(), "--no-color"])
        .args(["-H", &format!("Authorization: Bearer {key}")])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if !is_soak {
        command.args(["--seed", "1"]);
    }
    let limit = Duration::from_secs(seconds) + SPARE;
    let output = tokio::time::timeout(limit, command.output()).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).replace(&key, "…");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Tested: "), "nothing was tested: {said}");
    println!("{said}");
    site.end().await;
}
