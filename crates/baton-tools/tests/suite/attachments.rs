//! D8: programs of `shell` and `python` leave files for the user in the folder `attachments`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_core::{Tool, ToolOutput};
use baton_tools::process::ProcessSettings;
use baton_tools::python::{Python, PythonSettings};
use baton_tools::shell::Shell;
use serde_json::{Value, json};

use crate::context;

const MIB: usize = 1024 * 1024;

async fn call(tool: &dyn Tool, arguments: Value, work: &Path) -> ToolOutput {
    tool.call(arguments, Arc::new(context(work))).await.unwrap()
}

async fn shell(command: &str, work: &Path) -> ToolOutput {
    call(&Shell::new(ProcessSettings::default()), json!({"command": command}), work).await
}

fn names(output: &ToolOutput) -> Vec<&str> {
    output.files.iter().map(|file| file.name.as_deref().unwrap()).collect()
}

#[tokio::test]
async fn d8_created_and_changed_files_are_attached() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    fs::create_dir(work.join("attachments")).unwrap();
    for name in ["kept.txt", "grown.txt"] {
        fs::write(work.join("attachments").join(name), "old").unwrap();
    }
    let command =
        "cd attachments && printf 1,2 > table.csv && printf x >> grown.txt && touch ../other && exit 3";
    let output = shell(command, work).await;
    assert_eq!(names(&output), ["grown.txt", "table.csv"], "sorted, also if the program fails");
    assert_eq!((&*output.files[0].bytes, &*output.files[1].bytes), (&b"oldx"[..], &b"1,2"[..]));
    assert!(output.files.iter().all(|file| file.is_for_user));
    assert_eq!(output.text, "exit code 3, no output");
    assert!(shell("cat attachments/*", work).await.files.is_empty(), "reading changes nothing");
    assert_eq!(names(&shell("mv other attachments/moved.txt", work).await), ["moved.txt"]);
}

#[tokio::test]
async fn d8_python_attaches_files() {
    let dir = tempfile::tempdir().unwrap();
    let code = "import os\nos.mkdir('attachments')\nopen('attachments/chart.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n')";
    let output = call(&Python::new(PythonSettings::default()), json!({"code": code}), dir.path()).await;
    assert_eq!(names(&output), ["chart.png"]);
    assert_eq!(&*output.files[0].bytes, b"\x89PNG\r\n\x1a\n");
}

#[tokio::test]
async fn d8_attachments_are_regular_files_of_the_work_folder() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(dir.path().join("secret"), "not for others").unwrap();
    let command = "mkdir -p attachments/folder && cd attachments && echo own > own && ln -s own link && echo two > ../two && ln ../two two \
                   && ln -s ../../secret out && ln -s /etc/passwd passwd && ln -s gone broken && mkfifo pipe \
                   && echo KEY=1 > .env && echo x > baton.toml && echo deep > folder/deep.txt";
    let output = shell(command, &work).await;
    assert_eq!(names(&output), ["own"], "no links, and no file with two names: {}", output.text);
    assert!(
        output.text.contains("Note: 3 more"),
        "the file with two names, .env and baton.toml: {}",
        output.text
    );
    for target in ["..", "/etc", "/proc/self"] {
        let output = shell(&format!("rm -rf attachments && ln -s {target} attachments"), &work).await;
        assert!(output.files.is_empty(), "{target}: {:?}", names(&output));
    }
    let output = shell("rm attachments && echo x > attachments", &work).await;
    assert!(output.files.is_empty(), "a file is no folder");
}

#[tokio::test]
async fn d8_attachments_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let many = "mkdir attachments && for n in $(seq 100 169); do echo $n > attachments/$n; done";
    let output = shell(many, dir.path()).await;
    assert_eq!((output.files.len(), names(&output)[63]), (64, "163"));
    assert!(output.text.contains("Note: 6 more in `attachments`, not shown to the user"), "{}", output.text);
    let large = "rm attachments/* && for n in 1 2 3 4 5; do head -c 15728640 /dev/zero > attachments/$n; done && echo x > attachments/6";
    let output = shell(large, dir.path()).await;
    assert_eq!(names(&output), ["1", "2", "3", "4", "6"], "what fits is attached");
    assert!(output.text.contains("Note: 1 more"), "{}", output.text);
    let huge = shell("rm attachments/* && head -c 17825792 /dev/zero > attachments/huge", dir.path()).await;
    assert_eq!(
        huge.files[0].bytes.len(),
        16 * MIB + 1,
        "more than a run keeps, so that it is refused by name"
    );
    let holes = shell("rm attachments/* && truncate -s 15M attachments/holes", dir.path()).await;
    assert!(holes.files.is_empty() && holes.text.contains("Note: 1 more"), "{}", holes.text);
    let crowd = "cd attachments && rm * && for n in $(seq 1001); do echo > $n; done";
    let crowd = shell(crowd, dir.path()).await;
    assert!(crowd.files.is_empty() && crowd.text.contains("more than 1000 entries"), "{}", crowd.text);
}
