//! Bytes that nobody in their right mind sends. Whatever they are, the server goes on and nothing in it panics.

mod nasty;
mod random;

use std::net::SocketAddr;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_models::scripted::Scripted;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::doors::{ON_PURPOSE, doors};
use crate::site::{LONG, Plan, Site};

/// So many connections are open at a time.
const BATCH: usize = 25;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts every panic in this process, also those in tasks that nobody waits for.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(ON_PURPOSE) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(panic);
        }));
    });
}

async fn site() -> Site {
    count_panics();
    let patient = Plan::new(&Scripted::default()).doors(doors());
    let plan = patient.settings(|settings| {
        settings.limits.read_timeout = Duration::from_millis(300);
        settings.limits.keep_alive = Duration::from_millis(300);
        settings.limits.request_timeout = Duration::from_millis(300);
        settings.limits.requests_per_minute = std::num::NonZeroU32::MAX;
    });
    let mut site = plan.start().await;
    // A connection that is kept may be closed in the moment it is used again.
    site.http = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    site
}

/// Sends it, perhaps in pieces, and takes what comes back until somebody hangs up. An odd number of pieces says that nothing
/// follows; an even one leaves that to the patience of the server.
async fn send(address: SocketAddr, bytes: Vec<u8>, pieces: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("the server accepts connections");
    let size = bytes.len().div_ceil(pieces.max(1)).max(1);
    for piece in bytes.chunks(size) {
        if stream.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    if pieces % 2 == 1 {
        let _ = stream.shutdown().await;
    }
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await.expect("an end");
    answer
}

/// All of them, and after each batch a look at whether the server lives.
async fn survive(site: &Site, cases: impl Iterator<Item = (String, Vec<u8>, usize)>) {
    let mut cases = cases.peekable();
    while cases.peek().is_some() {
        let batch: Vec<_> = cases.by_ref().take(BATCH).collect();
        let sent = batch.iter().map(|(_, bytes, pieces)| send(site.address, bytes.clone(), *pieces));
        let answers = futures_util::future::join_all(sent).await;
        for ((name, ..), answer) in batch.iter().zip(&answers) {
            let answer = String::from_utf8_lossy(answer);
            assert!(!answer.contains("HTTP/1.1 500"), "{name}: {answer}");
        }
        let names: Vec<_> = batch.iter().map(|(name, ..)| name).collect();
        assert_eq!(site.get("/livez").await.status(), 200, "after {names:?}");
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "after {names:?}");
    }
}

#[tokio::test]
async fn nasty_requests_do_no_harm() {
    let site = site().await;
    let cases = nasty::requests().into_iter();
    let cases =
        cases.flat_map(|(name, bytes)| [1, 2, 7].map(|pieces| (name.to_owned(), bytes.clone(), pieces)));
    survive(&site, cases).await;
    site.end().await;
}

/// What is refused, and how, where there is a right answer.
#[tokio::test]
async fn nasty_requests_get_the_answers_they_deserve() {
    let site = site().await;
    for (request, statuses) in nasty::deserved() {
        let answer = send(site.address, request.clone(), 1).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let seen: Vec<_> =
            answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
        let request = String::from_utf8_lossy(&request[..request.len().min(200)]).into_owned();
        assert_eq!(seen, statuses, "{request:?} got {answer}");
    }
    site.end().await;
}

#[tokio::test]
async fn random_requests_do_no_harm() {
    let factor: usize = std::env::var("BATON_SOAK").map_or(1, |factor| factor.parse().expect("a number"));
    let seed = if factor > 1 { fastrand::u64(..) } else { 0xBA70 };
    println!("seed {seed}");
    let site = site().await;
    let mut random = fastrand::Rng::with_seed(seed);
    let cases = (0..300 * factor).map(|number| {
        let pieces = random.usize(1..5);
        (format!("{number} of seed {seed}"), random::request(&mut random), pieces)
    });
    survive(&site, cases).await;
    site.end().await;
}
