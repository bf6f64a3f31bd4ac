//! Commands on a terminal: what people see that no pipe gets.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::run::{Running, eventually, exit_code};

/// A command on a terminal, and everything that the terminal has shown so far.
pub struct Terminal {
    pub child: Running,
    keys: File,
    shown: Arc<Mutex<Vec<u8>>>,
    /// Where what was not yet waited for begins.
    from: usize,
}

impl Terminal {
    /// Runs `baton` on a terminal of this width.
    pub fn start(dir: &Path, args: &[&str], columns: u16) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let end = File::from(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let stdio = || Stdio::from(end.try_clone().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(args)
            .current_dir(dir)
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        drop(end);
        let keys = File::from(terminal);
        let mut screen = keys.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Ends with an error once nobody holds the other end.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                seen.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child: Running(child), keys, shown, from: 0 }
    }

    pub fn enter(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, after whatever was waited for before.
    pub fn expect(&mut self, text: &str) {
        let from = self.from;
        let end = eventually(text, || {
            let shown = self.shown.lock().unwrap();
            let found = shown[from..].windows(text.len()).position(|bytes| bytes == text.as_bytes());
            found.map(|at| from + at + text.len())
        });
        self.from = end;
    }

    /// Waits for the end. Returns everything that was shown, and the exit code.
    pub fn end(mut self) -> (String, i32) {
        let code = exit_code(&mut self.child).unwrap();
        let shown = eventually("the terminal is closed", || {
            (Arc::strong_count(&self.shown) == 1).then(|| self.shown.lock().unwrap().clone())
        });
        (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), code)
    }
}

/// Runs `baton` on a terminal of this width, types `input`, and returns what the terminal showed and the exit code.
pub fn on_terminal(dir: &Path, args: &[&str], columns: u16, input: &str) -> (String, i32) {
    let mut terminal = Terminal::start(dir, args, columns);
    terminal.enter(input);
    terminal.end()
}
