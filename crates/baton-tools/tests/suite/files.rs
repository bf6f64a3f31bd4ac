//! File tools see the work folder and nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::{CallContext, Tool as _};
use baton_tools::DocFolders;
use baton_tools::documents::DocumentReader;
use baton_tools::list_files::ListFiles;
use baton_tools::read_file::ReadFile;
use baton_tools::write_file::WriteFile;
use serde_json::json;
use tempfile::TempDir;

use crate::{call, context, refusal};

/// `work` with a few files, and a secret beside it.
fn folders() -> (TempDir, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let work = outer.path().join("work");
    fs::create_dir_all(work.join("notes/deep")).unwrap();
    fs::create_dir(outer.path().join("work-not")).unwrap();
    fs::write(outer.path().join("secret"), "secret").unwrap();
    fs::write(outer.path().join("work-not/secret"), "secret").unwrap();
    fs::write(work.join("notes/plan.md"), "one\ntwo\nthree\n").unwrap();
    (outer, work)
}

/// What `read_file` finds behind a path.
async fn read(work: &Path, path: &str) -> String {
    call(&ReadFile::default(), json!({"path": path}), work).await.unwrap()
}

#[tokio::test]
async fn paths_that_lead_out_are_refused() {
    let (outer, work) = folders();
    symlink("../secret", work.join("link")).unwrap();
    symlink(outer.path().join("secret"), work.join("absolute-link")).unwrap();
    symlink("..", work.join("up")).unwrap();
    symlink("notes/../../secret", work.join("crooked")).unwrap();
    symlink("link", work.join("link-to-link")).unwrap();
    symlink("../missing", work.join("dangling")).unwrap();
    symlink("/", work.join("root")).unwrap();
    let beside = outer.path().join("work-not/secret");
    for path in [
        "../secret",
        "notes/../../secret",
        "/etc/passwd",
        "//etc/passwd",
        "link",
        "absolute-link",
        "up/secret",
        "up",
        "crooked",
        "link-to-link",
        "dangling",
        "root/etc/passwd",
        "./../secret",
        "notes/deep/../../../secret",
        beside.to_str().unwrap(),
    ] {
        assert_eq!(
            refusal(&ReadFile::default(), json!({"path": path}), &work).await,
            "not_permitted",
            "{path}"
        );
        let arguments = json!({"path": path, "content": "x"});
        assert_eq!(refusal(&WriteFile::default(), arguments, &work).await, "not_permitted", "{path}");
        assert_eq!(
            refusal(&ListFiles::default(), json!({"path": path}), &work).await,
            "not_permitted",
            "{path}"
        );
    }
    // A new file below a linked parent, with folders that would have to be made.
    let arguments = json!({"path": "up/new/file", "content": "x"});
    assert_eq!(refusal(&WriteFile::default(), arguments, &work).await, "not_permitted");
    assert!(!outer.path().join("new").exists() && !outer.path().join("missing").exists());
    assert_eq!(fs::read_to_string(outer.path().join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn paths_and_links_that_stay_inside_work() {
    let (_outer, work) = folders();
    symlink("notes", work.join("n")).unwrap();
    symlink("../n/plan.md", work.join("notes/same.md")).unwrap();
    symlink(work.join("notes/plan.md"), work.join("absolute")).unwrap();
    symlink("notes/later.md", work.join("later")).unwrap();
    let absolute = work.join("notes/plan.md");
    for path in [
        "notes/plan.md",
        "./notes//plan.md",
        "n/plan.md",
        "notes/../notes/plan.md",
        "n/same.md",
        "absolute",
        absolute.to_str().unwrap(),
    ] {
        assert!(read(&work, path).await.ends_with("one\ntwo\nthree\n"), "{path}");
    }
    // A link that points to nothing yet is written through, not replaced.
    call(&WriteFile::default(), json!({"path": "later", "content": "x"}), &work).await.unwrap();
    assert!(work.join("later").is_symlink());
    assert_eq!(fs::read_to_string(work.join("notes/later.md")).unwrap(), "x");
}

#[tokio::test]
async fn what_is_no_text_file_is_refused() {
    let (_outer, work) = folders();
    symlink("b", work.join("a")).unwrap();
    symlink("a", work.join("b")).unwrap();
    fs::write(work.join("binary"), b"a\0b").unwrap();
    fs::File::create(work.join("huge")).unwrap().set_len(1 << 40).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(work.join("pipe")).status().unwrap();
    assert!(fifo.success());
    let deep = "d/".repeat(300);
    for (path, code) in [
        ("a", "limit"),
        ("binary", "execution"),
        ("huge", "limit"),
        ("pipe", "execution"),
        ("notes", "execution"),
        ("", "execution"),
        (".", "execution"),
        ("missing", "execution"),
        ("missing/below", "execution"),
        ("notes/plan.md/below", "execution"),
        ("nul\0", "execution"),
    ] {
        assert_eq!(refusal(&ReadFile::default(), json!({"path": path}), &work).await, code, "{path}");
    }
    for path in ["notes", ".", "pipe", "notes/plan.md/x"] {
        let arguments = json!({"path": path, "content": "x"});
        assert_eq!(refusal(&WriteFile::default(), arguments, &work).await, "execution", "{path}");
    }
    let arguments = json!({"path": format!("{deep}x"), "content": "x"});
    assert_eq!(refusal(&WriteFile::default(), arguments, &work).await, "limit");
    assert_eq!(refusal(&ReadFile::default(), json!({"path": "x".repeat(5_000)}), &work).await, "limit");
    assert_eq!(refusal(&ReadFile::default(), json!({"path": "x"}), &work.join("gone")).await, "execution");
}

#[tokio::test]
async fn files_are_read_in_pages() {
    let (_outer, work) = folders();
    let page =
        |offset: usize, limit: usize| json!({"path": "notes/plan.md", "offset": offset, "limit": limit});
    let text = call(&ReadFile::default(), page(2, 1), &work).await.unwrap();
    assert_eq!(text, "notes/plan.md, lines 2 to 2 of 3; read on with offset 3\n\ntwo\n");
    let text = call(&ReadFile::default(), page(3, 9), &work).await.unwrap();
    assert_eq!(text, "notes/plan.md, lines 3 to 3 of 3\n\nthree\n");
    let text = call(&ReadFile::default(), page(9, 1), &work).await.unwrap();
    assert_eq!(text, "notes/plan.md has 3 lines; there is no line 9.");
    fs::write(work.join("empty"), "").unwrap();
    assert_eq!(read(&work, "empty").await, "empty is empty.");
    fs::write(work.join("long"), "ä".repeat(1_000_000)).unwrap();
    let text = read(&work, "long").await;
    assert!(text.ends_with("… (998000 more characters in this line)\n"), "{}", &text[text.len() - 100..]);
    fs::write(work.join("wide"), format!("{}\n", "x".repeat(1_999)).repeat(1_000)).unwrap();
    let text = call(&ReadFile::default(), json!({"path": "wide", "limit": 2000}), &work).await.unwrap();
    assert!(text.len() < 300_000 && text.contains("read on with offset"));
}

#[tokio::test]
async fn files_are_written_whole() {
    let (_outer, work) = folders();
    let arguments = json!({"path": "new/folder/file.txt", "content": "grüße"});
    let text = call(&WriteFile::default(), arguments, &work).await.unwrap();
    assert_eq!(text, "Wrote new/folder/file.txt (7 bytes).");
    let file = work.join("new/folder/file.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    call(&WriteFile::default(), json!({"path": "new/folder/file.txt", "content": "2"}), &work).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "2");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
    let names: Vec<_> =
        fs::read_dir(work.join("new/folder")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["file.txt"], "no temporary file is left");
    let arguments = json!({"path": "x", "content": "x".repeat(5 << 20)});
    assert_eq!(refusal(&WriteFile::default(), arguments, &work).await, "limit");
}

#[tokio::test]
async fn listings_are_sorted_and_bounded() {
    let (_outer, work) = folders();
    fs::create_dir_all(work.join(".git/objects")).unwrap();
    fs::write(work.join("a.txt"), "12345").unwrap();
    symlink("..", work.join("up")).unwrap();
    let list = async |arguments| call(&ListFiles::default(), arguments, &work).await.unwrap();
    assert_eq!(list(json!({})).await, "a.txt (5 bytes)\nnotes/\nup (link)");
    assert_eq!(
        list(json!({"recursive": true})).await,
        "a.txt (5 bytes)\nnotes/\nnotes/deep/\nnotes/plan.md (14 bytes)\nup (link)"
    );
    assert_eq!(list(json!({"path": "./notes/"})).await, "notes/deep/\nnotes/plan.md (14 bytes)");
    assert_eq!(list(json!({"path": "notes/deep"})).await, "The folder is empty.");
    let cut = list(json!({"limit": 1})).await;
    assert!(cut.starts_with("a.txt (5 bytes)\n… and more"), "{cut}");
    assert_eq!(refusal(&ListFiles::default(), json!({"path": "a.txt"}), &work).await, "execution");
}

async fn write(tool: &WriteFile, work: &Path, path: &str) -> Result<String, baton_core::ToolError> {
    call(tool, json!({"path": path, "content": "x"}), work).await
}

async fn protects(tool: &WriteFile, work: &Path, path: &str) {
    let error = write(tool, work, path).await.unwrap_err();
    assert_eq!(error.code(), "not_permitted", "{path}");
    assert!(error.to_string().contains("is protected"), "{path}: {error}");
}

#[tokio::test]
async fn what_decides_over_the_next_run_is_not_written() {
    let (_outer, work) = folders();
    let tool = WriteFile::default();
    let absolute = work.join("Agents/x.md");
    for path in [
        ".mcp.json",
        ".MCP.json",
        ".env",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "./.agents/skills/a/SKILL.md",
        "notes/.hidden/file",
        "notes/deep/.claude/settings.json",
        "new/.hidden",
        "notes/../.mcp.json",
        "baton.toml",
        "Baton.TOML",
        "notes/deep/baton.toml",
        "agents",
        "agents/x.md",
        "AGENTS/x.md",
        "agent\u{17f}/x.md",
        "agents/deep/er/x.md",
        "./agents/../agents/x.md",
        "notes/../agents/x.md",
        absolute.to_str().unwrap(),
    ] {
        protects(&tool, &work, path).await;
    }
    // Refused before anything was made on the way.
    assert!(
        !work.join("agents").exists() && !work.join(".git").exists() && !work.join("notes/.hidden").exists()
    );
    fs::create_dir(work.join("agents")).unwrap();
    fs::write(work.join("agents/x.md"), "mine").unwrap();
    for path in ["agents/x.md", "./agents/../agents/x.md", "agents/new/y.md"] {
        protects(&tool, &work, path).await;
    }
    assert_eq!(fs::read_to_string(work.join("agents/x.md")).unwrap(), "mine");
    for path in ["agents.md", "notes/agents/x.md", "agents/../notes/x.md", "notes/baton.toml.md", "a.b"] {
        write(&tool, &work, path).await.unwrap();
    }
}

#[tokio::test]
async fn links_do_not_lead_into_what_is_protected() {
    let (_outer, work) = folders();
    let tool = WriteFile::default();
    fs::create_dir_all(work.join("agents/team")).unwrap();
    fs::create_dir(work.join(".git")).unwrap();
    symlink("agents", work.join("a")).unwrap();
    symlink("../agents/team", work.join("notes/team")).unwrap();
    symlink(work.join("agents"), work.join("absolute")).unwrap();
    symlink("a/later.md", work.join("later.md")).unwrap();
    symlink(".git", work.join("git")).unwrap();
    symlink("baton.toml", work.join("config")).unwrap();
    symlink("servers.json", work.join(".mcp.json")).unwrap();
    for path in [
        "a/x.md",
        "notes/team/x.md",
        "absolute/x.md",
        "later.md",
        "git/config",
        "config",
        ".mcp.json",
        "servers.json",
    ] {
        protects(&tool, &work, path).await;
    }
}

#[tokio::test]
async fn protected_folders_are_the_ones_of_the_operator() {
    let (outer, work) = folders();
    fs::create_dir(work.join("real")).unwrap();
    symlink("real", work.join("roster")).unwrap();
    symlink("future", work.join("dangling")).unwrap();
    symlink("work", outer.path().join("alias")).unwrap();
    let linked = outer.path().join("alias/bots");
    let paths = ["roster", "dangling", "gone/../more", "notes/deep", "../elsewhere"].map(Into::into);
    let tool = WriteFile::new([&paths[..], &[linked]].concat());
    for path in
        ["roster/x.md", "real/x.md", "dangling/x.md", "future/x.md", "more/x.md", "bots/x.md", "Notes/Deep/x"]
    {
        protects(&tool, &work, path).await;
    }
    for path in ["agents/x.md", "notes/x.md", "elsewhere/x.md"] {
        write(&tool, &work, path).await.unwrap();
    }
    let whole = WriteFile::new(vec![work.clone()]);
    protects(&whole, &work, "notes/x.md").await;
}

#[tokio::test]
async fn files_with_secrets_are_not_read() {
    let (_outer, work) = folders();
    for name in [".env", ".ENV.local", "notes/.envrc", "env", ".gitignore"] {
        fs::write(work.join(name), "KEY=1").unwrap();
    }
    symlink(".env", work.join("link")).unwrap();
    symlink("env", work.join(".env.link")).unwrap();
    for path in [".env", "./notes/../.env", ".ENV.local", "notes/.envrc", "link", ".env.link"] {
        let error = call(&ReadFile::default(), json!({"path": path}), &work).await.unwrap_err();
        assert_eq!(error.code(), "not_permitted", "{path}");
        assert!(error.to_string().contains("secrets"), "{path}: {error}");
    }
    assert!(read(&work, "env").await.contains("KEY=1"));
}

/// The same for the server's own files: by any path, link, hard link or spelling.
#[tokio::test]
async fn files_of_the_server_are_not_read() {
    let (_outer, work) = folders();
    fs::create_dir_all(work.join("agents/team")).unwrap();
    for name in [".mcp.json", "baton.toml", "baton.db", "agents/team/a.md", "other.md"] {
        fs::write(work.join(name), "SECRET").unwrap();
    }
    symlink("agents", work.join("a")).unwrap();
    symlink("../baton.db", work.join("notes/db.md")).unwrap();
    for (file, link) in [("baton.toml", "t.md"), ("baton.db", "b.md"), ("agents/team/a.md", "notes/m.md")] {
        fs::hard_link(work.join(file), work.join(link)).unwrap();
    }
    fs::hard_link(work.join("other.md"), work.join("same.md")).unwrap();
    let protected = vec![PathBuf::from("agents"), work.join("baton.db")];
    let (read, list) = (
        ReadFile::new(
            protected.clone(),
            DocFolders::default(),
            work.join("skills"),
            DocumentReader::default(),
        ),
        ListFiles::without(protected),
    );
    for path in [
        ".mcp.json",
        ".MCP.json",
        "baton.toml",
        "BATON.toml",
        "notes/../baton.toml",
        "baton.db",
        "notes/db.md",
        "agents/team/a.md",
        "a/team/a.md",
        "t.md",
        "b.md",
        "notes/m.md",
        work.join("agents/team/a.md").to_str().unwrap(),
    ] {
        let error = call(&read, json!({ "path": path }), &work).await.unwrap_err();
        assert_eq!(error.code(), "not_permitted", "{path}: {error}");
        assert!(!error.to_string().contains("SECRET"), "{path}: {error}");
    }
    for path in ["agents", "a", "agents/team", "agents/team/..", "a/team"] {
        assert_eq!(refusal(&list, json!({ "path": path }), &work).await, "not_permitted", "{path}");
    }
    let all = call(&list, json!({"recursive": true}), &work).await.unwrap();
    assert!(!all.contains("baton.") && !all.contains("agents") && !all.contains("mcp"), "{all}");
    let other = call(&read, json!({"path": "same.md"}), &work).await.unwrap();
    assert!(other.contains("SECRET"), "a file of the project may have two names");
    let root = call(&read, json!({"path": "proc/self/environ"}), Path::new("/")).await.unwrap_err();
    assert_eq!(root.code(), "not_permitted", "{root}");
}

/// F12: the files of a sub-agent stay in its folder, also if another agent of the thread put a link in its place.
#[tokio::test]
async fn f_12_a_subfolder_is_not_left() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    fs::write(dir.path().join("parent.txt"), "parent").unwrap();
    let workspace = |subfolder: &str| {
        let subfolder = Some(subfolder.into());
        Arc::new(CallContext { has_workspace: true, subfolder, ..context(dir.path()) })
    };
    let (read, write) = (ReadFile::default(), WriteFile::new(Vec::new()));
    let arguments = json!({"path": "a.txt", "content": "one"});
    write.call(arguments, workspace("sub/one")).await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("sub/one/a.txt")).unwrap(), "one");
    for path in ["../../parent.txt", "../one/a.txt", "/etc/hostname"] {
        let refused = read.call(json!({"path": path}), workspace("sub/one")).await.unwrap_err();
        assert_eq!(refused.code(), "not_permitted", "{path}");
    }
    symlink(outside.path(), dir.path().join("link")).unwrap();
    let refused = read.call(json!({"path": "secret.txt"}), workspace("link")).await.unwrap_err();
    assert_eq!(refused.code(), "not_permitted");
    // A protected folder of the project is none either.
    let protected = WriteFile::new(vec![dir.path().join("agents")]);
    let project = CallContext { subfolder: Some("agents".into()), ..context(dir.path()) };
    let refused =
        protected.call(json!({"path": "a.md", "content": "x"}), Arc::new(project)).await.unwrap_err();
    assert_eq!(refused.code(), "not_permitted");
}

/// D8: an image is returned as a file, known by its content; other binary files are refused as before.
#[tokio::test]
async fn d8_an_image_is_read_as_a_file() {
    let (_outer, work) = folders();
    fs::write(work.join("notes/chart"), b"\x89PNG\r\n\x1a\n\0\0 and so on").unwrap();
    fs::write(work.join("fake.png"), "only text").unwrap();
    fs::write(work.join("large.png"), [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![0; 8 << 20]].concat()).unwrap();
    let arguments = json!({"path": "notes/chart"});
    let output = ReadFile::default().call(arguments, Arc::new(context(&work))).await.unwrap();
    let [file] = &output.files[..] else { panic!("one file was expected: {output:?}") };
    assert_eq!((output.text.as_str(), file.bytes.len()), ("notes/chart is an image.", 20));
    assert!(read(&work, "fake.png").await.contains("only text"));
    assert_eq!(refusal(&ReadFile::default(), json!({"path": "large.png"}), &work).await, "limit");
}
