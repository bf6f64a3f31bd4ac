//! What is logged: one line for each event, on stderr, without secrets and personal data. `BATON_LOG` says how much,
//! `BATON_LOG_FORMAT` in which form: text for people, or JSON ([`json`]). A server never waits for the reader of its log ([`queue`]).

mod json;
mod queue;

use std::io::{IsTerminal as _, Write};
use std::sync::OnceLock;

use baton_core::choice::Choice as _;
use baton_engine::telemetry::{CONTEXT, TARGET};
use baton_sanitize::{Mask, sanitize};
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, registry};

use crate::config::{ConfigError, LogFormat, Telemetry};
use crate::progress;
use crate::report::{self, visible};
use crate::telemetry::{Exporter, Spans};
use json::Json;
use queue::LineQueue;

const VARIABLE: &str = "BATON_LOG";
const FORMAT: &str = "BATON_LOG_FORMAT";

/// The default log filter. Libraries report through errors, so their own logs are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    /// A command says what it has to say; its logs are for what is wrong.
    Warnings,
    /// A server has no other way to say what it does.
    Everything,
}

impl Usual {
    fn directive(self) -> &'static str {
        match self {
            Self::Warnings => "baton=warn",
            Self::Everything => "baton=info",
        }
    }
}

/// Logs from here on, and sends spans if there is a collector for them. A program that uses Baton as a library and logs already keeps
/// its own way of doing so.
pub fn start(settings: &Telemetry, usual: Usual, traces: Option<&Exporter>) -> Result<LogGuard, ConfigError> {
    let configured = settings.log_level.map(|level| format!("baton={}", level.word()));
    let level = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()).or(configured);
    let filter = filter(level.as_deref(), usual)?;
    let style = match asked_format()?.unwrap_or(settings.log_format) {
        LogFormat::Json => Style::Json,
        // Who watches knows the time, and who asked for no logs does not look for a part of the program.
        LogFormat::Text if level.is_none() && std::io::stderr().is_terminal() => Style::Short,
        LogFormat::Text => Style::Full,
    };
    let spans = traces.map(Exporter::spans);
    let queue = match usual {
        Usual::Everything => LineQueue::start(std::io::stderr(), style.notice()).ok(),
        Usual::Warnings => None,
    };
    let dispatch = match queue.clone() {
        Some(queue) => dispatch(filter, style, move || queue.clone(), spans),
        None => dispatch(filter, style, std::io::stderr, spans),
    };
    let _ = tracing::dispatcher::set_global_default(dispatch);
    if let Some(queue) = queue {
        let _ = QUEUE.set(queue);
    }
    Ok(LogGuard(()))
}

/// The queue of a server's log.
static QUEUE: OnceLock<LineQueue> = OnceLock::new();

/// Writes the last lines when dropped, at the end of the command.
#[derive(Debug)]
#[must_use = "lines that wait are lost at the end without it"]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        if let Some(queue) = QUEUE.get() {
            queue.flush();
        }
    }
}

/// Writes a sentence for people between the lines of the log, without waiting for the reader of a server's.
pub fn tell(text: &str) {
    match QUEUE.get() {
        Some(queue) => queue.send(format!("{text}\n").into_bytes()),
        None => report::tell(text),
    }
}

fn asked_format() -> Result<Option<LogFormat>, ConfigError> {
    let asked = std::env::var(FORMAT).ok().filter(|text| !text.trim().is_empty());
    let parse = |text: String| {
        let message = format!("`{text}` is not a form of logs; use text or json");
        LogFormat::parse(text.trim()).ok_or(ConfigError::Environment { name: FORMAT.to_owned(), message })
    };
    asked.map(parse).transpose()
}

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Nothing but the event.
    Short,
    /// Also when, and in which part of the program.
    Full,
    Json,
}

impl Style {
    /// The line in place of those that were dropped.
    fn notice(self) -> queue::Notice {
        match self {
            Self::Short | Self::Full => |count| format!("WARN {count} {DROPPED}\n"),
            Self::Json => |count| {
                let at = jiff::Timestamp::now();
                let line = serde_json::json!({
                    "timestamp": at, "level": "WARN", "target": module_path!(), "message": DROPPED,
                    "fields": { "dropped": count },
                });
                format!("{line}\n")
            },
        }
    }
}

const DROPPED: &str = "log lines were dropped, because stderr is not read fast enough";

/// Lines that pass the filter, to wherever `out` writes, and spans to where they are sent.
fn dispatch<W>(filter: Targets, style: Style, out: W, spans: Option<Spans>) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Lines are about what happened. Of spans they know no more than to which run or request they belong.
    let filter = filter.with_target(TARGET, LevelFilter::OFF);
    let filter = if style == Style::Json { filter.with_target(CONTEXT, LevelFilter::INFO) } else { filter };
    match spans {
        // One filter for all is decided once for each place in the program: a disabled call site costs nothing.
        None => Dispatch::new(registry().with(filter).with(lines(style, out))),
        Some(spans) => {
            let all = Targets::new().with_target(TARGET, LevelFilter::INFO);
            let lines = lines(style, out).with_filter(filter);
            Dispatch::new(registry().with(lines).with(spans.with_filter(all)))
        }
    }
}

fn lines<S, W>(style: Style, out: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let text = |out| tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Sanitized(out));
    match style {
        Style::Short => text(out).without_time().with_target(false).boxed(),
        Style::Full => text(out).boxed(),
        Style::Json => Json(out).boxed(),
    }
}

/// `info`, or levels for parts such as `baton_engine=debug,warn`. A misspelt level would otherwise be a part's name.
fn filter(text: Option<&str>, usual: Usual) -> Result<Targets, ConfigError> {
    let text = text.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(usual.directive());
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
    type Writer = LogLine<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        LogLine { event: Vec::new(), out: self.0.make_writer() }
    }
}

/// One event. It is written when it is complete, since a secret may come in two pieces.
struct LogLine<W: Write> {
    event: Vec<u8>,
    out: W,
}

impl<W: Write> Write for LogLine<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.event.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Drop for LogLine<W> {
    /// A failing log output must not end the program.
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

    use baton_engine::telemetry::TRACE;
    use serde_json::{Value, json};

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
        let filter = filter(level, Usual::Warnings).unwrap();
        let dispatch = dispatch(filter, style, move || out.clone(), None);
        tracing::dispatcher::with_default(&dispatch, log);
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
            let error = filter(Some(text), Usual::Warnings).unwrap_err().to_string();
            assert!(error.contains("BATON_LOG") && error.contains("is not a level"), "{error}");
        }
        let is_ok = |text| filter(Some(text), Usual::Warnings).is_ok();
        assert!(is_ok(" ") && is_ok("OFF"));
    }

    #[test]
    fn a_line_cannot_control_the_terminal() {
        assert_eq!(line(b"a\x1b[31m\n"), "a\\u{1b}[31m\n");
    }

    fn as_json(level: Option<&str>, log: impl FnOnce()) -> Value {
        let text = styled(level, Style::Json, log);
        assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// G19, H2: values are masked, not the bytes of the line, so it stays JSON.
    #[test]
    fn g19_a_line_of_json_is_masked_value_by_value() {
        let line = as_json(None, || {
            let error = "401 for jane@example.com: sk-0123456789abcdefghij\npassword=hunter2\u{1b}[31m\u{9b}";
            tracing::warn!(
                card = 4_111_111_111_111_111_u64, api_key = "k\"-1", password = 471_147, body = ?"{\"token\":\"t-1\"}", "{error}"
            );
        });
        let text = line.to_string();
        for secret in ["jane", "0123456789", "hunter2", "4111", "k\\", "471147", "t-1", "\u{9b}"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(line["fields"]["api_key"], "[REDACTED]");
        assert_eq!(line["fields"]["card"], "[CARD]");
        assert!(line["message"].as_str().unwrap().starts_with("401 for [EMAIL]: [REDACTED]"), "{text}");
    }

    /// H3: a line says to which run it belongs, by its own fields or by the run around it.
    #[test]
    fn h3_a_line_of_json_knows_its_place() {
        let line = as_json(Some("info"), || {
            let run = tracing::info_span!(
                target: CONTEXT, "run", { TRACE } = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                baton.run.id = "r", baton.tenant.id = "acme", gen_ai.conversation.id = "t"
            );
            let _chat =
                tracing::info_span!(target: TARGET, parent: &run, "chat", baton.run.id = "unseen").entered();
            let _within = run.entered();
            tracing::info!(
                thread_id = "t",
                source_agent = "a",
                turns = 3,
                is_last = true,
                "Delegation started"
            );
        });
        let expected = json!({
            "level": "INFO", "target": "baton::logs::tests", "message": "Delegation started",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "tenant_id": "acme", "thread_id": "t", "run_id": "r",
            "fields": { "source_agent": "a", "turns": 3, "is_last": true }
        });
        let mut line = line;
        let at = line.as_object_mut().unwrap().shift_remove("timestamp").unwrap();
        assert!(at.as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        assert_eq!(line, expected);
    }

    /// Lines for people are the same whether or not they are written within a run.
    #[test]
    fn spans_are_not_in_lines_of_text() {
        let text = styled(Some("trace"), Style::Short, || {
            let run = tracing::info_span!(target: CONTEXT, "run", baton.run.id = "r");
            assert!(run.is_disabled(), "disabled, so it costs nothing");
            run.in_scope(|| tracing::info!("it happened"));
        });
        assert_eq!(text, "INFO it happened\n");
    }
}
