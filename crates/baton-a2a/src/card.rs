//! Agent cards, as all versions of the protocol mean them.

use indexmap::IndexMap;
use serde_json::{Map, Value};

/// The transport of JSON-RPC over HTTP.
pub const JSONRPC: &str = "JSONRPC";
/// The transport of REST.
pub const HTTP_JSON: &str = "HTTP+JSON";
/// The value of `protocolVersion` for 0.3.
pub const VERSION_03: &str = "0.3.0";
/// The value of `protocolVersion` for 1.0.
pub const VERSION_10: &str = "1.0";

/// The description of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    /// The agent's own version.
    pub version: String,
    /// Preferred first, for each protocol version.
    pub interfaces: Vec<Interface>,
    pub provider: Option<Provider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    pub capabilities: Capabilities,
    pub security_schemes: IndexMap<String, SecurityScheme>,
    /// Alternatives; each is a set of schemes with scopes that are needed together.
    pub security: Vec<SecurityRequirement>,
    pub default_input_modes: Vec<String>,
    pub default_output_modes: Vec<String>,
    pub skills: Vec<Skill>,
    pub signatures: Vec<Signature>,
}

impl AgentCard {
    /// The interfaces of protocol versions that begin with `version`, preferred first.
    pub fn interfaces_of<'a>(&'a self, version: &'a str) -> impl Iterator<Item = &'a Interface> {
        self.interfaces.iter().filter(move |interface| interface.protocol_version.starts_with(version))
    }
}

/// Scheme names with the scopes that each needs.
pub type SecurityRequirement = IndexMap<String, Vec<String>>;

/// An address with its transport and protocol version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    /// Compared without regard to case.
    pub transport: String,
    pub protocol_version: String,
    /// A routing value of 1.0 that requests must repeat.
    pub tenant: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub organization: String,
    pub url: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the protocol")]
pub struct Capabilities {
    pub streaming: bool,
    pub push_notifications: bool,
    pub state_transition_history: bool,
    /// Whether an authenticated caller gets a card with more in it.
    pub extended_card: bool,
    pub extensions: Vec<Extension>,
}

/// A declared extension of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    pub uri: String,
    pub description: Option<String>,
    pub required: bool,
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security: Vec<SecurityRequirement>,
}

/// A signature over the card, as JWS with a detached payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    pub protected: String,
    pub signature: String,
    pub header: Map<String, Value>,
}

/// How a caller authenticates.
#[derive(Debug, Clone, PartialEq)]
pub struct SecurityScheme {
    pub description: Option<String>,
    pub kind: SchemeKind,
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a card has few of them")]
pub enum SchemeKind {
    ApiKey {
        /// `header`, `query` or `cookie`.
        location: String,
        name: String,
    },
    Http {
        scheme: String,
        bearer_format: Option<String>,
    },
    OAuth2 {
        flows: OAuthFlows,
        metadata_url: Option<String>,
    },
    OpenIdConnect {
        url: String,
    },
    MutualTls,
    /// A scheme of a newer version, which this side cannot use.
    Unknown(Value),
}

/// The flows of OAuth 2.0 that work without the deprecated implicit and password grants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OAuthFlows {
    pub authorization_code: Option<AuthorizationCodeFlow>,
    pub client_credentials: Option<ClientCredentialsFlow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationCodeFlow {
    pub authorization_url: String,
    pub token_url: String,
    pub refresh_url: Option<String>,
    pub scopes: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCredentialsFlow {
    pub token_url: String,
    pub refresh_url: Option<String>,
    pub scopes: IndexMap<String, String>,
}
