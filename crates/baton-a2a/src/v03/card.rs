//! The card of 0.3: one preferred address, security schemes with `type`.

use serde_json::{Map, Value};

use crate::card::{
    AgentCard, AuthorizationCodeFlow, Capabilities, ClientCredentialsFlow, Extension, JSONRPC, OAuthFlows,
    Provider, SchemeKind, SecurityRequirement, SecurityScheme, Signature, Skill, VERSION_03,
};
use crate::object::Object;

pub(crate) fn encode(card: &AgentCard) -> Map<String, Value> {
    let modes = |modes: &[String]| Value::from(modes.to_vec());
    Object::new()
        .extend(addresses(card))
        .set("name", card.name.as_str())
        .set("description", card.description.as_str())
        .set("version", card.version.as_str())
        .optional("provider", card.provider.as_ref().map(provider))
        .optional("documentationUrl", card.documentation_url.as_deref())
        .optional("iconUrl", card.icon_url.as_deref())
        .set("capabilities", capabilities(&card.capabilities))
        .map("securitySchemes", &schemes(card, scheme))
        .list("security", card.security.iter().map(requirement))
        .set("defaultInputModes", modes(&card.default_input_modes))
        .set("defaultOutputModes", modes(&card.default_output_modes))
        .set("skills", card.skills.iter().map(|it| Value::from(skill(it))).collect::<Vec<_>>())
        .list("signatures", card.signatures.iter().map(signature))
        .into()
}

/// The members that only 0.3 has. An agent without an interface of 0.3 names its first one.
pub(crate) fn addresses(card: &AgentCard) -> Map<String, Value> {
    let ours: Vec<_> = card.interfaces_of("0.3").collect();
    let preferred = ours.first().copied().or(card.interfaces.first());
    let entry = |url: &str, transport: &str| Object::new().set("url", url).set("transport", transport);
    Object::new()
        .set("protocolVersion", VERSION_03)
        .set("url", preferred.map_or("", |interface| interface.url.as_str()))
        .set("preferredTransport", preferred.map_or(JSONRPC, |interface| interface.transport.as_str()))
        .list("additionalInterfaces", ours.iter().map(|it| entry(&it.url, &it.transport)))
        .set("supportsAuthenticatedExtendedCard", card.capabilities.extended_card)
        .into()
}

fn capabilities(capabilities: &Capabilities) -> Object {
    Object::new()
        .set("streaming", capabilities.streaming)
        .set("pushNotifications", capabilities.push_notifications)
        .set("stateTransitionHistory", capabilities.state_transition_history)
        .list("extensions", capabilities.extensions.iter().map(extension))
}

pub(crate) fn extension(extension: &Extension) -> Object {
    Object::new()
        .set("uri", extension.uri.as_str())
        .optional("description", extension.description.as_deref())
        .set("required", extension.required)
        .map("params", &extension.params)
}

pub(crate) fn provider(provider: &Provider) -> Object {
    Object::new().set("organization", provider.organization.as_str()).set("url", provider.url.as_str())
}

pub(crate) fn signature(signature: &Signature) -> Object {
    Object::new()
        .set("protected", signature.protected.as_str())
        .set("signature", signature.signature.as_str())
        .map("header", &signature.header)
}

/// What skills of both versions have.
pub(crate) fn common_skill(skill: &Skill) -> Object {
    Object::new()
        .set("id", skill.id.as_str())
        .set("name", skill.name.as_str())
        .set("description", skill.description.as_str())
        .set("tags", skill.tags.clone())
        .list("examples", skill.examples.iter().map(String::as_str))
        .list("inputModes", skill.input_modes.iter().map(String::as_str))
        .list("outputModes", skill.output_modes.iter().map(String::as_str))
}

fn skill(skill: &Skill) -> Object {
    common_skill(skill).list("security", skill.security.iter().map(requirement))
}

pub(crate) fn requirement(requirement: &SecurityRequirement) -> Value {
    requirement
        .iter()
        .map(|(name, scopes)| (name.clone(), Value::from(scopes.clone())))
        .collect::<Map<_, _>>()
        .into()
}

pub(crate) fn schemes(
    card: &AgentCard,
    write: impl Fn(&SecurityScheme) -> Map<String, Value>,
) -> Map<String, Value> {
    card.security_schemes.iter().map(|(name, it)| (name.clone(), Value::Object(write(it)))).collect()
}

pub(crate) fn scheme(scheme: &SecurityScheme) -> Map<String, Value> {
    let object = match &scheme.kind {
        SchemeKind::ApiKey { location, name } => {
            Object::new().set("type", "apiKey").set("in", location.as_str()).set("name", name.as_str())
        }
        SchemeKind::Http { scheme, bearer_format } => Object::new()
            .set("type", "http")
            .set("scheme", scheme.as_str())
            .optional("bearerFormat", bearer_format.as_deref()),
        SchemeKind::OAuth2 { flows, metadata_url } => Object::new()
            .set("type", "oauth2")
            .set("flows", oauth_flows(flows))
            .optional("oauth2MetadataUrl", metadata_url.as_deref()),
        SchemeKind::OpenIdConnect { url } => {
            Object::new().set("type", "openIdConnect").set("openIdConnectUrl", url.as_str())
        }
        SchemeKind::MutualTls => Object::new().set("type", "mutualTLS"),
        SchemeKind::Unknown(received) => {
            Object::new().extend(received.as_object().cloned().unwrap_or_default())
        }
    };
    object.optional("description", scheme.description.as_deref()).into()
}

pub(crate) fn oauth_flows(flows: &OAuthFlows) -> Object {
    Object::new()
        .optional("authorizationCode", flows.authorization_code.as_ref().map(authorization_code))
        .optional("clientCredentials", flows.client_credentials.as_ref().map(client_credentials))
}

fn authorization_code(flow: &AuthorizationCodeFlow) -> Object {
    Object::new()
        .set("authorizationUrl", flow.authorization_url.as_str())
        .set("tokenUrl", flow.token_url.as_str())
        .optional("refreshUrl", flow.refresh_url.as_deref())
        .set("scopes", scopes(flow.scopes.iter()))
}

fn client_credentials(flow: &ClientCredentialsFlow) -> Object {
    Object::new()
        .set("tokenUrl", flow.token_url.as_str())
        .optional("refreshUrl", flow.refresh_url.as_deref())
        .set("scopes", scopes(flow.scopes.iter()))
}

fn scopes<'a>(scopes: impl Iterator<Item = (&'a String, &'a String)>) -> Value {
    scopes.map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect::<Map<_, _>>().into()
}
