//! Hot reload with real files.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use baton_agents::{KnownNames, Reload, Strictness, Watch};

use crate::name;

/// How long a reload may take before the test gives up. A reload is due within a second; `make bench` measures it.
const PATIENCE: Duration = Duration::from_secs(30);

fn write(dir: &Path, file: &str, description: &str, head: &str) {
    let text = format!("---\ndescription: {description}\n{head}\n---\nHelp.\n");
    std::fs::write(dir.join(file), text).unwrap();
}

fn start(dir: &Path) -> (Watch, Receiver<Reload>) {
    let (tell, told) = channel();
    let on_reload = move |reload| drop(tell.send(reload));
    (Watch::start(vec![dir.to_owned()], KnownNames::default(), Strictness::Lenient, on_reload).unwrap(), told)
}

/// Waits for the first reload that `wanted` accepts; writing a file may cause more than one.
fn until<T>(told: &Receiver<Reload>, wanted: impl Fn(Reload) -> Option<T>) -> T {
    loop {
        let reload = told.recv_timeout(PATIENCE).expect("a reload");
        if let Some(found) = wanted(reload) {
            return found;
        }
    }
}

fn loaded(reload: Reload) -> Option<Arc<baton_agents::Roster>> {
    match reload {
        Reload::Loaded(roster) => Some(roster),
        Reload::Kept(_) => None,
    }
}

#[test]
fn an_edit_is_loaded_and_the_old_roster_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.md", "Before.", "");
    let (watch, told) = start(dir.path());
    let before = watch.current();
    write(dir.path(), "a.md", "After.", "version: 2.0.0");
    let after = until(&told, |reload| {
        loaded(reload)
            .filter(|roster| roster.get(&name("a")).is_some_and(|agent| agent.description == "After."))
    });
    assert!(Arc::ptr_eq(&after, &watch.current()));
    assert_eq!(after.get(&name("a")).unwrap().version.to_string(), "2.0.0");
    // Whoever began with the old version goes on with it.
    assert_eq!(before.get(&name("a")).unwrap().description, "Before.");
}

#[test]
fn a_broken_edit_keeps_the_last_good_roster_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.md", "Good.", "");
    let (watch, told) = start(dir.path());
    write(dir.path(), "a.md", "Broken.", "handoff: nobody");
    let rejected = until(&told, |reload| match reload {
        Reload::Kept(rejected) if rejected.to_string().contains("nobody") => Some(rejected),
        _ => None,
    });
    assert!(
        rejected.problems.iter().any(|problem| problem.location.to_string().ends_with("a.md:3:10")),
        "{rejected}"
    );
    assert_eq!(watch.current().get(&name("a")).unwrap().description, "Good.");
    write(dir.path(), "a.md", "Mended.", "");
    until(&told, |reload| {
        loaded(reload).filter(|roster| roster.get(&name("a")).is_some_and(|a| a.description == "Mended."))
    });
    assert_eq!(watch.current().get(&name("a")).unwrap().description, "Mended.");
}

#[test]
fn files_come_go_and_are_replaced_as_editors_do() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.md", "A.", "");
    let (watch, told) = start(dir.path());
    std::fs::create_dir(dir.path().join("more")).unwrap();
    write(&dir.path().join("more"), "b.md", "B.", "");
    until(&told, |reload| loaded(reload).filter(|roster| roster.len() == 2));
    // Write beside, then rename over: what most editors do.
    write(dir.path(), "a.tmp", "Renamed.", "");
    std::fs::rename(dir.path().join("a.tmp"), dir.path().join("a.md")).unwrap();
    until(&told, |reload| {
        loaded(reload).filter(|roster| roster.get(&name("a")).unwrap().description == "Renamed.")
    });
    std::fs::remove_dir_all(dir.path().join("more")).unwrap();
    until(&told, |reload| loaded(reload).filter(|roster| roster.len() == 1));
    assert_eq!(watch.current().len(), 1);
}

#[test]
fn a_folder_that_is_deleted_and_made_again_is_watched_again() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("agents");
    std::fs::create_dir(&dir).unwrap();
    write(&dir, "a.md", "First.", "");
    let (watch, told) = start(&dir);
    std::fs::remove_dir_all(&dir).unwrap();
    until(&told, |reload| matches!(reload, Reload::Kept(_)).then_some(()));
    assert_eq!(watch.current().get(&name("a")).unwrap().description, "First.");
    std::fs::create_dir(&dir).unwrap();
    write(&dir, "a.md", "Second.", "");
    let second = |roster: &Arc<baton_agents::Roster>| {
        roster.get(&name("a")).is_some_and(|a| a.description == "Second.")
    };
    until(&told, |reload| loaded(reload).filter(second));
    write(&dir, "a.md", "Third.", "");
    until(&told, |reload| {
        loaded(reload).filter(|roster| roster.get(&name("a")).is_some_and(|a| a.description == "Third."))
    });
}

/// Waits until agent `a` has this description.
#[cfg(unix)]
fn until_described(told: &Receiver<Reload>, description: &str) {
    let is_described = |roster: &Arc<baton_agents::Roster>| {
        roster.get(&name("a")).is_some_and(|agent| agent.description == description)
    };
    until(told, |reload| loaded(reload).filter(is_described));
}

#[cfg(unix)]
#[test]
fn a_folder_behind_a_link_is_swapped() {
    use std::os::unix::fs::symlink;
    let parent = tempfile::tempdir().unwrap();
    for release in ["one", "two"] {
        std::fs::create_dir_all(parent.path().join(release).join("agents")).unwrap();
        write(&parent.path().join(release).join("agents"), "a.md", release, "");
    }
    let current = parent.path().join("current");
    symlink("one", &current).unwrap();
    let (_watch, told) = start(&current.join("agents"));
    symlink("two", parent.path().join("next")).unwrap();
    std::fs::rename(parent.path().join("next"), &current).unwrap();
    until_described(&told, "two");
    write(&parent.path().join("two/agents"), "a.md", "three", "");
    until_described(&told, "three");
}

#[cfg(unix)]
#[test]
fn the_target_of_a_linked_file_is_edited_and_replaced() {
    use std::os::unix::fs::symlink;
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(elsewhere.path(), "shared.md", "one", "");
    symlink(elsewhere.path().join("shared.md"), dir.path().join("a.md")).unwrap();
    let (_watch, told) = start(dir.path());
    write(elsewhere.path(), "shared.md", "two", "");
    until_described(&told, "two");
    write(elsewhere.path(), "new", "three", "");
    std::fs::rename(elsewhere.path().join("new"), elsewhere.path().join("shared.md")).unwrap();
    until_described(&told, "three");
}

#[test]
fn dropping_the_watch_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.md", "A.", "");
    let (watch, told) = start(dir.path());
    drop(watch);
    // The thread has been joined, so its end of the channel is gone.
    assert!(told.iter().count() < 10);
}

#[test]
fn a_watch_does_not_start_on_broken_files() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.md", "A.", "handoff: nobody");
    let error = Watch::start(vec![dir.path().to_owned()], KnownNames::default(), Strictness::Lenient, |_| {})
        .unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
}
