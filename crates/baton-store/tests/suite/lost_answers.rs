//! A connection that breaks at the worst moment: around the commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use baton_core::{StoreError, TenantStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{acme, append, claimed, fresh_database, open_postgres, server};

/// What happens to the next commit that passes.
#[derive(Clone, Copy)]
enum Cut {
    Never,
    /// It does not reach the server.
    Before,
    /// It is done, and its answer is lost.
    After,
}

/// Stands between Baton and its database.
#[derive(Clone, Default)]
struct Proxy {
    cut: Arc<AtomicU8>,
}

impl Proxy {
    fn set(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Takes connections for the server of `url` until the test ends; returns the URL to use instead.
    async fn listen(&self, url: &str) -> String {
        let mut url = url::Url::parse(url).unwrap();
        let target = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        // Otherwise a commit could not be told from anything else.
        url.set_query(Some("sslmode=disable"));
        let proxy = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&target).await.unwrap();
                tokio::spawn(proxy.clone().pass(client, server));
            }
        });
        url.into()
    }

    /// Both connections end when this does.
    async fn pass(self, mut client: TcpStream, mut server: TcpStream) {
        let (mut asked, mut answered) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                Ok(size @ 1..) = client.read(&mut asked) => {
                    let is_commit = asked[..size].windows(7).any(|bytes| bytes == b"COMMIT\0");
                    let cut = if is_commit { self.cut.swap(Cut::Never as u8, Ordering::SeqCst) } else { Cut::Never as u8 };
                    if cut == Cut::Before as u8 || server.write_all(&asked[..size]).await.is_err() {
                        return;
                    }
                    if cut == Cut::After as u8 {
                        let _ = server.read(&mut answered).await;
                        return;
                    }
                }
                Ok(size @ 1..) = server.read(&mut answered) => {
                    if client.write_all(&answered[..size]).await.is_err() {
                        return;
                    }
                }
                else => return,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_that_a_lost_commit_was_done() {
    let proxy = Proxy::default();
    let url = fresh_database(&server()).await;
    let store = open_postgres(&proxy.listen(&url).await).await.unwrap();
    let tenant: Arc<dyn TenantStore> = acme(&store);
    let claim = claimed(&*tenant, "one").await;

    for (number, cut, written) in [(1, Cut::Before, 0), (2, Cut::After, 2)] {
        proxy.set(cut);
        let lost = tenant.append(&claim, append(number)).await.unwrap_err();
        assert!(matches!(&lost, StoreError::OutcomeUnknown(_)), "{lost}");
        assert_eq!(tenant.events(claim.thread_id, 0, 10).await.unwrap().len(), written);
        assert_eq!(
            tenant.append(&claim, append(number)).await.unwrap().first_seq,
            number,
            "the same again is safe"
        );
    }
    let paths = tenant.events(claim.thread_id, 0, 10).await.unwrap();
    assert_eq!(paths.iter().map(|event| &*event.path).collect::<Vec<_>>(), ["append:1", "append:2"]);
}
