//! Objects with every member set, for the other tests.

use baton_a2a::card::{
    AgentCard, AuthorizationCodeFlow, Capabilities, ClientCredentialsFlow, HTTP_JSON, Interface, JSONRPC,
    OAuthFlows, Provider, SchemeKind, SecurityScheme, Signature, Skill,
};
use baton_a2a::extension::ExtensionParams;
use baton_a2a::model::{
    Artifact, ArtifactUpdate, Content, Message, Metadata, Part, PushAuthentication, PushConfig, Role,
    SendConfiguration, SendParams, StatusUpdate, Task, TaskState, TaskStatus,
};
use indexmap::IndexMap;
use serde_json::{Value, json};

pub(crate) fn metadata() -> Metadata {
    let Value::Object(map) = json!({ "https://example.com/ext": { "n": 1, "deep": [true, null] } }) else {
        panic!()
    };
    map
}

pub(crate) fn parts() -> Vec<Part> {
    let file = |content| Part {
        filename: Some("report.pdf".to_owned()),
        media_type: Some("application/pdf".to_owned()),
        ..Part::new(content)
    };
    vec![
        Part { metadata: metadata(), ..Part::text("Grüße\n\u{1F600}") },
        file(Content::Bytes(vec![0, 255, 1, 2, 3])),
        file(Content::Uri("https://example.com/report.pdf".to_owned())),
        Part::data(json!({ "approved": true, "count": 3, "data": { "nested": "yes" } })),
    ]
}

pub(crate) fn message(role: Role) -> Message {
    Message {
        context_id: Some("context".to_owned()),
        task_id: Some("task".to_owned()),
        extensions: vec!["https://example.com/ext".to_owned()],
        metadata: metadata(),
        ..Message::new("message", role, parts())
    }
}

pub(crate) fn status(state: TaskState) -> TaskStatus {
    let timestamp = Some("2026-02-03T04:05:06.789Z".parse().unwrap());
    TaskStatus { state, message: Some(message(Role::Agent)), timestamp }
}

pub(crate) fn artifact() -> Artifact {
    Artifact {
        name: Some("report".to_owned()),
        description: Some("The report".to_owned()),
        extensions: vec!["https://example.com/ext".to_owned()],
        metadata: metadata(),
        ..Artifact::new("artifact", parts())
    }
}

pub(crate) fn task(state: TaskState) -> Task {
    Task {
        id: "task".to_owned(),
        context_id: "context".to_owned(),
        status: status(state),
        history: vec![message(Role::User), message(Role::Agent)],
        artifacts: vec![artifact()],
        metadata: metadata(),
    }
}

pub(crate) fn status_update(state: TaskState) -> StatusUpdate {
    StatusUpdate {
        task_id: "task".to_owned(),
        context_id: "context".to_owned(),
        status: status(state),
        is_final: state.closes_stream(),
        metadata: metadata(),
    }
}

pub(crate) fn artifact_update() -> ArtifactUpdate {
    ArtifactUpdate {
        task_id: "task".to_owned(),
        context_id: "context".to_owned(),
        artifact: artifact(),
        append: true,
        last_chunk: false,
        metadata: metadata(),
    }
}

pub(crate) fn push_config() -> PushConfig {
    PushConfig {
        id: Some("config".to_owned()),
        url: "https://example.com/hook".to_owned(),
        token: Some("token".to_owned()),
        authentication: Some(PushAuthentication {
            schemes: vec!["Bearer".to_owned()],
            credentials: Some("secret".to_owned()),
        }),
    }
}

pub(crate) fn send_params() -> SendParams {
    SendParams {
        message: message(Role::User),
        configuration: SendConfiguration {
            accepted_output_modes: vec!["text/plain".to_owned()],
            history_length: Some(3),
            blocking: false,
            push: Some(push_config()),
        },
        metadata: metadata(),
    }
}

fn interface(url: &str, transport: &str, version: &str) -> Interface {
    Interface {
        url: url.to_owned(),
        transport: transport.to_owned(),
        protocol_version: version.to_owned(),
        tenant: None,
    }
}

fn scheme(kind: SchemeKind) -> SecurityScheme {
    SecurityScheme { description: Some("how to authenticate".to_owned()), kind }
}

fn schemes() -> IndexMap<String, SecurityScheme> {
    let scopes = || IndexMap::from([("read".to_owned(), "Read".to_owned())]);
    let flows = OAuthFlows {
        authorization_code: Some(AuthorizationCodeFlow {
            authorization_url: "https://example.com/authorize".to_owned(),
            token_url: "https://example.com/token".to_owned(),
            refresh_url: Some("https://example.com/refresh".to_owned()),
            scopes: scopes(),
        }),
        client_credentials: Some(ClientCredentialsFlow {
            token_url: "https://example.com/token".to_owned(),
            refresh_url: None,
            scopes: scopes(),
        }),
    };
    let kinds = [
        ("key", SchemeKind::ApiKey { location: "header".to_owned(), name: "X-Key".to_owned() }),
        ("bearer", SchemeKind::Http { scheme: "bearer".to_owned(), bearer_format: Some("JWT".to_owned()) }),
        (
            "oauth",
            SchemeKind::OAuth2 { flows, metadata_url: Some("https://example.com/metadata".to_owned()) },
        ),
        ("oidc", SchemeKind::OpenIdConnect { url: "https://example.com/.well-known".to_owned() }),
        ("mtls", SchemeKind::MutualTls),
    ];
    kinds.into_iter().map(|(name, kind)| (name.to_owned(), scheme(kind))).collect()
}

/// A card with everything that all forms can carry.
pub(crate) fn card(versions: &[&str]) -> AgentCard {
    let both = |version: &&str| {
        [
            interface("https://example.com/a2a", JSONRPC, version),
            interface("https://example.com/rest", HTTP_JSON, version),
        ]
    };
    let requirement = || IndexMap::from([("oauth".to_owned(), vec!["read".to_owned()])]);
    AgentCard {
        name: "assistant".to_owned(),
        description: "Answers questions".to_owned(),
        version: "1.2.3".to_owned(),
        interfaces: versions.iter().flat_map(both).collect(),
        provider: Some(Provider {
            organization: "Example".to_owned(),
            url: "https://example.com".to_owned(),
        }),
        documentation_url: Some("https://example.com/docs".to_owned()),
        icon_url: Some("https://example.com/icon.png".to_owned()),
        capabilities: Capabilities {
            streaming: true,
            push_notifications: true,
            state_transition_history: false,
            extended_card: true,
            extensions: vec![ExtensionParams::default().declare()],
        },
        security_schemes: schemes(),
        security: vec![requirement(), IndexMap::from([("key".to_owned(), Vec::new())])],
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
        skills: vec![Skill {
            id: "answer".to_owned(),
            name: "Answer".to_owned(),
            description: "Answers".to_owned(),
            tags: vec!["chat".to_owned()],
            examples: vec!["What is A2A?".to_owned()],
            input_modes: vec!["text/plain".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
            security: vec![requirement()],
        }],
        signatures: vec![Signature {
            protected: "e30".to_owned(),
            signature: "c2ln".to_owned(),
            header: metadata(),
        }],
    }
}
