//! Asks servers about their models: vLLM, llama.cpp, LM Studio and others that speak OpenAI's protocol, and Ollama.

use serde_json::{Value, json};

use crate::transport::ProviderConnection;

/// Size of the context that Ollama is asked for if the model does not say which one it is used with. What a model was trained for
/// often does not fit into memory.
const OLLAMA_CONTEXT: u64 = 8192;

/// What an endpoint says about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LearnedFacts {
    pub(crate) context_window: Option<u64>,
    /// Whether the model was made to call tools.
    pub(crate) tools: Option<bool>,
    /// Whether the model reads images.
    pub(crate) images: Option<bool>,
}

/// Asks a server that speaks OpenAI's protocol. `None` if it does not answer.
pub(crate) async fn ask_openai(connection: &ProviderConnection, model: &str) -> Option<LearnedFacts> {
    let listing = connection.get(connection.address(&["models"], None).ok()?).ok()?;
    let listing = connection.fetch(listing).await.ok()?;
    let mut context_window = context_of_listing(&listing, model);
    if context_window.is_none() {
        // llama.cpp lists what a model was trained for, and tells here what it is used with.
        context_window = get(connection, &["props"]).await.as_ref().and_then(context_of_props);
    }
    if context_window.is_none() {
        // LM Studio has its own list beside that of the protocol.
        let listing = get(connection, &["api", "v0", "models"]).await;
        context_window = listing.and_then(|listing| context_of_listing(&listing, model));
    }
    Some(LearnedFacts { context_window, ..LearnedFacts::default() })
}

/// Asks Ollama. `None` if it does not answer or does not have the model.
pub(crate) async fn ask_ollama(connection: &ProviderConnection, model: &str) -> Option<LearnedFacts> {
    let address = connection.address(&["api", "show"], None).ok()?;
    let request = connection.post(address, json!({ "model": model }).to_string().into_bytes()).ok()?;
    Some(of_ollama(&connection.fetch(request).await.ok()?))
}

async fn get(connection: &ProviderConnection, path: &[&str]) -> Option<Value> {
    let request = connection.get(connection.server_address(path)?).ok()?;
    connection.fetch(request).await.ok()
}

/// The entry of a model in a list. A server with a single model may list it under another name.
fn entry<'a>(listing: &'a Value, model: &str) -> Option<&'a Value> {
    let entries = listing.get("data")?.as_array()?;
    let named = entries.iter().find(|entry| entry["id"] == model);
    named.or(if let [only] = entries.as_slice() { Some(only) } else { None })
}

fn context_of_listing(listing: &Value, model: &str) -> Option<u64> {
    const KEYS: [&str; 4] = [
        "/max_model_len",         // vLLM
        "/meta/n_ctx",            // llama.cpp
        "/loaded_context_length", // LM Studio
        "/context_length",        // gateways
    ];
    let entry = entry(listing, model)?;
    KEYS.iter().find_map(|key| positive(entry.pointer(key)?))
}

fn context_of_props(props: &Value) -> Option<u64> {
    let size = props.pointer("/default_generation_settings/n_ctx").or_else(|| props.get("n_ctx"))?;
    positive(size)
}

fn of_ollama(show: &Value) -> LearnedFacts {
    let capabilities = show.get("capabilities").and_then(Value::as_array);
    let has = |name: &str| capabilities.map(|all| all.iter().any(|capability| capability == name));
    let (tools, images) = (has("tools"), has("vision"));
    let info = show.get("model_info").and_then(Value::as_object);
    let trained = info.and_then(|info| {
        let (_, size) = info.iter().find(|(key, _)| key.ends_with(".context_length"))?;
        positive(size)
    });
    let context_window = num_ctx(show).or_else(|| trained.map(|size| size.min(OLLAMA_CONTEXT)));
    LearnedFacts { context_window, tools, images }
}

/// The parameter `num_ctx` of the model's file, in the text `num_ctx 4096`.
fn num_ctx(show: &Value) -> Option<u64> {
    let lines = show.get("parameters")?.as_str()?.lines();
    let value = lines.filter_map(|line| line.trim().strip_prefix("num_ctx")).next_back()?;
    value.trim().parse().ok().filter(|size| *size > 0)
}

fn positive(value: &Value) -> Option<u64> {
    value.as_u64().filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_of_lists() {
        let vllm = json!({"object": "list", "data": [
            {"id": "other", "max_model_len": 1}, {"id": "qwen", "owned_by": "vllm", "max_model_len": 32768}]});
        assert_eq!(context_of_listing(&vllm, "qwen"), Some(32768));
        assert_eq!(context_of_listing(&vllm, "missing"), None);
        let single =
            json!({"data": [{"id": "/models/qwen.gguf", "meta": {"n_ctx_train": 32768, "n_ctx": 4096}}]});
        assert_eq!(context_of_listing(&single, "qwen"), Some(4096));
        let trained = json!({"data": [{"id": "qwen", "meta": {"n_ctx_train": 32768}}]});
        assert_eq!(
            context_of_listing(&trained, "qwen"),
            None,
            "what it was trained for is not what is loaded"
        );
        for odd in
            [json!(null), json!([]), json!({"data": {}}), json!({"data": [{"id": "a", "max_model_len": -1}]})]
        {
            assert_eq!(context_of_listing(&odd, "a"), None, "{odd}");
        }
    }

    #[test]
    fn context_of_llama_cpp() {
        let props = json!({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1});
        assert_eq!(context_of_props(&props), Some(4096));
        assert_eq!(context_of_props(&json!({"n_ctx": 2048})), Some(2048));
        assert_eq!(context_of_props(&json!({})), None);
    }

    #[test]
    fn facts_of_ollama() {
        let show = json!({
            "parameters": "stop \"<|im_end|>\"\nnum_ctx    4096",
            "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768},
            "capabilities": ["completion", "tools"],
        });
        assert_eq!(
            of_ollama(&show),
            LearnedFacts { context_window: Some(4096), tools: Some(true), images: Some(false) }
        );
        let large = json!({"model_info": {"qwen2.context_length": 32768}, "capabilities": ["completion"]});
        assert_eq!(
            of_ollama(&large),
            LearnedFacts { context_window: Some(8192), tools: Some(false), images: Some(false) }
        );
        let seeing = json!({"capabilities": ["completion", "vision"]});
        assert_eq!(of_ollama(&seeing).images, Some(true));
        let small = json!({"model_info": {"gemma.context_length": 2048}});
        assert_eq!(of_ollama(&small), LearnedFacts { context_window: Some(2048), ..LearnedFacts::default() });
        assert_eq!(of_ollama(&json!("?")), LearnedFacts::default());
    }
}
