//! Everything known about the models of one provider. Three sources, each of which overrides the one before: Baton's own table and
//! defaults, what the endpoint says ([`crate::discovery`]), and the configuration ([`crate::settings`]).

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use baton_core::model::ModelFacts;
use tokio::time::Instant;

use crate::discovery::LearnedFacts;
use crate::registry::{Endpoint, WireFormat};
use crate::settings::ProviderSettings;
use crate::transport::is_loopback;
use crate::{ollama, prices};

/// Limit on a reply of a model on this machine, for agents that set none: a small model may repeat itself without end, and nothing
/// else stops it before the deadline.
const LOCAL_MAX_OUTPUT_TOKENS: u32 = 2048;
/// How much longer a model on this machine may take than agent files say, until its speed is measured.
const LOCAL_FACTOR: NonZeroU32 = NonZeroU32::new(5).expect("not zero");
/// Time limit for all requests that ask an endpoint about a model.
const LEARN_TIMEOUT: Duration = Duration::from_secs(1);
/// When an endpoint that did not answer is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The facts about the models of a provider.
#[derive(Debug)]
pub(crate) struct ProviderFacts {
    provider: String,
    base: String,
    /// Whether `base` is the public address of a hosted provider.
    is_hosted: bool,
    settings: ProviderSettings,
    /// Merged when a model is first used, and again when its endpoint has answered: a session looks them up several times.
    models: RwLock<HashMap<String, KnownModel>>,
    /// Held while the endpoint is asked, so that parallel sessions ask it once.
    asking: tokio::sync::Mutex<()>,
}

/// One model of a provider.
#[derive(Debug, Clone, Copy)]
struct KnownModel {
    facts: ModelFacts,
    learning: Learning,
}

/// What there is to learn from an endpoint about one model.
#[derive(Debug, Clone, Copy)]
enum Learning {
    /// The endpoint has answered or need not be asked.
    Done,
    Open,
    /// The endpoint did not answer.
    Failed(Instant),
}

impl Learning {
    fn is_due(self) -> bool {
        match self {
            Self::Done => false,
            Self::Open => true,
            Self::Failed(at) => at.elapsed() >= RETRY_AFTER,
        }
    }
}

impl ProviderFacts {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let base = endpoint.base().unwrap_or_default().to_owned();
        let is_default = crate::registry::default_base(&endpoint.provider) == Some(base.as_str());
        Self {
            provider: endpoint.provider.clone(),
            is_hosted: is_default && !is_loopback(&base),
            base,
            settings: endpoint.settings.clone(),
            models: RwLock::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The facts about a model as far as they are known now.
    pub(crate) fn of(&self, model: &str) -> ModelFacts {
        self.known(model).facts
    }

    /// Whether [`ProviderFacts::learn`] would do nothing now.
    pub(crate) fn is_learned(&self, model: &str) -> bool {
        !self.known(model).learning.is_due()
    }

    /// Asks the endpoint with `ask`, unless it has answered before, is the address of a hosted provider, or serves a model that
    /// Baton's table or the configuration describes.
    pub(crate) async fn learn(&self, model: &str, ask: impl Future<Output = Option<LearnedFacts>>) {
        if self.is_learned(model) {
            return;
        }
        let _asking = self.asking.lock().await;
        if self.is_learned(model) {
            return;
        }
        let known = match tokio::time::timeout(LEARN_TIMEOUT, ask).await {
            Ok(Some(learned)) => {
                KnownModel { facts: self.merged(model, Some(learned)), learning: Learning::Done }
            }
            Ok(None) | Err(_) => {
                KnownModel { learning: Learning::Failed(Instant::now()), ..self.known(model) }
            }
        };
        self.models.write().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), known);
    }

    fn known(&self, model: &str) -> KnownModel {
        let known = self.models.read().unwrap_or_else(PoisonError::into_inner).get(model).copied();
        known.unwrap_or_else(|| {
            let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
            *models.entry(model.to_owned()).or_insert_with(|| self.without_asking(model))
        })
    }

    fn without_asking(&self, model: &str) -> KnownModel {
        let is_configured = self.settings.models.get(model).is_some_and(|one| one.context_window.is_some());
        let is_described = built_in(&self.provider, &self.base, model).context_window.is_some();
        let is_complete = is_configured || is_described || self.is_hosted;
        let learning = if is_complete { Learning::Done } else { Learning::Open };
        KnownModel { facts: self.merged(model, None), learning }
    }

    fn merged(&self, model: &str, learned: Option<LearnedFacts>) -> ModelFacts {
        let mut facts = built_in(&self.provider, &self.base, model);
        if let Some(learned) = learned {
            facts.context_window = learned.context_window.or(facts.context_window);
            facts.supports.tools = learned.tools.unwrap_or(facts.supports.tools);
            facts.supports.images = learned.images.unwrap_or(facts.supports.images);
        }
        let quarter =
            facts.context_window.map_or(u32::MAX, |size| u32::try_from(size / 4).unwrap_or(u32::MAX));
        // Servers refuse a limit that leaves no room for the prompt.
        facts.max_output_tokens = facts.max_output_tokens.map(|most| most.min(quarter));
        self.settings.apply(model, facts)
    }
}

/// The facts about a model without asking its endpoint.
pub(crate) fn configured(provider: &str, base: &str, settings: &ProviderSettings, model: &str) -> ModelFacts {
    settings.apply(model, built_in(provider, base, model))
}

/// Baton's table, and the defaults for models on this machine.
fn built_in(provider: &str, base: &str, model: &str) -> ModelFacts {
    let mut facts = match WireFormat::of(provider) {
        WireFormat::Ollama => ollama::facts(base, model),
        WireFormat::OpenAi | WireFormat::Anthropic | WireFormat::Gemini => prices::facts(provider, model),
    };
    // All models of the table and of these two providers read images.
    facts.supports.images = facts.context_window.is_some() && WireFormat::of(provider) != WireFormat::Ollama
        || model.starts_with("claude-")
        || model.starts_with("gemini-");
    // A model of the table behind a loopback address is a gateway to the hosted one.
    let is_local = is_loopback(base) && facts.context_window.is_none() && !ollama::is_paid(base, model);
    if is_local {
        facts.max_output_tokens = Some(LOCAL_MAX_OUTPUT_TOKENS);
        facts.timeouts.factor = LOCAL_FACTOR;
        facts.timeouts.is_measured = true;
        facts.assists.search_first = true;
        facts.assists.workflow_evidence = true;
        facts.assists.routing_words = true;
        facts.assists.repeated_calls = true;
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(provider: &str, base_url: Option<&str>) -> ProviderFacts {
        ProviderFacts::new(&Endpoint {
            provider: provider.into(),
            base_url: base_url.map(Into::into),
            key: None,
            settings: ProviderSettings::default(),
        })
    }

    const LEARNED: LearnedFacts =
        LearnedFacts { context_window: Some(4096), tools: Some(false), images: None };

    #[test]
    fn models_on_this_machine_have_defaults_of_their_own() {
        let facts = |provider, base_url, model| source(provider, base_url).of(model);
        for local in [
            facts("ollama", None, "qwen3"),
            facts("llamacpp", Some("http://127.0.0.1:8080/v1"), "qwen"),
            facts("vllm", Some("http://localhost:8000/v1"), "qwen"),
        ] {
            assert_eq!((local.max_output_tokens, local.timeouts.factor.get()), (Some(2048), 5));
            assert!(local.timeouts.is_measured && local.assists.workflow_evidence);
            assert!(
                local.assists.routing_words && local.assists.repeated_calls && local.assists.search_first
            );
        }
        for hosted in [
            facts("openai", None, "gpt-5-mini"),
            facts("openai", Some("http://127.0.0.1:4000/v1"), "gpt-5-mini"),
            facts("ollama", None, "gpt-oss:120b-cloud"),
            facts("work", Some("https://models.example.com/v1"), "odd"),
        ] {
            assert_eq!((hosted.max_output_tokens, hosted.timeouts.factor.get()), (None, 1));
            assert!(!hosted.timeouts.is_measured);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_is_asked_once() {
        let local = source("llamacpp", Some("http://127.0.0.1:8080/v1"));
        assert_eq!(local.of("m").context_window, None);
        local.learn("m", async { Some(LEARNED) }).await;
        assert_eq!(local.of("m").context_window, Some(4096));
        assert!(!local.of("m").supports.tools);
        assert_eq!(local.of("m").max_output_tokens, Some(1024), "a quarter of the context");
        local.learn("m", async { panic!("asked again") }).await;
        for hosted in [source("openai", None), source("openrouter", None)] {
            hosted.learn("m", async { panic!("a hosted provider is not asked") }).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_endpoint_is_given_up_soon_and_asked_again_later() {
        let local = source("llamacpp", Some("http://127.0.0.1:8080/v1"));
        let before = Instant::now();
        local.learn("m", std::future::pending()).await;
        assert_eq!(before.elapsed(), LEARN_TIMEOUT);
        local.learn("m", async { panic!("asked at once again") }).await;
        tokio::time::sleep(RETRY_AFTER).await;
        local.learn("m", async { Some(LEARNED) }).await;
        assert_eq!(local.of("m").context_window, Some(4096));
    }
}
