//! Names of skills from what people call them.

use baton_core::agent::SkillName;
use baton_core::hash::fnv1a_32;

const MAX_CHARS: usize = 64;

/// "Slack Alert" becomes `slack-alert`. A name without any Latin letter or digit gets one made from its characters,
/// always the same, so that it can be named again. `None` when there is nothing but space.
pub fn slug(text: &str) -> Option<SkillName> {
    let mut slug = String::new();
    for c in text.trim().chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            '\'' | '’' => {}
            _ => match plain(c) {
                Some(letters) => slug += letters,
                None if slug.is_empty() || slug.ends_with('-') => {}
                None => slug.push('-'),
            },
        }
        if slug.len() >= MAX_CHARS {
            break;
        }
    }
    slug.truncate(MAX_CHARS);
    let name = SkillName::parse(slug.trim_end_matches('-')).ok();
    name.or_else(|| (!text.trim().is_empty()).then(|| numbered(text.trim()))?)
}

fn numbered(text: &str) -> Option<SkillName> {
    SkillName::parse(&format!("skill-{:08x}", fnv1a_32(text))).ok()
}

/// Accented letters without their accents.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => "e",
        'ğ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ı' => "i",
        'ł' | 'ľ' => "l",
        'ñ' | 'ń' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ő' => "o",
        'ö' | 'œ' => "oe",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        // Part of a letter that was taken apart, such as the dot of a lower-cased İ.
        '\u{300}'..='\u{36f}' => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slugs() {
        for (text, expected) in [
            ("Slack Alert", "slack-alert"),
            ("  --Über: Größe!! ", "ueber-groesse"),
            ("don't panic", "dont-panic"),
            ("../../etc/passwd", "etc-passwd"),
            ("a\n\"b\": c", "a-b-c"),
            ("İstanbul", "istanbul"),
            ("🎷 jazz 🎷", "jazz"),
        ] {
            assert_eq!(slug(text).unwrap().as_str(), expected);
        }
        assert!(slug("日本語").unwrap().as_str().starts_with("skill-"));
        assert_eq!(slug(" 🎷 "), slug("🎷"));
        assert_ne!(slug("🎷"), slug("🎺"));
        assert_eq!(slug(" \n"), None);
        assert_eq!(slug(&"x -".repeat(100)).unwrap().as_str().len(), 63);
        assert!(slug(&"ß".repeat(100)).is_some());
    }
}
