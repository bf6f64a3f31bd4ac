//! Agent cards: what an agent is, where it is reached, and how callers authenticate.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use baton_a2a::card::{
    AgentCard, Capabilities, HTTP_JSON, Interface, JSONRPC, SchemeKind, SecurityRequirement, SecurityScheme,
    Skill, VERSION_03, VERSION_10,
};
use baton_a2a::signature::CardSigner;
use baton_a2a::{WireForm, wire};
use baton_core::AgentName;
use baton_core::agent::Agent;
use data_encoding::HEXLOWER;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::exchange::{Exchange, path_param, version};
use super::failure::A2aResult;
use super::settings::CardForm;
use super::{parts, push, skills};
use crate::app::App;
use crate::guards::origins::is_loopback;
use crate::identity::{AuthenticationMode, Principal};
use crate::named;
use crate::problem::{ApiResult, Code, Problem};
use crate::routes::handoff;

/// How long a client may keep a card, in seconds.
const MAX_AGE: &str = "public, max-age=60";
const BEARER: &str = "bearer";

/// The address of this server: as configured, or the loopback name that the client used. Other names in `Host` are not believed,
/// because a card with a forged address would send clients and their credentials elsewhere.
pub fn base_url(app: &App, headers: &HeaderMap) -> Option<String> {
    if let Some(url) = app.settings.a2a.as_ref().and_then(|settings| settings.public_url.clone()) {
        return Some(url.trim_end_matches('/').to_owned());
    }
    let host: Authority = headers.get(header::HOST)?.to_str().ok()?.parse().ok()?;
    is_loopback(host.host()).then(|| format!("{}://{host}", app.settings.scheme()))
}

/// The public card, for everyone.
pub async fn card(State(app): State<App>, request: Request) -> ApiResult<Response> {
    let (mut parts, _) = request.into_parts();
    let agent = match path_param(&mut parts, &app, "agent").await {
        Some(name) => named::public_agent(&app, &name)?,
        None => named::public_agent(&app, public_main(&app)?.as_str())?,
    };
    let is_root = !parts.uri.path().starts_with("/a2a/");
    let base = base_url(&app, &parts.headers).ok_or_else(no_address)?;
    let card = build(&app, &agent, &base, is_root, Vec::new());
    let version = version(&parts.headers, &parts.uri);
    let unsigned = written(&app, &card, version.as_deref());
    Ok(cached(&unsigned, &parts.headers, || match signer(&app) {
        Some(_) => written(&app, &signed(&app, card, &base), version.as_deref()),
        None => unsigned.clone(),
    }))
}

/// The card of an authenticated caller: with what the agent can delegate to.
pub fn extended(exchange: &Exchange, form: WireForm) -> A2aResult<Value> {
    let Exchange { app, caller, .. } = exchange;
    let agent = match &exchange.agent {
        Some(agent) => Arc::clone(agent),
        None => named::agent(app, caller, handoff::main(app, caller)?.as_str())?,
    };
    let base = exchange.base.as_deref().ok_or_else(no_address)?;
    let delegated = skills::delegated(&agent, &app.agents(caller));
    let card = build(app, &agent, base, exchange.agent.is_none(), delegated);
    let card = signed(app, card, base);
    Ok(form.encode_card(&card))
}

/// The card as the native API shows it. Without a known address the paths are relative to this server.
pub fn native_card(app: &App, caller: &Principal, agent: &Agent, headers: &HeaderMap) -> Value {
    let base = base_url(app, headers).unwrap_or_default();
    let delegated = skills::delegated(agent, &app.agents(caller));
    let card = build(app, agent, &base, false, delegated);
    match app.settings.a2a.as_ref().map(|settings| settings.card).unwrap_or_default() {
        CardForm::V10 => WireForm::V10.encode_card(&card),
        CardForm::V03 => WireForm::V03.encode_card(&card),
        CardForm::Hybrid => wire::encode_hybrid_card(&card),
    }
}

/// The main agent, as those see it who are of no tenant.
fn public_main(app: &App) -> ApiResult<AgentName> {
    let (main, _) = (app.choose)(None, &app.engine.all_agents(), "").map_err(handoff::no_main)?;
    Ok(main)
}

fn no_address() -> Problem {
    let detail = "this server does not know its own address: set `a2a.public_url` in baton.toml";
    Problem::new(Code::NotFound, detail)
}

/// `delegated` are the skills of the agents that it works with, for callers that are authenticated.
fn build(app: &App, agent: &Agent, base: &str, is_root: bool, delegated: Vec<Skill>) -> AgentCard {
    let modes = || vec!["text/plain".to_owned(), "application/json".to_owned()];
    let skills = [vec![skills::own(agent)], delegated].concat();
    let (security_schemes, security) = security(app);
    AgentCard {
        name: agent.display_name.clone(),
        description: agent.description.clone(),
        version: agent.version.to_string(),
        interfaces: interfaces(agent, base, is_root),
        provider: None,
        documentation_url: None,
        icon_url: None,
        capabilities: Capabilities {
            streaming: true,
            push_notifications: push::is_supported(app),
            state_transition_history: false,
            extended_card: true,
            extensions: vec![skills::extension(agent).declare()],
        },
        security_schemes,
        security,
        default_input_modes: parts::INPUT_MODES.map(str::to_owned).to_vec(),
        default_output_modes: modes(),
        skills,
        signatures: Vec::new(),
    }
}

/// Where the public key is served that cards are signed with.
pub const KEY_PATH: &str = "/.well-known/jwks.json";

/// Signs the card for the readers of both versions, if the operator has given a key.
fn signed(app: &App, mut card: AgentCard, base: &str) -> AgentCard {
    let Some(signer) = signer(app) else { return card };
    let key_url = format!("{base}{KEY_PATH}");
    let signatures = [WireForm::V10, WireForm::V03].map(|form| signer.sign(&card, form, &key_url));
    for signature in signatures {
        match signature {
            Ok(signature) => card.signatures.push(signature),
            Err(error) => tracing::error!(%error, "an agent card is not signed"),
        }
    }
    card
}

fn signer(app: &App) -> Option<&CardSigner> {
    app.settings.a2a.as_ref()?.signer.as_deref()
}

/// The public key that cards are signed with.
pub async fn keys(State(app): State<App>) -> ApiResult<Json<Value>> {
    let not_found = || Problem::new(Code::NotFound, "the agent cards of this server are not signed");
    let keys = signer(&app).ok_or_else(not_found)?.key_set();
    Ok(Json(serde_json::to_value(keys).unwrap_or_default()))
}

/// Both transports in both versions. JSON-RPC is preferred.
fn interfaces(agent: &Agent, base: &str, is_root: bool) -> Vec<Interface> {
    let path = if is_root { String::new() } else { format!("/a2a/{}", agent.name) };
    let rpc = if is_root { format!("{base}/") } else { format!("{base}{path}") };
    let of = |version: &str, transport: &str, url: &str| Interface {
        url: url.to_owned(),
        transport: transport.to_owned(),
        protocol_version: version.to_owned(),
        tenant: None,
    };
    let versions = [VERSION_10, VERSION_03];
    let both = versions
        .map(|version| [of(version, JSONRPC, &rpc), of(version, HTTP_JSON, &format!("{base}{path}"))]);
    both.into_iter().flatten().collect()
}

/// What the server enforces; nothing in open mode.
fn security(app: &App) -> (indexmap::IndexMap<String, SecurityScheme>, Vec<SecurityRequirement>) {
    if app.settings.auth.mode == AuthenticationMode::Open {
        return Default::default();
    }
    let format = app.settings.auth.tokens.as_ref().map(|_| "JWT".to_owned());
    let description = match &format {
        Some(_) => "An API key of this server, or a JWT of its identity provider.",
        None => "An API key of this server.",
    };
    let scheme = SecurityScheme {
        description: Some(description.to_owned()),
        kind: SchemeKind::Http { scheme: BEARER.to_owned(), bearer_format: format },
    };
    let requirement = SecurityRequirement::from_iter([(BEARER.to_owned(), Vec::new())]);
    (indexmap::IndexMap::from([(BEARER.to_owned(), scheme)]), vec![requirement])
}

/// The card in the requested version, or as configured.
fn written(app: &App, card: &AgentCard, version: Option<&str>) -> String {
    let configured = app.settings.a2a.as_ref().map(|settings| settings.card).unwrap_or_default();
    let form = match version {
        Some(version) if version.starts_with("0.3") => CardForm::V03,
        Some(version) if version.starts_with("1.") => CardForm::V10,
        _ => configured,
    };
    match form {
        CardForm::V03 => WireForm::V03.encode_card(card),
        CardForm::V10 => WireForm::V10.encode_card(card),
        CardForm::Hybrid => wire::encode_hybrid_card(card),
    }
    .to_string()
}

/// The response with `body`, or without one if the client has it. The tag is that of the card without its signatures, which differ each
/// time.
fn cached(unsigned: &str, headers: &HeaderMap, body: impl FnOnce() -> String) -> Response {
    let tag = format!("\"{}\"", HEXLOWER.encode(&Sha256::digest(unsigned)[..16]));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known =
        known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (kind, body()).into_response()
    };
    let answer = response.headers_mut();
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
    answer.insert(header::VARY, HeaderValue::from_static("a2a-version, host"));
    answer.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
    response
}
