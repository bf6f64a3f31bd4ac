//! What is logged: one line for each event, on stderr, without secrets and addresses. `BATON_LOG` says how much.

use std::io::{IsTerminal as _, Write};

use baton_core::{Mask, sanitize};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::config::ConfigError;
use crate::progress;
use crate::report::visible;

const VARIABLE: &str = "BATON_LOG";
/// Warnings of Baton itself. What the libraries below it have to say comes back as errors.
const DEFAULT: &str = "baton=warn";

/// Logs from here on. A program that uses Baton as a library and logs already keeps its own way of doing so.
pub fn start() -> Result<(), ConfigError> {
    let level = std::env::var(VARIABLE).ok();
    let filter = filter(level.as_deref())?;
    // Who watches knows the time, and who asked for no logs does not look for a part of the program.
    let style = if level.is_none() && std::io::stderr().is_terminal() { Style::Short } else { Style::Full };
    let _ = tracing::subscriber::set_global_default(subscriber(filter, style, std::io::stderr));
    Ok(())
}

/// How much a line says beside the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Short,
    /// When, and in which part of the program.
    Full,
}

/// Lines that pass the filter, to wherever `out` writes.
fn subscriber<W>(filter: Targets, style: Style, out: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Sanitized(out));
    let lines = match style {
        Style::Short => lines.without_time().with_target(false).boxed(),
        Style::Full => lines.boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines)
}

/// `info`, or levels for parts such as `baton_engine=debug,warn`. A misspelt level would otherwise be a part's name.
fn filter(text: Option<&str>) -> Result<Targets, ConfigError> {
    let text = text.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(DEFAULT);
    let invalid = |message: String| ConfigError::Environment { name: VARIABLE.to_owned(), message };
    for part in text.split(',') {
        let level = part.rsplit('=').next().unwrap_or_default().trim();
        if level.parse::<LevelFilter>().is_err() {
            let levels = "use off, error, warn, info, debug or trace, or part=level";
            return Err(invalid(format!("`{level}` is not a level; {levels}")));
        }
    }
    text.parse().map_err(|error: tracing_subscriber::filter::ParseError| invalid(error.to_string()))
}

/// Writers that hold back one event and let through what is left of it.
struct Sanitized<W>(W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Sanitized<W> {
    type Writer = Line<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { event: Vec::new(), out: self.0.make_writer() }
    }
}

/// One event. It is written when it is complete, since a secret may come in two pieces.
struct Line<W: Write> {
    event: Vec<u8>,
    out: W,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.event.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Drop for Line<W> {
    /// A log that nobody can read must not end what is being logged.
    fn drop(&mut self) {
        let line = line(&self.event);
        progress::aside(|| {
            let _ = self.out.write_all(line.as_bytes());
        });
    }
}

/// Always a single line, so that no text can pass for another event.
fn line(event: &[u8]) -> String {
    let text = String::from_utf8_lossy(event);
    let safe = sanitize(text.trim(), Mask::Everything);
    format!("{}\n", visible(&safe).replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: Option<&str>, log: impl FnOnce()) -> String {
        styled(level, Style::Full, log)
    }

    fn styled(level: Option<&str>, style: Style, log: impl FnOnce()) -> String {
        let kept = Kept::default();
        let out = kept.clone();
        let subscriber = subscriber(filter(level).unwrap(), style, move || out.clone());
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    /// G19, H2
    #[test]
    fn g19_nobody_and_no_key_is_in_a_log() {
        let text = logged(None, || {
            let error = "401 for jane@example.com: sk-0123456789abcdefghij\npassword=hunter2";
            tracing::warn!(card = "4111 1111 1111 1111", api_key = "k-1", body = ?"{\"token\":\"t-1\"}", "{error}");
        });
        for secret in ["jane", "0123456789", "hunter2", "4111", "k-1", "t-1"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert!(text.contains("401 for [EMAIL]: [REDACTED]\\npassword=[REDACTED]"), "{text}");
        assert!(text.contains("WARN") && text.ends_with('\n') && text.lines().count() == 1, "{text}");
    }

    /// H3
    #[test]
    fn h3_fields_are_logged_by_their_names() {
        let log =
            || tracing::info!(thread_id = "t", source_agent = "a", tenant_id = "d", "Delegation started");
        assert_eq!(logged(None, log), "", "only warnings unless asked for");
        let text = logged(Some("info"), log);
        assert!(
            text.contains("Delegation started thread_id=\"t\" source_agent=\"a\" tenant_id=\"d\""),
            "{text}"
        );
        assert!(logged(Some("off,baton=info"), log).contains("Delegation started"));
        assert_eq!(logged(Some("baton_engine=trace"), log), "");
    }

    #[test]
    fn who_watches_is_told_no_more_than_what_happened() {
        let text = styled(None, Style::Short, || tracing::warn!(agent = "a", "it failed"));
        assert_eq!(text, "WARN it failed agent=\"a\"\n");
    }

    #[test]
    fn a_level_that_is_none_is_an_error_that_names_the_variable() {
        for text in ["inof", "baton=loud"] {
            let error = filter(Some(text)).unwrap_err().to_string();
            assert!(error.contains("BATON_LOG") && error.contains("is not a level"), "{error}");
        }
        assert!(filter(Some(" ")).is_ok() && filter(Some("OFF")).is_ok());
    }

    #[test]
    fn a_line_cannot_control_the_terminal() {
        assert_eq!(line(b"a\x1b[31m\n"), "a\\u{1b}[31m\n");
    }
}
