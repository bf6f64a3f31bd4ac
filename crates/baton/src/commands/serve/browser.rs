//! `baton serve --open`: shows the web page in the default browser.

use std::env;
use std::process::Stdio;

use tokio::process::Command;

use crate::report;

/// Commands to try in order, separated by colons; `%s` is replaced by the address; without it the address is appended.
const VARIABLE: &str = "BROWSER";
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Starts the browser and waits until the command that starts it has ended. A failure is a notice: the server runs without it.
pub async fn open(url: String) {
    let named = env::var(VARIABLE).unwrap_or_default();
    let mut failed = String::new();
    for words in commands(&named, &url) {
        match start(&words).await {
            Ok(()) => return,
            Err(error) => failed = format!("{}: {error}", words[0]),
        }
    }
    report::tell(&format!("could not open a browser ({}); open {url} yourself", report::visible(&failed)));
}

/// Each command with its arguments. None is empty.
fn commands(named: &str, url: &str) -> Vec<Vec<String>> {
    let listed = named.split(':').map(|command| {
        let mut words: Vec<String> = command.split_whitespace().map(|word| word.replace("%s", url)).collect();
        if !command.contains("%s") && !words.is_empty() {
            words.push(url.to_owned());
        }
        words
    });
    let mut all: Vec<Vec<String>> = listed.filter(|words| !words.is_empty()).collect();
    if all.is_empty() {
        all.push(vec![OPENER.to_owned(), url.to_owned()]);
    }
    all
}

/// Detached: in a process group of its own, so that Ctrl-C ends the server and not the browser, and without the terminal.
async fn start(words: &[String]) -> std::io::Result<()> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    command.process_group(0);
    let status = command.spawn()?.wait().await?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_lists_commands_with_or_without_a_place_for_the_address() {
        let check = |named: &str, expected: &[&[&str]]| {
            assert_eq!(commands(named, "http://x:1"), expected, "{named:?}");
        };
        check("", &[&[OPENER, "http://x:1"]]);
        check(" : ", &[&[OPENER, "http://x:1"]]);
        check("firefox", &[&["firefox", "http://x:1"]]);
        check("a --new %s:b", &[&["a", "--new", "http://x:1"], &["b", "http://x:1"]]);
        check("c --url=%s", &[&["c", "--url=http://x:1"]]);
    }
}
