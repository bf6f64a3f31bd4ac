//! K3: `python` runs code or a file in the work folder, bounded as `shell` is.

use std::path::Path;

use baton_core::HumanDuration;
use baton_tools::process::ProcessSettings;
use baton_tools::python::{Python, PythonSettings};
use serde_json::{Value, json};

use crate::{call, refusal};

async fn run(arguments: Value, work: &Path) -> String {
    call(&Python::new(PythonSettings::default()), arguments, work).await.unwrap()
}

#[tokio::test]
async fn k_3_code_and_files_run() {
    let dir = tempfile::tempdir().unwrap();
    let code = "import sys\nprint(sum(range(10)), sys.argv[1:])\nprint(input() if False else 'no input')";
    assert_eq!(
        run(json!({"code": code, "args": ["a b"]}), dir.path()).await,
        "exit code 0\n\n45 ['a b']\nno input"
    );
    std::fs::write(dir.path().join("helper.py"), "VALUE = 7\n").unwrap();
    std::fs::write(dir.path().join("-main.py"), "import helper\nprint(helper.VALUE)\n").unwrap();
    assert_eq!(run(json!({"path": "-main.py"}), dir.path()).await, "exit code 0\n\n7");
    assert!(!dir.path().join("__pycache__").exists());
    let failed = run(json!({"code": "print('before')\nraise ValueError('broken')"}), dir.path()).await;
    assert!(failed.starts_with("exit code 1") && failed.contains("before"), "{failed}");
    assert!(failed.ends_with("ValueError: broken"), "{failed}");
    // More code than one argument of a process may have.
    let long = format!("x = '{}'\nprint(len(x))", "x".repeat(200_000));
    assert_eq!(run(json!({"code": long}), dir.path()).await, "exit code 0\n\n200000");
}

#[tokio::test]
async fn what_python_refuses() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".env"), "KEY=1").unwrap();
    let tool = Python::new(PythonSettings::default());
    for (wrong, code) in [
        (json!({}), "invalid_arguments"),
        (json!({"code": "1", "path": "a.py"}), "invalid_arguments"),
        (json!({"path": "../a.py"}), "not_permitted"),
        (json!({"path": ".env"}), "not_permitted"),
        (json!({"path": "/etc/passwd"}), "not_permitted"),
        (json!({"path": "absent.py"}), "execution"),
    ] {
        assert_eq!(refusal(&tool, wrong.clone(), dir.path()).await, code, "{wrong}");
    }
    let process = ProcessSettings { timeout: HumanDuration::from_millis(300), ..ProcessSettings::default() };
    let tool = Python::new(PythonSettings { process, ..PythonSettings::default() });
    assert_eq!(refusal(&tool, json!({"code": "while True: pass"}), dir.path()).await, "timeout");
    let missing = PythonSettings { interpreter: "no-such-python".to_owned(), ..PythonSettings::default() };
    assert_eq!(refusal(&Python::new(missing), json!({"code": "1"}), dir.path()).await, "execution");
}
