//! Reading agent cards of any version.

use indexmap::IndexMap;
use serde_json::Value;

use crate::card::{
    AgentCard, AuthorizationCodeFlow, Capabilities, ClientCredentialsFlow, Extension, Interface, JSONRPC,
    OAuthFlows, Provider, SchemeKind, SecurityRequirement, SecurityScheme, Signature, Skill, VERSION_03,
};
use crate::error::Invalid;
use crate::fields::Fields;

pub(crate) fn card(value: &Value) -> Result<AgentCard, Invalid> {
    let fields = Fields::new(value)?;
    let mut capabilities = fields.object("capabilities", capabilities)?.unwrap_or_default();
    capabilities.extended_card |= fields.flag("supportsAuthenticatedExtendedCard")?.unwrap_or(false);
    Ok(AgentCard {
        name: fields.required("name")?,
        description: fields.text("description")?.unwrap_or_default(),
        version: fields.text("version")?.unwrap_or_default(),
        interfaces: interfaces(fields)?,
        provider: fields.object("provider", provider)?,
        documentation_url: fields.nonempty("documentationUrl")?,
        icon_url: fields.nonempty("iconUrl")?,
        capabilities,
        security_schemes: schemes(fields)?,
        security: requirements(fields)?,
        default_input_modes: fields.texts("defaultInputModes")?,
        default_output_modes: fields.texts("defaultOutputModes")?,
        skills: fields.each("skills", skill)?,
        signatures: fields.each("signatures", signature)?,
    })
}

/// The interfaces of 1.0 as listed; those of 0.3 begin with the preferred one.
fn interfaces(fields: Fields<'_>) -> Result<Vec<Interface>, Invalid> {
    let mut found = fields.each("supportedInterfaces", interface)?;
    if let Some(url) = fields.nonempty("url")? {
        let transport = fields.nonempty("preferredTransport")?.unwrap_or_else(|| JSONRPC.to_owned());
        let version = fields.nonempty("protocolVersion")?.unwrap_or_else(|| VERSION_03.to_owned());
        add(&mut found, Interface { url, transport, protocol_version: version.clone(), tenant: None });
        for mut additional in fields.each("additionalInterfaces", interface)? {
            additional.protocol_version.clone_from(&version);
            add(&mut found, additional);
        }
    }
    if found.is_empty() {
        return Err(Invalid::new("names no interface"));
    }
    Ok(found)
}

/// Adds an interface unless the same one is there, perhaps with a shorter version number.
fn add(found: &mut Vec<Interface>, added: Interface) {
    let minor = |version: &str| version.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    let same = |it: &Interface| {
        it.url == added.url
            && it.transport.eq_ignore_ascii_case(&added.transport)
            && minor(&it.protocol_version) == minor(&added.protocol_version)
    };
    if !found.iter().any(same) {
        found.push(added);
    }
}

fn interface(value: &Value) -> Result<Interface, Invalid> {
    let fields = Fields::new(value)?;
    let transport = match fields.nonempty("protocolBinding")? {
        Some(binding) => binding,
        None => fields.nonempty("transport")?.unwrap_or_else(|| JSONRPC.to_owned()),
    };
    Ok(Interface {
        url: fields.required("url")?,
        transport,
        protocol_version: fields.nonempty("protocolVersion")?.unwrap_or_else(|| VERSION_03.to_owned()),
        tenant: fields.nonempty("tenant")?,
    })
}

fn provider(value: &Value) -> Result<Provider, Invalid> {
    let fields = Fields::new(value)?;
    let organization = fields.text("organization")?.unwrap_or_default();
    Ok(Provider { organization, url: fields.text("url")?.unwrap_or_default() })
}

fn capabilities(value: &Value) -> Result<Capabilities, Invalid> {
    let fields = Fields::new(value)?;
    let flag = |name: &str| Ok::<bool, Invalid>(fields.flag(name)?.unwrap_or(false));
    Ok(Capabilities {
        streaming: flag("streaming")?,
        push_notifications: flag("pushNotifications")?,
        state_transition_history: flag("stateTransitionHistory")?,
        extended_card: flag("extendedAgentCard")?,
        extensions: fields.each("extensions", extension)?,
    })
}

fn extension(value: &Value) -> Result<Extension, Invalid> {
    let fields = Fields::new(value)?;
    Ok(Extension {
        uri: fields.required("uri")?,
        description: fields.nonempty("description")?,
        required: fields.flag("required")?.unwrap_or(false),
        params: fields.map("params")?,
    })
}

fn skill(value: &Value) -> Result<Skill, Invalid> {
    let fields = Fields::new(value)?;
    Ok(Skill {
        id: fields.required("id")?,
        name: fields.text("name")?.unwrap_or_default(),
        description: fields.text("description")?.unwrap_or_default(),
        tags: fields.texts("tags")?,
        examples: fields.texts("examples")?,
        input_modes: fields.texts("inputModes")?,
        output_modes: fields.texts("outputModes")?,
        security: requirements(fields)?,
    })
}

fn signature(value: &Value) -> Result<Signature, Invalid> {
    let fields = Fields::new(value)?;
    Ok(Signature {
        protected: fields.required("protected")?,
        signature: fields.required("signature")?,
        header: fields.map("header")?,
    })
}

/// `securityRequirements` of 1.0, or `security` of 0.3 in the form of its schema or of its proto.
fn requirements(fields: Fields<'_>) -> Result<Vec<SecurityRequirement>, Invalid> {
    let member =
        if fields.get("securityRequirements").is_some() { "securityRequirements" } else { "security" };
    fields.each(member, requirement)
}

fn requirement(value: &Value) -> Result<SecurityRequirement, Invalid> {
    let fields = Fields::new(value)?;
    let schemes = match fields.get("schemes").filter(|schemes| schemes.is_object()) {
        Some(schemes) => Fields::new(schemes)?.as_map(),
        None => fields.as_map(),
    };
    let scopes = |value: &Value| {
        let listed = value.get("list").unwrap_or(value).as_array().cloned().unwrap_or_default();
        listed.iter().filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
    };
    Ok(schemes.iter().map(|(name, value)| (name.clone(), scopes(value))).collect())
}

fn schemes(fields: Fields<'_>) -> Result<IndexMap<String, SecurityScheme>, Invalid> {
    let Some(all) = fields.get("securitySchemes") else { return Ok(IndexMap::new()) };
    let all = Fields::new(all).map_err(|invalid| invalid.within("securitySchemes"))?.as_map();
    let read = |name: &String, value: &Value| {
        scheme(value).map_err(|invalid| invalid.within(&format!("securitySchemes.{name}")))
    };
    all.iter().map(|(name, value)| Ok((name.clone(), read(name, value)?))).collect()
}

/// The members by which 1.0 and the proto of 0.3 tag schemes, with the `type` of the schema of 0.3.
const TAGS: [(&str, &str); 5] = [
    ("apiKeySecurityScheme", "apiKey"),
    ("httpAuthSecurityScheme", "http"),
    ("oauth2SecurityScheme", "oauth2"),
    ("openIdConnectSecurityScheme", "openIdConnect"),
    ("mtlsSecurityScheme", "mutualTLS"),
];

fn scheme(value: &Value) -> Result<SecurityScheme, Invalid> {
    let outer = Fields::new(value)?;
    let tagged = TAGS.iter().find_map(|(member, kind)| Some((*kind, outer.get(member)?)));
    let (kind, fields) = match tagged {
        Some((kind, inner)) => (kind.to_owned(), Fields::new(inner)?),
        None => (outer.text("type")?.unwrap_or_default(), outer),
    };
    let description = fields.nonempty("description")?;
    Ok(SecurityScheme { description, kind: scheme_kind(&kind, fields, value)? })
}

fn scheme_kind(kind: &str, fields: Fields<'_>, value: &Value) -> Result<SchemeKind, Invalid> {
    Ok(match kind {
        "apiKey" => SchemeKind::ApiKey {
            location: match fields.nonempty("location")? {
                Some(location) => location,
                None => fields.required("in")?,
            },
            name: fields.required("name")?,
        },
        "http" => SchemeKind::Http {
            scheme: fields.required("scheme")?,
            bearer_format: fields.nonempty("bearerFormat")?,
        },
        "oauth2" => SchemeKind::OAuth2 {
            flows: fields.object("flows", flows)?.unwrap_or_default(),
            metadata_url: fields.nonempty("oauth2MetadataUrl")?,
        },
        "openIdConnect" => SchemeKind::OpenIdConnect { url: fields.required("openIdConnectUrl")? },
        "mutualTLS" => SchemeKind::MutualTls,
        _ => SchemeKind::Unknown(value.clone()),
    })
}

fn flows(value: &Value) -> Result<OAuthFlows, Invalid> {
    let fields = Fields::new(value)?;
    Ok(OAuthFlows {
        authorization_code: fields.object("authorizationCode", authorization_code)?,
        client_credentials: fields.object("clientCredentials", client_credentials)?,
    })
}

fn authorization_code(value: &Value) -> Result<AuthorizationCodeFlow, Invalid> {
    let fields = Fields::new(value)?;
    Ok(AuthorizationCodeFlow {
        authorization_url: fields.required("authorizationUrl")?,
        token_url: fields.required("tokenUrl")?,
        refresh_url: fields.nonempty("refreshUrl")?,
        scopes: scopes(fields)?,
    })
}

fn client_credentials(value: &Value) -> Result<ClientCredentialsFlow, Invalid> {
    let fields = Fields::new(value)?;
    Ok(ClientCredentialsFlow {
        token_url: fields.required("tokenUrl")?,
        refresh_url: fields.nonempty("refreshUrl")?,
        scopes: scopes(fields)?,
    })
}

fn scopes(fields: Fields<'_>) -> Result<IndexMap<String, String>, Invalid> {
    let scopes = fields.map("scopes")?;
    Ok(scopes.into_iter().map(|(name, text)| (name, text.as_str().unwrap_or_default().to_owned())).collect())
}
