//! Which sections answer a question best.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::hash::fnv1a_64;
use baton_core::stem::stem;
use baton_core::store::SectionHash;
use sha2::{Digest as _, Sha256};

use super::corpus::read;
use super::section::split;
use super::words::{stems, words};

/// How much a word counts by where it stands, against 1 in the text.
const IN_HEADING: f32 = 4.0;
const IN_OUTER_HEADING: f32 = 2.0;
const IN_FILE_NAME: f32 = 2.0;
/// The two knobs of BM25, as everybody sets them: how soon repetition stops to count, how much length is held against
/// a section.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;

const MAX_QUERY_WORDS: usize = 32;

/// All documents of a corpus as they were at one moment.
#[derive(Debug, Default)]
pub struct Index {
    pub documents: BTreeMap<PathBuf, Arc<IndexedDocument>>,
    /// Files that were left out because of a limit.
    pub left_out: usize,
}

/// What is kept of a file: counts and places. The text only where reading it again is expensive.
#[derive(Debug)]
pub struct IndexedDocument {
    /// As people should see it.
    pub source: String,
    /// Of a document that is not a text file.
    pub text: Option<Arc<str>>,
    sections: Vec<Indexed>,
    /// Every different word of the file in lower case, for suggestions.
    vocabulary: Box<str>,
}

#[derive(Debug)]
struct Indexed {
    headings: Vec<String>,
    line: usize,
    range: Range<usize>,
    words: f32,
    /// Weighted counts by stem, sorted. Stems are kept as hashes: a collision costs one odd hit.
    counts: Box<[(u64, f32)]>,
    hash: SectionHash,
}

/// A section that matches.
#[derive(Debug, Clone)]
pub struct Hit {
    pub path: PathBuf,
    pub source: String,
    pub headings: Vec<String>,
    pub line: usize,
    pub range: Range<usize>,
    pub score: f32,
    text: Option<Arc<str>>,
}

impl Hit {
    fn new(score: f32, path: &Path, document: &IndexedDocument, section: &Indexed) -> Self {
        Self {
            path: path.to_owned(),
            source: document.source.clone(),
            headings: section.headings.clone(),
            line: section.line,
            range: section.range.clone(),
            score,
            text: document.text.clone(),
        }
    }

    /// The text of the section. A file that shrank since it was indexed is found again by the next question.
    pub fn section_text(&self) -> String {
        let text = match &self.text {
            Some(text) => text.get(self.range.clone()).map(str::to_owned),
            None => read(&self.path).and_then(|text| text.get(self.range.clone()).map(str::to_owned)),
        };
        text.unwrap_or_default()
    }
}

impl IndexedDocument {
    pub fn new(source: String, text: &str) -> Self {
        let name = Path::new(&source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let sections = split(text).into_iter();
        let sections = sections.map(|section| {
            let hash = hash(&section.headings, &text[section.range.clone()]);
            let counts = Counts::of(&text[section.range.clone()], &section.headings, &name);
            Indexed {
                headings: section.headings,
                line: section.line,
                range: section.range,
                words: counts.words,
                counts: counts.sorted(),
                hash,
            }
        });
        let sections = sections.collect();
        let all: BTreeSet<String> = words(text).map(|(_, word)| word.to_lowercase()).collect();
        let vocabulary = all.into_iter().collect::<Vec<_>>().join(" ").into_boxed_str();
        Self { source, text: None, sections, vocabulary }
    }
}

/// Of everything that is embedded of a section.
fn hash(headings: &[String], text: &str) -> SectionHash {
    let mut hasher = Sha256::new();
    for heading in headings {
        hasher.update(heading);
        hasher.update([0]);
    }
    hasher.update(text);
    hasher.finalize().into()
}

struct Counts {
    words: f32,
    by_stem: HashMap<u64, f32>,
}

impl Counts {
    fn of(text: &str, headings: &[String], file_name: &str) -> Self {
        let mut counts = Self { words: 0.0, by_stem: HashMap::new() };
        counts.add(text, 1.0);
        counts.words = counts.by_stem.values().sum();
        let (own, outer) = headings.split_last().map_or((None, headings), |(own, outer)| (Some(own), outer));
        for (heading, weight) in
            own.map(|h| (h, IN_HEADING)).into_iter().chain(outer.iter().map(|h| (h, IN_OUTER_HEADING)))
        {
            counts.add(heading, weight);
        }
        counts.add(file_name, IN_FILE_NAME);
        counts
    }

    fn add(&mut self, text: &str, weight: f32) {
        for (_, word) in words(text) {
            *self.by_stem.entry(fnv1a_64(stem(&word.to_lowercase()))).or_default() += weight;
        }
    }

    fn sorted(self) -> Box<[(u64, f32)]> {
        let mut counts: Vec<_> = self.by_stem.into_iter().collect();
        counts.sort_unstable_by_key(|(stem, _)| *stem);
        counts.into()
    }
}

impl Indexed {
    fn count(&self, stem: u64) -> f32 {
        self.counts.binary_search_by_key(&stem, |(s, _)| *s).map_or(0.0, |at| self.counts[at].1)
    }
}

impl Index {
    /// The best sections first. Equal ones keep the order of files and lines, so the same question over the same
    /// documents gives the same answer.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let question = SearchQuery::new(query, self);
        let mut scored: Vec<(f32, &PathBuf, &IndexedDocument, &Indexed)> = self
            .sections()
            .map(|(path, document, section)| (question.score(section), path, document, section))
            .filter(|(score, ..)| *score > 0.0)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored
            .into_iter()
            .take(limit)
            .map(|(score, path, document, section)| Hit::new(score, path, document, section))
            .collect()
    }

    /// The sections with a score, the highest first.
    pub fn ranked_by(&self, score: impl Fn(&SectionHash) -> Option<f32>, limit: usize) -> Vec<Hit> {
        let mut scored: Vec<_> = self
            .sections()
            .filter_map(|(path, document, section)| Some((score(&section.hash)?, path, document, section)))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored
            .into_iter()
            .take(limit)
            .map(|(score, path, document, section)| Hit::new(score, path, document, section))
            .collect()
    }

    pub fn section_hashes(&self) -> impl Iterator<Item = SectionHash> {
        self.sections().map(|(_, _, section)| section.hash)
    }

    /// The sections that `is_wanted`, each text once.
    pub fn sections_where(&self, is_wanted: impl Fn(&SectionHash) -> bool) -> Vec<(SectionHash, Hit)> {
        let mut seen = HashSet::new();
        let wanted =
            self.sections().filter(|(_, _, section)| is_wanted(&section.hash) && seen.insert(section.hash));
        wanted
            .map(|(path, document, section)| (section.hash, Hit::new(0.0, path, document, section)))
            .collect()
    }

    fn sections(&self) -> impl Iterator<Item = (&PathBuf, &IndexedDocument, &Indexed)> {
        self.documents
            .iter()
            .flat_map(|(path, document)| document.sections.iter().map(move |s| (path, &**document, s)))
    }

    /// Words of the documents that look like words of the question, most similar first.
    pub fn nearest(&self, query: &str, limit: usize) -> Vec<String> {
        let asked: Vec<String> =
            words(query).map(|(_, word)| word.to_lowercase()).filter(|word| word.len() > 2).collect();
        let known: BTreeSet<&str> = self.documents.values().flat_map(|d| d.vocabulary.split(' ')).collect();
        let similarity = |word: &str| {
            asked.iter().take(MAX_QUERY_WORDS).map(|a| strsim::jaro_winkler(a, word)).fold(0.0, f64::max)
        };
        let mut near: Vec<(f64, &str)> =
            known.into_iter().map(|word| (similarity(word), word)).filter(|(s, _)| *s >= 0.8).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.into_iter().take(limit).map(|(_, word)| word.to_owned()).collect()
    }
}

/// A query with what has to be known about the whole corpus to score one section.
struct SearchQuery {
    /// Stems with how telling each is.
    stems: Vec<(u64, f32)>,
    average_words: f32,
}

impl SearchQuery {
    #[expect(clippy::cast_precision_loss, reason = "counts of sections stay far below 2^24")]
    fn new(query: &str, index: &Index) -> Self {
        let asked: BTreeSet<u64> = stems(query).iter().take(MAX_QUERY_WORDS).map(fnv1a_64).collect();
        let total = index.sections().count() as f32;
        let all_words: f32 = index.sections().map(|(_, _, section)| section.words).sum();
        let rarity = |stem: u64| {
            let with = index.sections().filter(|(_, _, section)| section.count(stem) > 0.0).count() as f32;
            (1.0 + (total - with + 0.5) / (with + 0.5)).ln()
        };
        let stems = asked.into_iter().map(|stem| (stem, rarity(stem))).collect();
        Self { stems, average_words: (all_words / total.max(1.0)).max(1.0) }
    }

    /// BM25, scaled by how much of the question is covered: a section that has every word once beats one that has a
    /// single word many times.
    fn score(&self, section: &Indexed) -> f32 {
        let relative_length = section.words / self.average_words;
        let dampening = SATURATION * (1.0 - LENGTH + LENGTH * relative_length);
        let (mut score, mut covered, mut all) = (0.0, 0.0, 0.0);
        for (stem, rarity) in &self.stems {
            let count = section.count(*stem);
            all += rarity;
            if count > 0.0 {
                covered += rarity;
                score += rarity * count * (SATURATION + 1.0) / (count + dampening);
            }
        }
        if all > 0.0 { score * (covered / all) } else { 0.0 }
    }
}
