//! The card of 1.0, alone or with the members of 0.3.

use serde_json::{Map, Value};

use crate::card::{
    AgentCard, Capabilities, Interface, SchemeKind, SecurityRequirement, SecurityScheme, Skill,
};
use crate::object::Object;
use crate::v03;

pub(crate) fn encode(card: &AgentCard) -> Map<String, Value> {
    Object::new()
        .extend(common(card))
        .map("securitySchemes", &v03::card::schemes(card, scheme))
        .set("skills", card.skills.iter().map(|it| Value::from(skill(it))).collect::<Vec<_>>())
        .into()
}

/// A member that both versions use carries the members of both: readers ignore what they do not know.
pub(crate) fn encode_hybrid(card: &AgentCard) -> Value {
    let both = |it: &SecurityScheme| {
        let mut members = v03::card::scheme(it);
        members.extend(scheme(it));
        members
    };
    let skills = card
        .skills
        .iter()
        .map(|it| Value::from(skill(it).list("security", it.security.iter().map(v03::card::requirement))));
    let capabilities = capabilities(&card.capabilities)
        .set("stateTransitionHistory", card.capabilities.state_transition_history);
    Object::new()
        .extend(v03::card::addresses(card))
        .extend(common(card))
        .set("capabilities", capabilities)
        .map("securitySchemes", &v03::card::schemes(card, both))
        .list("security", card.security.iter().map(v03::card::requirement))
        .set("skills", skills.collect::<Vec<_>>())
        .into()
}

fn common(card: &AgentCard) -> Map<String, Value> {
    Object::new()
        .set("name", card.name.as_str())
        .set("description", card.description.as_str())
        .set(
            "supportedInterfaces",
            card.interfaces.iter().map(|it| Value::from(interface(it))).collect::<Vec<_>>(),
        )
        .optional("provider", card.provider.as_ref().map(v03::card::provider))
        .set("version", card.version.as_str())
        .optional("documentationUrl", card.documentation_url.as_deref())
        .set("capabilities", capabilities(&card.capabilities))
        .list("securityRequirements", card.security.iter().map(requirement))
        .set("defaultInputModes", card.default_input_modes.clone())
        .set("defaultOutputModes", card.default_output_modes.clone())
        .list("signatures", card.signatures.iter().map(v03::card::signature))
        .optional("iconUrl", card.icon_url.as_deref())
        .into()
}

fn interface(interface: &Interface) -> Object {
    // 1.0 names protocol versions by major and minor number.
    let version = interface.protocol_version.strip_suffix(".0").filter(|short| short.contains('.'));
    Object::new()
        .set("url", interface.url.as_str())
        .set("protocolBinding", interface.transport.as_str())
        .set("protocolVersion", version.unwrap_or(&interface.protocol_version))
        .optional("tenant", interface.tenant.as_deref())
}

fn capabilities(capabilities: &Capabilities) -> Object {
    Object::new()
        .set("streaming", capabilities.streaming)
        .set("pushNotifications", capabilities.push_notifications)
        .list("extensions", capabilities.extensions.iter().map(v03::card::extension))
        .set("extendedAgentCard", capabilities.extended_card)
}

fn skill(skill: &Skill) -> Object {
    v03::card::common_skill(skill).list("securityRequirements", skill.security.iter().map(requirement))
}

fn requirement(requirement: &SecurityRequirement) -> Object {
    let list = |scopes: &Vec<String>| Value::from(Object::new().set("list", scopes.clone()));
    let schemes: Map<String, Value> = requirement.iter().map(|(name, it)| (name.clone(), list(it))).collect();
    Object::new().set("schemes", schemes)
}

fn scheme(scheme: &SecurityScheme) -> Map<String, Value> {
    let described = Object::new().optional("description", scheme.description.as_deref());
    let (member, object) = match &scheme.kind {
        SchemeKind::ApiKey { location, name } => {
            ("apiKeySecurityScheme", described.set("location", location.as_str()).set("name", name.as_str()))
        }
        SchemeKind::Http { scheme, bearer_format } => (
            "httpAuthSecurityScheme",
            described.set("scheme", scheme.as_str()).optional("bearerFormat", bearer_format.as_deref()),
        ),
        SchemeKind::OAuth2 { flows, metadata_url } => (
            "oauth2SecurityScheme",
            described
                .set("flows", v03::card::oauth_flows(flows))
                .optional("oauth2MetadataUrl", metadata_url.as_deref()),
        ),
        SchemeKind::OpenIdConnect { url } => {
            ("openIdConnectSecurityScheme", described.set("openIdConnectUrl", url.as_str()))
        }
        SchemeKind::MutualTls => ("mtlsSecurityScheme", described),
        SchemeKind::Unknown(received) => return received.as_object().cloned().unwrap_or_default(),
    };
    Object::new().set(member, object).into()
}
