//! The Python SDK against the built server: its own tests, which `pytest` runs in one process. They are in `sdk/python/tests`.

use std::process::Command;

use crate::root;

/// K1: streams, reconnecting, idempotency, delegations, handoffs, approvals, error types and the examples of the guide.
#[test]
fn k1_the_tests_of_the_python_sdk_pass() {
    let python = root().join("target/pip/sdk/bin/python");
    assert!(python.exists(), "the SDK's tests are not installed: run scripts/setup.sh test");
    let output = Command::new(python)
        .args(["-m", "pytest", "sdk/python"])
        .current_dir(root())
        .env("BATON_BIN", env!("CARGO_BIN_EXE_baton"))
        .env("PYTHONPATH", root().join("sdk/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
