//! Commands on a terminal: what people see that no pipe gets.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs `baton` on a terminal of this width, types `input`, and returns what the terminal showed and the exit code.
pub fn on_terminal(dir: &Path, args: &[&str], columns: u16, input: &str) -> (String, i32) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let end = File::from(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
    tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let stdio = || Stdio::from(end.try_clone().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
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
    let mut terminal = File::from(terminal);
    terminal.write_all(input.as_bytes()).unwrap();
    let mut shown = Vec::new();
    // Ends with an error once nobody holds the other end.
    let _ = terminal.read_to_end(&mut shown);
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), child.wait().unwrap().code().unwrap())
}
