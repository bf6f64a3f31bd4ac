//! Starting a server and shaking hands with it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use baton_core::HumanDuration;
use baton_core::agent::McpServer;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, ServiceExt};

use super::NotificationListener;
use super::failure::chain;
use crate::process::ChildProcess;
use crate::servers::McpSettings;
use crate::{confinement, http};

type OpenedConnection = RunningService<RoleClient, NotificationListener>;

/// The error is a text for people, in which secrets are not hidden yet.
pub(super) async fn open(
    server: &McpServer,
    listener: NotificationListener,
    lost: &Arc<AtomicBool>,
    settings: &McpSettings,
    workspace: Option<&Path>,
) -> Result<(OpenedConnection, Option<ChildProcess>), String> {
    match server {
        McpServer::Stdio { command, args, env, access } => {
            let program = confinement::program(command, env, access, settings, workspace).await?;
            let (process, (stdout, stdin)) = ChildProcess::spawn(program, args)
                .map_err(|error| format!("`{command}` cannot be run: {error}"))?;
            // Long lines are dealt with before they get here.
            let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
            match shake_hands(listener, transport, settings.start_timeout).await {
                Ok(service) => Ok((service, Some(process))),
                Err(failure) => Err(failure.explained(&process).await),
            }
        }
        McpServer::Http { url, headers } => {
            let transport = http::transport(url, headers, Arc::clone(lost))?;
            let service = shake_hands(listener, transport, settings.start_timeout).await;
            service.map(|service| (service, None)).map_err(|failure| failure.to_string())
        }
        McpServer::Configured => Err("it is not described anywhere".to_owned()),
    }
}

async fn shake_hands<T, E, A>(
    listener: NotificationListener,
    transport: T,
    limit: HumanDuration,
) -> Result<OpenedConnection, NotOpened>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    match tokio::time::timeout(limit.get(), listener.serve(transport)).await {
        Err(_) => Err(NotOpened::Timeout(limit)),
        Ok(Err(error)) => Err(NotOpened::Failed(Box::new(error))),
        Ok(Ok(service)) => Ok(service),
    }
}

enum NotOpened {
    Timeout(HumanDuration),
    Failed(Box<ClientInitializeError>),
}

impl NotOpened {
    async fn explained(self, process: &ChildProcess) -> String {
        match &self {
            // Both mean that nobody is at the other end; how it ended says more than how that was noticed.
            Self::Failed(error)
                if matches!(
                    **error,
                    ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
                ) =>
            {
                process.obituary().await
            }
            _ => format!("{self}{}", process.last_words()),
        }
    }
}

impl std::fmt::Display for NotOpened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Timeout(limit) => write!(f, "it did not answer within {limit}"),
            Self::Failed(error) => match error.as_ref() {
                // Its own text names Rust types.
                ClientInitializeError::TransportError { error, .. } => f.write_str(&chain(&*error.error)),
                error => f.write_str(&chain(error)),
            },
        }
    }
}
