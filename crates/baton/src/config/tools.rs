//! `[tools.semantic_search]`, `[tools.web_search]`, `[tools.wiki]` and `[tools.python]`.

use baton_core::agent::ModelName;
use baton_core::choices;
use baton_tools::web_search::{KeyHeader, ResultPointers, SearchEndpoint, SearchMethod};
use baton_tools::wiki::WikiSettings;
use serde::Deserialize;
use url::Url;

choices! {
    /// How the search engine is asked.
    pub enum SearchKind {
        Searxng = "searxng",
        Brave = "brave",
        Tavily = "tavily",
        /// Any other that answers with JSON, as the further keys say.
        Json = "json",
    }
}

choices! {
    pub enum HttpMethod {
        Get = "get",
        Post = "post",
    }
}

/// The search engine of `web_search`. Without `kind` there is no such tool. The key comes from the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "SearchTable")]
pub struct WebSearchConfig {
    pub engine: Option<SearchEngine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEngine {
    pub kind: SearchKind,
    pub endpoint: SearchEndpoint,
}

impl SearchEngine {
    /// The environment variables that may hold the key, best first.
    pub fn key_variables(&self) -> &'static [&'static str] {
        match self.kind {
            SearchKind::Brave => &["WEB_SEARCH_API_KEY", "BRAVE_API_KEY"],
            SearchKind::Tavily => &["WEB_SEARCH_API_KEY", "TAVILY_API_KEY"],
            SearchKind::Searxng | SearchKind::Json => &["WEB_SEARCH_API_KEY"],
        }
    }

    /// Whether nothing is answered without a key.
    pub fn needs_key(&self) -> bool {
        matches!(self.kind, SearchKind::Brave | SearchKind::Tavily)
    }
}

/// The keys as they are in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SearchTable {
    kind: Option<SearchKind>,
    base_url: Option<String>,
    method: Option<HttpMethod>,
    query_parameter: Option<String>,
    limit_parameter: Option<String>,
    key_header: Option<String>,
    key_prefix: Option<String>,
    results: Option<String>,
    title: Option<String>,
    url: Option<String>,
    snippet: Option<String>,
    date: Option<String>,
}

impl SearchTable {
    /// The first key that only `kind = "json"` has.
    fn mapping_key(&self) -> Option<&'static str> {
        let keys = [
            ("method", self.method.is_some()),
            ("query_parameter", self.query_parameter.is_some()),
            ("limit_parameter", self.limit_parameter.is_some()),
            ("key_header", self.key_header.is_some()),
            ("key_prefix", self.key_prefix.is_some()),
            ("results", self.results.is_some()),
            ("title", self.title.is_some()),
            ("url", self.url.is_some()),
            ("snippet", self.snippet.is_some()),
            ("date", self.date.is_some()),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }

    fn json_endpoint(self, url: Url) -> Result<SearchEndpoint, String> {
        let pointer = |key: &str, value: Option<String>, default: &str| {
            let value = value.unwrap_or_else(|| default.to_owned());
            if value.is_empty() || value.starts_with('/') {
                return Ok(value);
            }
            Err(format!("`{key}` is a JSON pointer such as `{default}`: it begins with `/`"))
        };
        if self.key_prefix.is_some() && self.key_header.is_none() {
            return Err("`key_prefix` has no effect without `key_header`".to_owned());
        }
        let prefix = self.key_prefix.unwrap_or_default();
        let date = self.date.map(|date| pointer("date", Some(date), "/date")).transpose()?;
        Ok(SearchEndpoint {
            url,
            method: match self.method {
                Some(HttpMethod::Post) => SearchMethod::Post,
                Some(HttpMethod::Get) | None => SearchMethod::Get,
            },
            query_parameter: self.query_parameter.unwrap_or_else(|| "q".to_owned()),
            limit_parameter: self.limit_parameter,
            fixed: Vec::new(),
            key: self.key_header.map(|name| KeyHeader { name, prefix }),
            pointers: ResultPointers {
                results: pointer("results", self.results, "/results")?,
                title: pointer("title", self.title, "/title")?,
                url: pointer("url", self.url, "/url")?,
                snippet: pointer("snippet", self.snippet, "/snippet")?,
                date,
            },
            is_html: false,
            json_hint: None,
        })
    }
}

impl TryFrom<SearchTable> for WebSearchConfig {
    type Error = String;

    fn try_from(table: SearchTable) -> Result<Self, String> {
        let Some(kind) = table.kind else {
            let is_empty = table.base_url.is_none() && table.mapping_key().is_none();
            let missing = "`kind` is missing: searxng, brave, tavily or json".to_owned();
            return if is_empty { Ok(Self::default()) } else { Err(missing) };
        };
        if let (true, Some(key)) = (kind != SearchKind::Json, table.mapping_key()) {
            return Err(format!("`{key}` has an effect only with `kind = \"json\"`: remove it"));
        }
        let usual = match kind {
            SearchKind::Brave => Some("https://api.search.brave.com/res/v1".to_owned()),
            SearchKind::Tavily => Some("https://api.tavily.com".to_owned()),
            SearchKind::Searxng | SearchKind::Json => None,
        };
        let base = table.base_url.clone().or(usual);
        let base =
            web_address("base_url", &base.ok_or("`base_url` is missing: where the search engine is")?)?;
        let endpoint = match kind {
            SearchKind::Searxng => SearchEndpoint::searxng(&base),
            SearchKind::Brave => SearchEndpoint::brave(&base),
            SearchKind::Tavily => SearchEndpoint::tavily(&base),
            SearchKind::Json => table.json_endpoint(base)?,
        };
        Ok(Self { engine: Some(SearchEngine { kind, endpoint }) })
    }
}

/// An address without a user name or password, which would be a secret in the file.
fn web_address(key: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| format!("`{key}` is an address that begins with http:// or https://"))?;
    if url.username().is_empty() && url.password().is_none() {
        return Ok(url);
    }
    Err(format!("`{key}` has a user name or password: secrets come from the environment"))
}

/// Where the vectors of `semantic_search` come from. Without a model it ranks by words only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SemanticSearchConfig {
    /// `provider/model` of a provider that speaks the embeddings API of `OpenAI`.
    pub embedding_model: Option<ModelName>,
}

/// The wiki of the tool `wiki`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WikiConfig {
    pub enabled: bool,
    /// The `api.php` of a MediaWiki.
    pub base_url: WikiUrl,
}

impl Default for WikiConfig {
    fn default() -> Self {
        let url = Url::parse(WikiSettings::ENGLISH_WIKIPEDIA).expect("a valid address");
        Self { enabled: true, base_url: WikiUrl(url) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WikiUrl(pub Url);

impl TryFrom<String> for WikiUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let url = web_address("base_url", &text)?;
        if url.path().rsplit_once('.').is_some_and(|(_, extension)| extension == "php") {
            return Ok(Self(url));
        }
        Err("`base_url` is the address of api.php, such as https://en.wikipedia.org/w/api.php".to_owned())
    }
}

/// Off unless enabled, like `[tools.shell]`, whose other keys hold for it too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PythonConfig {
    pub enabled: bool,
    /// A name in `PATH`, or a path.
    pub interpreter: String,
}

impl Default for PythonConfig {
    fn default() -> Self {
        Self { enabled: false, interpreter: "python3".to_owned() }
    }
}
