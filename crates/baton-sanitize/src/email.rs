//! E-mail addresses.

use super::{Found, What};

/// Each byte is looked at once from the nearest `@` behind it and once from the nearest one before it.
pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let signs = text.match_indices('@').chain(text.match_indices("%40"));
    for (at, sign) in signs {
        let (before, after) = (&text[..at], &text[at + sign.len()..]);
        let local = local(before, sign);
        let Some(domain) = domain(after) else { continue };
        if !local.is_empty() && !is_remote_of_git(local, &after[domain..]) {
            let end = at + sign.len() + domain;
            found.push(Found { at: at - local.len()..end, what: What::Email });
        }
    }
}

fn local<'a>(before: &'a str, sign: &str) -> &'a str {
    let is_local =
        |c: char| is_letter(c) || matches!(c, '.' | '_' | '+' | '-' | '\'') || (c == '%' && sign == "@");
    let start =
        before.len() - before.chars().rev().take_while(|c| is_local(*c)).map(char::len_utf8).sum::<usize>();
    before[start..].trim_start_matches(['.', '-', '\''])
}

/// How long the domain is: up to the last label that begins as the name of a top-level domain does.
fn domain(after: &str) -> Option<usize> {
    let is_domain = |c: char| is_letter(c) || matches!(c, '.' | '-');
    let length = after.chars().take_while(|c| is_domain(*c)).map(char::len_utf8).sum();
    let (mut end, mut start) = (None, 0);
    for (nth, label) in after[..length].split('.').enumerate() {
        let name = label.trim_end_matches('-');
        if nth == 0 && is_scale(name) {
            break;
        }
        if nth > 0 && name.chars().take(2).filter(|c| c.is_alphabetic()).count() == 2 {
            end = Some(start + name.len());
        }
        start += label.len() + 1;
    }
    end
}

/// Letters of scripts that put spaces between words; a sentence of others would become part of the address.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || (c.is_alphanumeric() && c < '\u{2e80}')
}

/// As in `icon@2x.png`.
fn is_scale(label: &str) -> bool {
    label.strip_suffix('x').is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
}

/// As in `git@example.com:team/project`.
fn is_remote_of_git(local: &str, rest: &str) -> bool {
    local == "git" && rest.starts_with([':', '/'])
}
