//! `baton init --model`: finds the model's server, asks it once, and writes its configuration.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use baton_core::agent::ModelName;
use baton_core::{ModelError, ModelErrorKind};
use baton_models::local::{self, ModelServer, ServerKind, USUAL_ADDRESSES};
use baton_models::registry::default_base;
use baton_models::{Endpoint, ModelHttpClient, ProviderSettings, WireFormat, connect};

use crate::exit::Exit;
use crate::report::{tell, visible};
use crate::wiring;

/// Time limit for the first answer. A server may load the model first.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

/// The model of a new project.
#[derive(Debug)]
pub(super) struct ChosenModel {
    provider: String,
    model: String,
    base_url: Option<String>,
    /// Runs on this machine, so it costs nothing.
    is_free: bool,
}

/// Finds the model that `--model` means.
pub(super) async fn choose(text: &str) -> anyhow::Result<ChosenModel> {
    let client = ModelHttpClient::default();
    if text == "local" {
        let server = local::find(USUAL_ADDRESSES, &client).await.ok_or_else(nothing_found)?;
        return first_model(server);
    }
    if local::is_address(text) {
        let server = local::detect(text, &client).await;
        return first_model(server.map_err(|error| unanswered(text, &error))?);
    }
    match ModelName::parse(text) {
        Ok(ModelName::Provider { provider, model }) if provider == "ollama" => {
            of_ollama(&model, &client).await
        }
        Ok(ModelName::Provider { provider, model }) if default_base(&provider).is_some() => {
            Ok(ChosenModel { provider, model, base_url: None, is_free: false })
        }
        _ => Err(Exit::Usage.because(anyhow!(
            "`{}` is no model: write `local`, `ollama/<model>`, `http://host:port`, or a model of a known provider such as \
             `openai/gpt-5-mini`",
            visible(text)
        ))),
    }
}

fn nothing_found() -> anyhow::Error {
    let tried: Vec<String> =
        USUAL_ADDRESSES.iter().map(|(name, address)| format!("{name} ({address})")).collect();
    anyhow!(
        "no model server with a model was found on this machine; tried {}. Start one, or give its address: --model \
         http://host:port",
        tried.join(", ")
    )
}

fn unanswered(address: &str, error: &ModelError) -> anyhow::Error {
    anyhow!("no model server answers at {}: {}", visible(address), visible(&error.message))
}

/// Takes the first model of a server, and names the others.
fn first_model(server: ModelServer) -> anyhow::Result<ChosenModel> {
    let ModelServer { kind, base_url, models } = server;
    tell(&format!("found {} at {base_url}", kind.title()));
    let Some((model, others)) = models.split_first() else {
        let hint = if kind == ServerKind::Ollama { "run `ollama pull <model>`" } else { "load one" };
        bail!("{} at {base_url} has no model: {hint} first", kind.title());
    };
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(|other| visible(other)).collect();
        tell(&format!(
            "it also has {}; change `models.default` in baton.toml to use another",
            others.join(", ")
        ));
    }
    let is_free = local::is_on_this_machine(&base_url);
    let base_url = Some(base_url).filter(|base| default_base(kind.provider()) != Some(base.as_str()));
    Ok(ChosenModel { provider: kind.provider().to_owned(), model: model.clone(), base_url, is_free })
}

/// A model that Ollama on this machine has.
async fn of_ollama(model: &str, client: &ModelHttpClient) -> anyhow::Result<ChosenModel> {
    let address = default_base("ollama").context("Ollama has a usual address")?;
    let server = local::detect(address, client).await.map_err(|error| {
        unanswered(address, &error)
            .context("start Ollama with `ollama serve`, or give its address: --model http://host:port")
    })?;
    if !server.models.iter().any(|known| known == model || known.strip_suffix(":latest") == Some(model)) {
        let known: Vec<String> = server.models.iter().map(|known| visible(known)).collect();
        let known = if known.is_empty() { "no model yet".to_owned() } else { known.join(", ") };
        bail!("Ollama does not have `{0}`: run `ollama pull {0}`. It has {known}", visible(model));
    }
    Ok(ChosenModel { provider: "ollama".to_owned(), model: model.to_owned(), base_url: None, is_free: true })
}

impl ChosenModel {
    fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// The tables of `baton.toml` that describe the model.
    pub(super) fn config(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let name = quoted(&self.name());
        let mut text = format!("[models]\ndefault = {name}\naliases = {{ fast = {name}, smart = {name} }}\n");
        let provider = &self.provider;
        if let Some(base_url) = &self.base_url {
            text += &format!("\n[models.providers.{provider}]\nbase_url = {}\n", quoted(base_url));
        }
        // Ollama's own models are known to be free.
        if self.is_free && self.provider != "ollama" {
            text += &format!(
                "\n# docs/local-models.md lists what else can be set: context_window, max_output_tokens, tools, …\n\
                 [models.providers.{provider}.models.{}]\nprice = {{ input = 0, output = 0 }}\n",
                quoted(&self.model)
            );
        }
        text
    }

    /// Asks the model for a word, as a run would.
    pub(super) async fn verify(&self) -> anyhow::Result<()> {
        let (name, started) = (visible(&self.name()), Instant::now());
        tell(&format!("asking {name} (the first call may load the model)"));
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, self.ask()).await;
        let result = answered.map_err(|_| anyhow!("{name} did not answer within 5 minutes"))?;
        result.map_err(|error| {
            let exit = if error.kind == ModelErrorKind::Auth { Exit::Forbidden } else { Exit::Failed };
            exit.because(anyhow!("{name} cannot be used: {}", visible(&error.to_string())))
        })?;
        tell(&format!("{name} answers after {:.1} s", started.elapsed().as_secs_f64()));
        Ok(())
    }

    async fn ask(&self) -> Result<(), ModelError> {
        let key = wiring::key(&self.provider)
            .map_err(|error| ModelError::new(ModelErrorKind::Auth, &self.provider, error.to_string()))?;
        let endpoint = Endpoint {
            provider: self.provider.clone(),
            base_url: self.base_url.clone(),
            key,
            settings: ProviderSettings::default(),
        };
        let model = connect(WireFormat::of(&self.provider), endpoint, ModelHttpClient::default());
        local::ask_once(&*model, &self.model).await
    }
}
