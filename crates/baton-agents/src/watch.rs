//! Keeps a roster fresh while its files change.

mod links;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use links::{Links, absolute};

use crate::known::KnownNames;
use crate::roster::{Rejected, Roster, Strictness};

/// Editors write a file in several steps; reading waits until they are quiet for this long,
const QUIET: Duration = Duration::from_millis(80);
/// but no longer than this.
const PATIENCE: Duration = Duration::from_millis(400);
/// How often a folder that has gone is looked for.
const RETRY: Duration = Duration::from_millis(500);

/// What came of a change.
#[derive(Debug)]
pub enum Reload {
    Loaded(Arc<Roster>),
    /// The files are broken; the last good roster stays in use.
    Kept(Rejected),
}

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Rejected(#[from] Rejected),
    #[error("cannot watch the agent folders: {0}")]
    Notify(#[from] notify::Error),
    #[error("cannot start the watching thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A roster that follows its files. Owns its thread: dropping it ends the watching.
#[derive(Debug)]
pub struct Watch {
    current: Arc<ArcSwap<Roster>>,
    stopped: Arc<AtomicBool>,
    wake: SyncSender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Loads the roster and starts watching. `on_reload` is told about every reload, good or broken.
    pub fn start(
        dirs: Vec<PathBuf>,
        known: KnownNames,
        strictness: Strictness,
        on_reload: impl Fn(Reload) + Send + 'static,
    ) -> Result<Self, WatchError> {
        Self::begin(dirs, known, strictness, None, on_reload)
    }

    /// The same with a roster that is in use while the files are broken or a folder is missing, also at the start.
    pub fn start_with(
        dirs: Vec<PathBuf>,
        known: KnownNames,
        strictness: Strictness,
        fallback: Arc<Roster>,
        on_reload: impl Fn(Reload) + Send + 'static,
    ) -> Result<Self, WatchError> {
        Self::begin(dirs, known, strictness, Some(fallback), on_reload)
    }

    fn begin(
        dirs: Vec<PathBuf>,
        known: KnownNames,
        strictness: Strictness,
        fallback: Option<Arc<Roster>>,
        on_reload: impl Fn(Reload) + Send + 'static,
    ) -> Result<Self, WatchError> {
        // One place is enough: it says that something changed, not what.
        let (wake, changes) = sync_channel(1);
        let signal = wake.clone();
        let scope = Arc::new(WatchScope::of(&dirs));
        let seen_by = Arc::clone(&scope);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file is an event too, and must not cause another reading.
            if event.map_or(true, |event| !event.kind.is_access() && seen_by.concerns(&event)) {
                let _ = signal.try_send(());
            }
        })?;
        let mut watching = Watching { dirs: dirs.clone(), watcher, scope };
        // Watching begins before reading, so that no change falls between the two.
        let all_watched = match &fallback {
            None => watching.begin().map(|()| true)?,
            Some(_) => watching.again(),
        };
        let roster = match (Roster::load(&dirs, &known, strictness), fallback) {
            (Ok(roster), _) => Arc::new(roster),
            (Err(rejected), None) => return Err(rejected.into()),
            (Err(rejected), Some(fallback)) => {
                on_reload(Reload::Kept(rejected));
                fallback
            }
        };
        let current = Arc::new(ArcSwap::new(roster));
        let stopped = Arc::new(AtomicBool::new(false));
        let worker = WatchWorker {
            dirs,
            known,
            strictness,
            watching,
            all_watched,
            current: Arc::clone(&current),
            stopped: Arc::clone(&stopped),
        };
        let thread = std::thread::Builder::new()
            .name("baton-watch".into())
            .spawn(move || worker.run(&changes, on_reload))?;
        Ok(Self { current, stopped, wake, thread: Some(thread) })
    }

    /// Reads the files again, as if one had changed. Returns at once.
    pub fn reload(&self) {
        // Full: a reload is due already.
        let _ = self.wake.try_send(());
    }

    /// The last good roster. Cheap; hold the result for as long as one consistent view is needed.
    pub fn current(&self) -> Arc<Roster> {
        self.current.load_full()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        let _ = self.wake.try_send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Which changes matter. Folders around links are watched too, and most of what happens there does not.
#[derive(Debug)]
struct WatchScope {
    /// As they are written and as they really are: platforms differ in what they report.
    dirs: Vec<PathBuf>,
    links: Mutex<Links>,
}

impl WatchScope {
    fn of(dirs: &[PathBuf]) -> Self {
        let real = dirs.iter().filter_map(|dir| dir.canonicalize().ok());
        let dirs = dirs.iter().map(|dir| absolute(dir)).chain(real).collect();
        Self { dirs, links: Mutex::default() }
    }

    fn concerns(&self, event: &notify::Event) -> bool {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let matters = |path: &PathBuf| self.is_inside(path) || links.paths.contains(path);
        // An event without a path says that others were lost.
        event.paths.is_empty() || event.paths.iter().any(matters)
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir))
    }
}

/// The watcher and what it watches.
struct Watching {
    dirs: Vec<PathBuf>,
    watcher: RecommendedWatcher,
    scope: Arc<WatchScope>,
}

impl Watching {
    fn begin(&mut self) -> notify::Result<()> {
        for dir in &self.dirs {
            self.watcher.watch(dir, RecursiveMode::Recursive)?;
        }
        self.follow_links();
        Ok(())
    }

    /// A folder that was deleted and made again, or a link that leads elsewhere, has lost its watch. Watching twice
    /// changes nothing.
    fn again(&mut self) -> bool {
        let mut all = true;
        for dir in &self.dirs {
            all &= dir.exists() && self.watcher.watch(dir, RecursiveMode::Recursive).is_ok();
        }
        self.follow_links();
        all
    }

    /// A link that leads nowhere is the reader's to report.
    fn follow_links(&mut self) {
        let links = Links::of(&self.dirs);
        for folder in links.folders().into_iter().filter(|folder| !self.scope.is_inside(folder)) {
            let _ = self.watcher.watch(folder, RecursiveMode::NonRecursive);
        }
        *self.scope.links.lock().unwrap_or_else(PoisonError::into_inner) = links;
    }
}

struct WatchWorker {
    dirs: Vec<PathBuf>,
    known: KnownNames,
    strictness: Strictness,
    watching: Watching,
    all_watched: bool,
    current: Arc<ArcSwap<Roster>>,
    stopped: Arc<AtomicBool>,
}

impl WatchWorker {
    fn run(mut self, changes: &Receiver<()>, on_reload: impl Fn(Reload)) {
        let mut all_watched = self.all_watched;
        loop {
            let woken = if all_watched {
                changes.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                changes.recv_timeout(RETRY)
            };
            if woken == Err(RecvTimeoutError::Disconnected) || self.stopped.load(Ordering::Acquire) {
                return;
            }
            settle(changes);
            let was_watched = std::mem::replace(&mut all_watched, self.watching.again());
            // While a folder is missing there is nothing new to say until it is back.
            if woken.is_ok() || all_watched != was_watched {
                on_reload(self.reload());
            }
        }
    }

    fn reload(&self) -> Reload {
        match Roster::load(&self.dirs, &self.known, self.strictness) {
            Ok(roster) => {
                let roster = Arc::new(roster);
                self.current.store(Arc::clone(&roster));
                Reload::Loaded(roster)
            }
            Err(rejected) => Reload::Kept(rejected),
        }
    }
}

/// Waits until nothing has changed for a moment.
fn settle(changes: &Receiver<()>) {
    let deadline = Instant::now() + PATIENCE;
    while changes.recv_timeout(QUIET).is_ok() {
        if Instant::now() >= deadline {
            return;
        }
    }
}
