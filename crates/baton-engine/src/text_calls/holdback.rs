//! Holds back the part of a streamed reply that may turn out to be a tool call. Prose is published without delay.

use baton_core::ToolSpec;

use super::{
    ARGUMENT_KEYS, CALL_LANGUAGES, FENCE, JSON_LANGUAGES, MAX_BYTES, NAME_KEYS, OTHER_KEYS, WRAPPER_KEYS,
    spelled, tags,
};

/// Bytes of a block's beginning that are looked at.
const MAX_HEAD_BYTES: usize = 512;
/// A block that is still undecided after this many bytes is taken for text.
const MAX_UNDECIDED_BYTES: usize = 4 * 1024;

/// Which part of a reply may be published.
#[derive(Debug)]
pub(crate) struct HoldBack {
    /// The names of the offered tools, as [`spelled`].
    names: Vec<String>,
    state: HoldState,
}

#[derive(Debug, Clone, Copy)]
enum HoldState {
    /// The beginning of the reply.
    Start,
    /// A text. The search for the end of the current line continues at `searched`.
    Line { searched: usize },
    /// A line of the text begins here and may open a code fence.
    LineStart(usize),
    /// A call seems to begin here.
    Held(usize),
    /// A text that contains no call any more.
    Free,
}

/// What the beginning of a block looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// Too short to tell.
    Undecided,
    Call,
    Text,
}

impl HoldBack {
    pub(crate) fn new(tools: &[&ToolSpec]) -> Self {
        Self { names: tools.iter().map(|tool| spelled(&tool.name)).collect(), state: HoldState::Start }
    }

    /// Returns how many bytes of the reply may be published, given all of it so far. The total time is linear in the length of the
    /// reply.
    pub(crate) fn publishable(&mut self, reply: &str) -> usize {
        loop {
            match self.state {
                HoldState::Free => return reply.len(),
                HoldState::Held(at) => {
                    if reply.len() - at <= MAX_BYTES {
                        return at;
                    }
                    self.state = HoldState::Free;
                }
                HoldState::Start => match self.head(reply.trim_start()) {
                    Head::Undecided if reply.len() <= MAX_UNDECIDED_BYTES => return 0,
                    Head::Undecided => self.state = HoldState::Free,
                    Head::Call => self.state = HoldState::Held(0),
                    Head::Text => self.state = text_state(reply),
                },
                HoldState::Line { searched } => match reply[searched..].find('\n') {
                    Some(found) => self.state = HoldState::LineStart(searched + found + 1),
                    None => {
                        self.state = HoldState::Line { searched: reply.len() };
                        return reply.len();
                    }
                },
                HoldState::LineStart(at) => match self.line_head(&reply[at..]) {
                    Head::Undecided if reply.len() - at <= MAX_UNDECIDED_BYTES => return at,
                    Head::Undecided => self.state = HoldState::Free,
                    Head::Call => self.state = HoldState::Held(at),
                    // A second block is never executed.
                    Head::Text if opens_fence(&reply[at..]) => self.state = HoldState::Free,
                    Head::Text => self.state = HoldState::Line { searched: at },
                },
            }
        }
    }

    /// The beginning of a reply.
    fn head(&self, body: &str) -> Head {
        let body = &body[..body.floor_char_boundary(MAX_HEAD_BYTES)];
        match body.chars().next() {
            None => Head::Undecided,
            Some('`') => self.fence(body, CALL_LANGUAGES),
            Some(_) => self.content(body),
        }
    }

    /// The beginning of a line after a text. Only a fence with JSON counts there.
    fn line_head(&self, line: &str) -> Head {
        let line = line.trim_start_matches(' ');
        let line = &line[..line.floor_char_boundary(MAX_HEAD_BYTES)];
        match line.chars().next() {
            None => Head::Undecided,
            Some('`') => self.fence(line, JSON_LANGUAGES),
            Some(_) => Head::Text,
        }
    }

    fn fence(&self, body: &str, languages: &[&str]) -> Head {
        let Some(after) = body.strip_prefix(FENCE) else {
            return if FENCE.starts_with(body) { Head::Undecided } else { Head::Text };
        };
        match after.split_once('\n') {
            None => begins_one_of(after.trim(), languages.iter().copied()),
            Some((language, _)) if !languages.contains(&language.trim()) => Head::Text,
            Some((_, content)) => match content.trim_start() {
                "" => Head::Undecided,
                content => self.content(content),
            },
        }
    }

    /// The beginning of JSON, a tag or a function call.
    fn content(&self, body: &str) -> Head {
        match body.chars().next() {
            Some('{') => self.object(&body[1..]),
            Some('[') => match body[1..].trim_start() {
                "" => Head::Undecided,
                inner => inner.strip_prefix('{').map_or(Head::Text, |inner| self.object(inner)),
            },
            Some('<') if tags::openings().any(|open| body.starts_with(open)) => Head::Call,
            Some('<') => begins_one_of(body, tags::openings()),
            _ => self.function(body),
        }
    }

    /// The beginning of a JSON object, after its brace: the first key is one of a call, and the name is one of a tool.
    fn object(&self, inner: &str) -> Head {
        let inner = inner.trim_start();
        let Some(key) = inner.strip_prefix('"') else {
            return if inner.is_empty() { Head::Undecided } else { Head::Text };
        };
        let keys = [NAME_KEYS, ARGUMENT_KEYS, WRAPPER_KEYS, OTHER_KEYS].concat();
        let Some((key, rest)) = key.split_once('"') else { return begins_one_of(key, keys.into_iter()) };
        if !NAME_KEYS.contains(&key) {
            return if keys.contains(&key) { Head::Call } else { Head::Text };
        }
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        match value {
            None if rest.trim().is_empty() => Head::Undecided,
            None => Head::Text,
            Some("") => Head::Undecided,
            Some(value) if value.starts_with('{') => Head::Call,
            Some(value) => match value.strip_prefix('"').map(|name| name.split_once('"').ok_or(name)) {
                Some(Ok((name, _))) if self.names.contains(&spelled(name)) => Head::Call,
                None | Some(Ok(_)) => Head::Text,
                Some(Err(begun)) => self.begins_name(begun),
            },
        }
    }

    fn begins_name(&self, begun: &str) -> Head {
        begins_one_of(&spelled(begun), self.names.iter().map(String::as_str))
    }

    /// The name of a tool and its opening parenthesis.
    fn function(&self, body: &str) -> Head {
        match body.split_once('(') {
            Some((name, _)) if self.names.contains(&spelled(name)) => Head::Call,
            Some(_) => Head::Text,
            None if body.contains(char::is_whitespace) => Head::Text,
            None => self.begins_name(body),
        }
    }
}

fn text_state(reply: &str) -> HoldState {
    if opens_fence(reply.trim_start()) { HoldState::Free } else { HoldState::Line { searched: 0 } }
}

fn opens_fence(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with(FENCE)
}

fn begins_one_of<'a>(text: &str, mut words: impl Iterator<Item = &'a str>) -> Head {
    if words.any(|word| word.starts_with(text)) { Head::Undecided } else { Head::Text }
}
