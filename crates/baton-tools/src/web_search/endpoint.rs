//! How a search engine is asked, and where its answer has what.

use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder};
use serde_json::{Map, Value};
use url::Url;

use crate::web::html::reduce;

const MAX_TITLE_CHARS: usize = 200;
const MAX_SNIPPET_CHARS: usize = 600;
const MAX_DATE_CHARS: usize = 40;
const MAX_URL_BYTES: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEndpoint {
    pub url: Url,
    pub method: SearchMethod,
    /// The parameter for the question.
    pub query_parameter: String,
    /// The parameter for the number of results, if the engine has one.
    pub limit_parameter: Option<String>,
    /// Further parameters, always the same.
    pub fixed: Vec<(String, String)>,
    /// The header for the key.
    pub key: Option<KeyHeader>,
    pub pointers: ResultPointers,
    /// Whether titles and snippets are HTML.
    pub is_html: bool,
    /// What to do when the engine answers 403, if that is known.
    pub json_hint: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMethod {
    /// Parameters are in the address.
    Get,
    /// Parameters are fields of a JSON object.
    Post,
}

/// `name: prefix` and the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHeader {
    pub name: String,
    pub prefix: String,
}

/// JSON pointers (RFC 6901): `results` from the top of the answer, all others from one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultPointers {
    pub results: String,
    pub title: String,
    pub url: String,
    pub snippet: String,
    pub date: Option<String>,
}

/// One page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchResult {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    pub(super) date: Option<String>,
}

impl SearchEndpoint {
    /// A SearXNG server, such as `http://127.0.0.1:8888`. Its `search.formats` has to contain `json`.
    pub fn searxng(base: &Url) -> Self {
        Self {
            fixed: vec![("format".to_owned(), "json".to_owned())],
            json_hint: Some(
                "SearXNG answered 403 Forbidden: the operator has to add `json` to `search.formats` in its settings.yml",
            ),
            ..Self::new(below(base, "search"), "q", pointers("/results", "/content", Some("/publishedDate")))
        }
    }

    /// The search of Brave, by default `https://api.search.brave.com/res/v1`.
    pub fn brave(base: &Url) -> Self {
        Self {
            limit_parameter: Some("count".to_owned()),
            fixed: vec![("text_decorations".to_owned(), "false".to_owned())],
            key: Some(KeyHeader { name: "X-Subscription-Token".to_owned(), prefix: String::new() }),
            is_html: true,
            ..Self::new(
                below(base, "web/search"),
                "q",
                pointers("/web/results", "/description", Some("/page_age")),
            )
        }
    }

    /// The search of Tavily, by default `https://api.tavily.com`.
    pub fn tavily(base: &Url) -> Self {
        Self {
            method: SearchMethod::Post,
            limit_parameter: Some("max_results".to_owned()),
            key: Some(KeyHeader { name: "Authorization".to_owned(), prefix: "Bearer ".to_owned() }),
            ..Self::new(
                below(base, "search"),
                "query",
                pointers("/results", "/content", Some("/published_date")),
            )
        }
    }

    fn new(url: Url, query_parameter: &str, pointers: ResultPointers) -> Self {
        Self {
            url,
            method: SearchMethod::Get,
            query_parameter: query_parameter.to_owned(),
            limit_parameter: None,
            fixed: Vec::new(),
            key: None,
            pointers,
            is_html: false,
            json_hint: None,
        }
    }

    pub(super) fn request(&self, client: &Client, query: &str, limit: usize) -> RequestBuilder {
        let fixed = self.fixed.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
        let limit = self.limit_parameter.iter().map(|name| (name.as_str(), Value::from(limit)));
        let parameters = [(self.query_parameter.as_str(), Value::from(query))];
        let parameters = parameters.into_iter().chain(limit).chain(fixed);
        let request = match self.method {
            SearchMethod::Get => {
                let mut url = self.url.clone();
                for (name, value) in parameters {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    url.query_pairs_mut().append_pair(name, &text);
                }
                client.get(url)
            }
            SearchMethod::Post => {
                let body: Map<String, Value> =
                    parameters.map(|(name, value)| (name.to_owned(), value)).collect();
                client.post(self.url.clone()).json(&body)
            }
        };
        request.header(ACCEPT, "application/json")
    }

    /// The results of an answer; `None` if there is no list where it should be. A page without a web address is left out. Brave
    /// leaves out the whole part when it finds nothing, so `null` and a missing parent are an empty list.
    pub(super) fn results(&self, answer: &Value) -> Option<Vec<SearchResult>> {
        let list = match answer.pointer(&self.pointers.results) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(Value::Null) => &[],
            None if answer.is_object() && self.pointers.results.matches('/').count() > 1 => &[],
            _ => return None,
        };
        Some(list.iter().filter_map(|result| self.result(result)).collect())
    }

    fn result(&self, result: &Value) -> Option<SearchResult> {
        let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let shown = |pointer: &str, max_chars: usize| {
            let text = text(pointer);
            let text = if self.is_html { reduce(text, None) } else { text.to_owned() };
            one_line(&text, max_chars)
        };
        let url = text(&self.pointers.url).trim();
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web || url.len() > MAX_URL_BYTES || url.contains(char::is_whitespace) {
            return None;
        }
        let title = shown(&self.pointers.title, MAX_TITLE_CHARS);
        let date = self.pointers.date.as_deref().map(|date| one_line(text(date), MAX_DATE_CHARS));
        Some(SearchResult {
            title: if title.is_empty() { "(no title)".to_owned() } else { title },
            url: url.to_owned(),
            snippet: shown(&self.pointers.snippet, MAX_SNIPPET_CHARS),
            date: date.filter(|date| !date.is_empty()),
        })
    }
}

fn pointers(results: &str, snippet: &str, date: Option<&str>) -> ResultPointers {
    ResultPointers {
        results: results.to_owned(),
        title: "/title".to_owned(),
        url: "/url".to_owned(),
        snippet: snippet.to_owned(),
        date: date.map(str::to_owned),
    }
}

/// The address with a further path.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// Without line breaks and runs of spaces, cut.
fn one_line(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max_chars) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line,
    }
}
