//! Language models behind the seam [`baton_core::Model`].
//!
//! The walk of a call, in reading order:
//!
//! 1. [`registry`] knows which wire a provider speaks and where it lives. `facts` knows its models, from the table of [`prices`],
//!    from the endpoint (`discovery`) and from the configuration ([`settings`]). [`local`] finds servers on this machine.
//! 2. An adapter ([`openai`], [`anthropic`], [`gemini`], [`ollama`]) spells the request: `history` makes the
//!    conversation one that every provider accepts, `tool_names` spells the names of tools, `parts` and `schema` the rest.
//! 3. `transport` sends it with the one pooled [`ModelHttpClient`] and turns refusals into a `fault`.
//! 4. `answer` reads the body: `lines` and `frames` cut it, the adapter's decoder turns frames into chunks (`borrowed`),
//!    `calls` keeps parallel tool calls apart.
//!
//! Whatever goes wrong becomes a [`baton_core::ModelError`] in one place, `Connection::report`, which also makes sure that
//! no key is in it.
//!
//! ```
//! use baton_models::{Endpoint, ModelHttpClient, WireFormat, connect};
//!
//! let endpoint = Endpoint {
//!     provider: "lmstudio".into(),
//!     base_url: Some("http://127.0.0.1:1234/v1".into()),
//!     key: None,
//!     settings: Default::default(),
//! };
//! let model = connect(WireFormat::of(&endpoint.provider), endpoint, ModelHttpClient::default());
//! assert_eq!(model.provider(), "lmstudio");
//! ```

pub mod anthropic;
pub mod gemini;
pub mod local;
pub mod ollama;
pub mod openai;
pub mod prices;
pub mod registry;
pub mod scripted;
pub mod settings;

mod answer;
mod borrowed;
mod calls;
mod client;
mod discovery;
mod facts;
mod fault;
mod frames;
mod function;
mod history;
mod lines;
mod parts;
mod retry_after;
mod schema;
mod sequence;
mod signature;
#[cfg(test)]
mod splits;
mod tool_names;
mod transport;

pub use client::ModelHttpClient;
pub use registry::{Endpoint, WireFormat, connect, facts};
pub use settings::ProviderSettings;
