//! What stands where a secret could and is none: words, types, calls and names of secrets.

use super::assignment::is_sensitive;

/// How a name and its value are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// `=` and the like: what follows is a value.
    Equals,
    /// `:`, a tag or a flag: a value or a sentence.
    Colon,
    /// `is`: more often a sentence.
    Is,
}

/// A value without quotes and what stands around it.
#[derive(Debug)]
pub(super) struct Bare<'a> {
    pub(super) name: &'a str,
    pub(super) joint: Joint,
    pub(super) value: &'a str,
    /// The line goes on behind it.
    pub(super) is_followed: bool,
    /// `my password`: what is said of it is the thing itself.
    pub(super) is_mine: bool,
}

/// A longer one is never looked at: it is no word.
const LONG: usize = 200;

/// Said of passwords and tokens, or in place of them.
const WORDS: &[&str] = &[NOTHING, STATES, PROSE];
/// Nothing, and kinds of values.
const NOTHING: &str = "
    null none nil undefined empty true false yes no on off unset default string str text bytes int
    integer number float bool boolean object array list dict map any char varchar uuid option vec box
    arc rc cow impl dyn mut await async yield match lambda function typeof";
/// How it is.
const STATES: &str = "
    required optional mandatory missing invalid valid wrong right correct incorrect expired revoked
    hidden unknown known ok fine safe secure insecure weak strong short long old new stale fresh gone
    lost set sent kept public private unique ready due opaque static temporary permanent sensitive
    alphanumeric necessary bad good simple same different enough too available unavailable important
    present absent out up back here there below above deprecated bearer basic leaked redacted masked";
/// How sentences go on.
const PROSE: &str = "
    a an the this that these it its not never always also already still just only now then in at to for
    from by with without of per as if when where what how who why and or but is are was be been must
    should can may will has have your my our their used one part between within see";

/// Endings of words that say how something is.
const ENDINGS: &[&str] = &["ed", "ing", "ly", "able", "ible", "less", "ful", "ive"];

/// What settings and code are read from.
const OWNERS: &[&str] = &[
    "self", "this", "config", "cfg", "conf", "settings", "env", "os", "process", "request", "req", "ctx",
    "context", "args", "options", "opts", "params", "props", "state", "std", "secrets", "vault", "var",
];

/// Names that other things go by than texts.
const TYPES: &[&str] = &["secretstring", "secretstr", "securestring", "&str", "&mut", "*const", "*mut"];

impl Bare<'_> {
    pub(super) fn is_plain(&self) -> bool {
        let value = self.value;
        if value.is_empty() || is_reference(value) || is_structure(value) {
            return true;
        }
        value.len() <= LONG && (self.is_said() || self.is_code())
    }

    fn is_said(&self) -> bool {
        let is_token = self.name.to_ascii_lowercase().ends_with("token");
        if !is_word(self.value) {
            return (self.joint == Joint::Is && self.value.len() < 4) || (is_token && is_measure(self.value));
        }
        // `Token: USDC`, `Authorization: Smith`.
        let is_other = || !self.is_password() && (self.value.len() <= 5 || self.is_authorization());
        let is_told = || match self.joint {
            Joint::Equals => false,
            Joint::Colon => self.is_followed || is_other(),
            // Nobody gives a token or a secret of a single word; a password may well be one.
            Joint::Is => self.is_followed || is_adjective(self.value) || !self.is_password(),
        };
        is_plain_word(self.value) || (is_told() && !self.is_mine)
    }

    fn is_password(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        ["pass", "pw", "kennwort"].iter().any(|word| name.contains(word))
    }

    fn is_authorization(&self) -> bool {
        self.name.eq_ignore_ascii_case("authorization")
    }

    /// `token = lexer.next()`, `password=password`, `token: Token`.
    fn is_code(&self) -> bool {
        let value = self.value.trim_end_matches(';');
        let lower = value.to_ascii_lowercase();
        let head = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let name = self.name.trim_start_matches('-');
        value.trim_start_matches([':', '@', '&', '*']).eq_ignore_ascii_case(name)
            || TYPES.contains(&lower.as_str())
            || value.starts_with("&'")
            || value.starts_with("&[")
            || (OWNERS.contains(&head) && value[head.len()..].starts_with(['.', '[', ':']))
            || is_call(value)
            || is_member(value)
            || (self.is_followed && value.strip_prefix('!').is_some_and(is_letters))
    }
}

pub(super) fn is_plain_word(value: &str) -> bool {
    WORDS.iter().flat_map(|words| words.split_ascii_whitespace()).any(|word| word.eq_ignore_ascii_case(value))
}

fn is_adjective(value: &str) -> bool {
    ENDINGS.iter().any(|ending| value.ends_with(ending))
}

/// What a token costs or takes: `0.002`, `12ms`, `$3`. Six digits are a code.
fn is_measure(value: &str) -> bool {
    let number = value.trim_start_matches('$').trim_end_matches(|c: char| c.is_ascii_lowercase() || c == '%');
    let unit = &value[value.len().min(value.find(number).unwrap_or(0) + number.len())..];
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    is_number && (1..6).contains(&digits) && matches!(unit, "" | "%" | "s" | "ms" | "k" | "kb" | "ct" | "usd")
}

fn is_letters(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Also a short one in capitals.
fn is_word(value: &str) -> bool {
    let is_capital = |byte: &u8| byte.is_ascii_uppercase();
    let capitals = value.bytes().skip(1).filter(is_capital).count();
    is_letters(value) && (capitals == 0 || (value.len() <= 5 && capitals + 1 == value.len()))
}

/// `$NAME`, `${NAME}`, `$(command)`, `{{ name }}`, `{name}`, `<your password>`, `%NAME%`, `****`.
pub(super) fn is_reference(value: &str) -> bool {
    let is_name = |text: &str| {
        let is_named = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        !text.is_empty() && text.bytes().all(is_named)
    };
    let within = |open: &str, close: &str| {
        value.len() <= LONG && value.strip_prefix(open).is_some_and(|rest| rest.ends_with(close))
    };
    let opens = |open: &str| value.len() <= LONG && value.starts_with(open);
    opens("${")
        || opens("$(")
        || opens("{{")
        || within("{", "}")
        || within("<", ">")
        || value.strip_prefix('$').is_some_and(is_name)
        || value.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')).is_some_and(is_name)
        || ['*', '•', '…', '.'].iter().any(|mask| value.len() <= LONG && value.chars().all(|c| c == *mask))
}

/// Something with parts follows, and they are looked at by themselves.
fn is_structure(value: &str) -> bool {
    matches!(value, "{" | "[" | "(" | "{}" | "[]" | "()" | "|" | ">" | "-" | "=" | "%s" | "n/a" | "N/A")
}

/// A function or a type with something in parentheses or brackets. A word with a number in it is none.
fn is_call(value: &str) -> bool {
    value.split_once(['(', '[']).is_some_and(|(name, _)| is_path(name))
}

/// What belongs to something that has a secret: `user.password`, `&self.token`.
fn is_member(value: &str) -> bool {
    let path = value.trim_start_matches(['&', '*']);
    let last = path.rsplit(['.', '>', ':']).next().unwrap_or_default();
    last.len() < path.len() && is_path(path) && is_sensitive(last)
}

fn is_path(name: &str) -> bool {
    let name = name.replace("->", ".");
    let is_part = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b':');
    name.bytes().all(is_part)
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}
