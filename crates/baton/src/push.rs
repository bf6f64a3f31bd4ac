//! Sends push notifications of A2A tasks. Clients choose the addresses, so private ones are refused unless the operator allows them.

use std::time::Duration;

use baton_server::a2a::push::sender::{PushRequest, PushSender};
use baton_tools::web::reach::ReachRefused;
use baton_tools::web::{LazyClient, Reach};
use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};

/// The whole request, until the head of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Resolves names to permitted addresses only, and follows no redirect.
#[derive(Debug)]
pub struct HttpSender(LazyClient);

impl HttpSender {
    pub fn new(allow_private: bool) -> Self {
        Self(LazyClient::new(Reach { allow_private, allowed_hosts: Vec::new() }))
    }

    fn permitted(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url).map_err(|_| "it is not an address".to_owned())?;
        self.0.reach().check(&url).map_err(|refused| match refused {
            ReachRefused::Private(host) => {
                format!("`{host}` is not on the public internet; `a2a.push_allow_private = true` allows it")
            }
            other => other.to_string(),
        })?;
        Ok(url)
    }
}

impl PushSender for HttpSender {
    fn check(&self, url: &str) -> Result<(), String> {
        self.permitted(url).map(drop)
    }

    fn send(&self, request: PushRequest) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let url = self.permitted(&request.url)?;
            let host = url.host_str().unwrap_or_default().to_owned();
            let client =
                self.0.get().await.map_err(|error| format!("the client cannot be set up: {error}"))?;
            let mut post =
                client.post(url).timeout(REQUEST_TIMEOUT).header(CONTENT_TYPE, request.content_type);
            if let Some(token) = request.token {
                post = post.header("X-A2A-Notification-Token", token);
            }
            if let Some(authorization) = request.authorization {
                post = post.header(AUTHORIZATION, authorization);
            }
            // Without the address: its path and query are often secrets.
            let response = post.body(request.body).send().await.map_err(|error| {
                let error = error.without_url();
                let mut cause: &(dyn std::error::Error + 'static) = &error;
                while let Some(inner) = cause.source() {
                    cause = inner;
                }
                format!("{host} cannot be reached: {cause}")
            })?;
            let status = response.status();
            if status.is_success() { Ok(()) } else { Err(format!("{host} answered {}", status.as_u16())) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_unless_allowed() {
        let (public, private) = (HttpSender::new(false), HttpSender::new(true));
        for url in ["http://127.0.0.1/x", "http://[::1]/x", "http://169.254.169.254/x", "http://2130706433/"]
        {
            let refused = public.check(url).unwrap_err();
            assert!(refused.contains("not on the public internet"), "{refused}");
            assert_eq!(private.check(url), Ok(()));
        }
        for url in ["x", "ftp://example.com/", "https://user:secret@example.com/"] {
            let refused = private.check(url).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
        assert_eq!(public.check("https://example.com/hook"), Ok(()));
    }
}
