//! What asks a command to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;
use crate::progress;

/// The signals that ask a command to end.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Absent under `nohup`, and in a server.
    hang_up: Option<Signal>,
    /// As an exit code.
    pub(crate) first: Option<Exit>,
}

pub(crate) enum ShutdownRequest {
    ToEnd,
    ToQuit(Exit),
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        let hang_up = if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
            first: None,
        })
    }

    /// The same for a server: SIGHUP does not end it, but is returned separately, also under `nohup`.
    pub(crate) fn listen_with_reload() -> std::io::Result<(Self, Signal)> {
        let reload = signal(SignalKind::hangup())?;
        let signals = Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: None,
            first: None,
        };
        Ok((signals, reload))
    }

    /// Whichever comes next, as an exit code.
    pub(crate) async fn any(&mut self) -> Exit {
        let hung_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {
                progress::interrupted();
                Exit::Interrupted
            }
            _ = self.terminate.recv() => Exit::Terminated,
            _ = hung_up => Exit::HungUp,
        }
    }

    pub(crate) async fn next(&mut self) -> ShutdownRequest {
        let exit = self.any().await;
        match self.first.replace(exit) {
            None => ShutdownRequest::ToEnd,
            Some(_) => ShutdownRequest::ToQuit(exit),
        }
    }

    pub(crate) async fn second(&mut self) -> Exit {
        loop {
            if let ShutdownRequest::ToQuit(exit) = self.next().await {
                return exit;
            }
        }
    }
}

/// A command under `nohup` has to outlive the terminal. Known only where there is a `/proc`.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
