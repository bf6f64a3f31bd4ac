//! Long outputs are kept for their run, and for nobody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::{CallContext, RunId, TenantId, Tool, ToolError};
use baton_tools::Outputs;
use baton_tools::read_output::ReadOutput;
use serde_json::json;

use crate::context;

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { vec![entry.path()] })
        .collect()
}

fn handle(text: &str) -> String {
    let start = text.find("out_").expect("a handle");
    text[start..start + 36].to_owned()
}

async fn read(
    outputs: &Outputs,
    context: &CallContext,
    handle: &str,
    offset: usize,
) -> Result<String, ToolError> {
    let arguments = json!({"handle": handle, "offset": offset});
    ReadOutput::new(outputs.clone())
        .call(arguments, Arc::new(context.clone()))
        .await
        .map(|output| output.text)
}

#[tokio::test]
async fn short_texts_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let outputs = Outputs::new(dir.path(), 10);
    assert_eq!(outputs.fit(&context(dir.path()), "0123456789".to_owned()).await, "0123456789");
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn long_texts_are_read_to_the_last_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (outputs, context) = (Outputs::new(dir.path(), 1_000), context(dir.path()));
    let _run = outputs.open(&context.tenant, context.run_id);
    let whole: String = (0..9_000).map(|n| format!("zeile {n} ä€🎷\n")).collect();
    let fitted = outputs.fit(&context, whole.clone()).await;
    let (shown, hint) = fitted.split_once("\n\n[").unwrap();
    assert!(shown.len() <= 1_000 && whole.starts_with(shown));
    let (at, hint) = hint.strip_prefix("The first ").and_then(|hint| hint.split_once(' ')).unwrap();
    assert!(hint.starts_with(&format!("of {} bytes", whole.len())), "{hint}");
    let mut read_back = whole[..at.parse::<usize>().unwrap()].to_owned();
    while read_back.len() < whole.len() {
        let page = read(&outputs, &context, &handle(&fitted), read_back.len()).await.unwrap();
        assert!(page.len() < 16 * 1024);
        let (_, text) = page.split_once("\n\n").unwrap();
        assert!(!text.is_empty());
        read_back += text;
    }
    assert_eq!(read_back, whole);
    let end = read(&outputs, &context, &handle(&fitted), usize::MAX).await.unwrap();
    assert!(end.contains("this is the end"), "{end}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let kept = &files(dir.path())[0];
    assert_eq!((mode(kept), mode(kept.parent().unwrap())), (0o600, 0o700));
}

#[tokio::test]
async fn pages_begin_and_end_between_characters() {
    let dir = tempfile::tempdir().unwrap();
    let (outputs, context) = (Outputs::new(dir.path(), 8), context(dir.path()));
    let _run = outputs.open(&context.tenant, context.run_id);
    let whole = "🎷".repeat(50);
    let handle = handle(&outputs.fit(&context, whole.clone()).await);
    for offset in 0..=whole.len() {
        for limit in 1..=9 {
            let slice = outputs.read(&context, &handle, offset, limit).unwrap().unwrap();
            assert_eq!(whole.get(slice.start..slice.end), Some(slice.text.as_str()), "{offset} {limit}");
            assert!(slice.end > offset || offset > whole.len() - 4, "{offset} {limit}");
        }
    }
}

#[tokio::test]
async fn handles_of_others_do_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let (outputs, own) = (Outputs::new(dir.path(), 10), context(dir.path()));
    let run = outputs.open(&own.tenant, own.run_id);
    let handle = handle(&outputs.fit(&own, "x".repeat(100)).await);
    let other_tenant = CallContext { tenant: TenantId::parse("evil").unwrap(), ..own.clone() };
    let other_run =
        CallContext { run_id: RunId::parse("01890a5d-ac96-774b-bcce-b302099a8058").unwrap(), ..own.clone() };
    let _runs = [&other_tenant, &other_run].map(|other| outputs.open(&other.tenant, other.run_id));
    assert!(read(&outputs, &own, &handle, 0).await.is_ok());
    for other in [&other_tenant, &other_run] {
        let error = read(&outputs, other, &handle, 0).await.unwrap_err();
        assert_eq!(error.to_string(), format!("failed: there is no output `{handle}`"));
    }
    for wrong in ["", ".", "..", "../x", "/etc/passwd", &handle[..35]] {
        assert!(read(&outputs, &own, wrong, 0).await.is_err(), "{wrong}");
    }
    drop(run);
    assert!(read(&outputs, &own, &handle, 0).await.is_err());
    assert!(files(dir.path()).is_empty(), "what a run kept goes with it");
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (outputs, context) = (Outputs::new(dir.path(), 1_000), context(dir.path()));
    let late = outputs.fit(&context, "x".repeat(5_000)).await;
    assert!(
        late.ends_with("[The first 1000 of 5000 bytes. The rest was not kept; ask for less at a time.]"),
        "{late}"
    );
    let run = outputs.open(&context.tenant, context.run_id);
    let fitted = outputs.fit(&context, "x".repeat(100_000_000)).await;
    assert!(fitted.contains("The last 91611392 bytes were dropped."), "{}", &fitted[1_000..]);
    let size = |dir: &Path| files(dir).iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>();
    assert_eq!(size(dir.path()), 8 * 1024 * 1024);
    for _ in 0..20 {
        outputs.fit(&context, "x".repeat(8 * 1024 * 1024)).await;
    }
    assert_eq!(size(dir.path()), 128 * 1024 * 1024);
    drop(run);
    drop(outputs);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
