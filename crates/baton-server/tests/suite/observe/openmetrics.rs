//! `OpenMetrics` text, read as strictly as the specification allows.

use std::collections::{BTreeMap, BTreeSet};

/// Every sample by its name and labels, as they stand in the text.
#[derive(Debug)]
pub struct Exposition(BTreeMap<String, f64>);

impl Exposition {
    /// Panics with the line that is wrong.
    pub fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
        let (mut samples, mut families, mut current) = (BTreeMap::new(), BTreeSet::new(), None);
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                current = Some(family(rest, current, &mut families, line));
                continue;
            }
            let (name, value) = sample(line);
            let (family, kind) = current.as_ref().unwrap_or_else(|| panic!("no family: {line}"));
            belongs(name, family, kind, line);
            let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(samples.insert(line_key(line).to_owned(), value).is_none(), "twice: {line}");
        }
        let read = Self(samples);
        read.check_histograms();
        read
    }

    /// Zero if there is no such sample.
    pub fn value(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The last bucket of a histogram holds everything.
    fn check_histograms(&self) {
        let counts = self.0.iter().filter_map(|(name, count)| Some((name.split_once("_count{")?, count)));
        for ((family, labels), count) in counts {
            let last = format!("{family}_bucket{{le=\"+Inf\",{labels}");
            assert_eq!(self.0.get(&last), Some(count), "{last}");
        }
    }
}

/// `TYPE name kind`, `HELP name text` or `UNIT name unit`. Each family stands in one place.
fn family(
    rest: &str,
    current: Option<(String, String)>,
    seen: &mut BTreeSet<String>,
    line: &str,
) -> (String, String) {
    let mut words = rest.splitn(3, ' ');
    let (what, name, more) = (words.next().unwrap(), words.next().expect(line), words.next().expect(line));
    assert!(
        name.starts_with("baton_") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
        "{line}"
    );
    let is_new = current.as_ref().is_none_or(|(known, _)| known != name);
    assert!(!is_new || seen.insert(name.to_owned()), "a family in two places: {line}");
    let kind = if is_new { String::new() } else { current.unwrap().1 };
    match what {
        "TYPE" => {
            assert!(["counter", "gauge", "histogram", "info"].contains(&more), "{line}");
            (name.to_owned(), more.to_owned())
        }
        "HELP" => (name.to_owned(), kind),
        "UNIT" => {
            assert!(name.ends_with(&format!("_{more}")), "{line}");
            (name.to_owned(), kind)
        }
        _ => panic!("{line}"),
    }
}

fn line_key(line: &str) -> &str {
    line.rsplit_once(' ').expect(line).0
}

fn sample(line: &str) -> (&str, &str) {
    let (key, value) = line.rsplit_once(' ').expect(line);
    let name = key.split('{').next().unwrap();
    if let Some((_, labels)) = key.split_once('{') {
        let labels = labels.strip_suffix('}').expect(line);
        for label in labels.split("\",") {
            let (name, value) = label.split_once("=\"").expect(line);
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
            assert!(!value.trim_end_matches('"').contains(['"', '\n']), "{line}");
        }
    }
    (name, value)
}

/// The suffix that its kind demands.
fn belongs(name: &str, family: &str, kind: &str, line: &str) {
    let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("not of {family}: {line}"));
    let allowed: &[&str] = match kind {
        "counter" => &["_total"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_sum", "_count"],
        "info" => &["_info"],
        other => panic!("{other}: {line}"),
    };
    assert!(allowed.contains(&suffix), "{line}");
}
