//! Which connections are served: limits in total and per address, and a reserve for health checks.
//!
//! A connection beyond a limit is not left waiting, because a load balancer must still reach `/livez` and `/readyz`: it is
//! accepted into the reserve, where only those routes are answered and every other request is refused. The reserve has
//! [`RESERVE`] places for a short time each. If all are taken, the oldest is closed, so that silent connections cannot keep a
//! health check out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::client_address::{AddressKey, ClientAddress, TrustedProxies};
use crate::problem::{Code, Problem};
use crate::settings::RequestLimits;

/// Connections beyond the limits that may be open at once.
pub const RESERVE: usize = 64;
/// How long one of them may be open.
pub const RESERVE_TIME: Duration = Duration::from_secs(5);
/// `Retry-After` of a refused connection.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Admission {
    max_connections: usize,
    max_per_address: usize,
    trusted_proxies: TrustedProxies,
    open: Arc<Mutex<OpenConnections>>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    by_address: HashMap<AddressKey, usize>,
    /// The last connections in the reserve, oldest first. Those that have ended stay until they are pushed out.
    reserve: VecDeque<CancellationToken>,
}

/// What a new connection may do.
#[derive(Debug)]
pub enum Admitted {
    Fully(ConnectionPermit),
    /// Health checks only, until the token is cancelled.
    ToReserve(ConnectionRefusal, CancellationToken),
}

/// The limit that a connection in the reserve exceeds: an extension of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionRefusal {
    Total,
    Address,
}

/// RAII guard: counts an open connection.
#[derive(Debug)]
pub struct ConnectionPermit {
    address: Option<AddressKey>,
    open: Arc<Mutex<OpenConnections>>,
}

impl Admission {
    pub fn new(limits: &RequestLimits, trusted_proxies: TrustedProxies) -> Self {
        Self {
            max_connections: limits.max_connections,
            max_per_address: limits.max_connections_per_address,
            trusted_proxies,
            open: Arc::default(),
        }
    }

    /// Counts a connection from `peer`. A trusted proxy has no limit of its own: its connections are those of many clients.
    pub fn admit(&self, peer: IpAddr) -> Admitted {
        let is_proxy = self.trusted_proxies.contain(peer);
        let address = (!is_proxy).then(|| AddressKey::from(ClientAddress(peer)));
        let mut open = lock(&self.open);
        let of_address = address.and_then(|address| open.by_address.get(&address)).copied().unwrap_or(0);
        if of_address >= self.max_per_address {
            return open.reserve(ConnectionRefusal::Address);
        }
        if open.total >= self.max_connections {
            return open.reserve(ConnectionRefusal::Total);
        }
        open.total += 1;
        if let Some(address) = address {
            open.by_address.insert(address, of_address + 1);
        }
        Admitted::Fully(ConnectionPermit { address, open: Arc::clone(&self.open) })
    }
}

impl OpenConnections {
    fn reserve(&mut self, refusal: ConnectionRefusal) -> Admitted {
        if self.reserve.len() == RESERVE
            && let Some(oldest) = self.reserve.pop_front()
        {
            oldest.cancel();
        }
        let token = CancellationToken::new();
        self.reserve.push_back(token.clone());
        Admitted::ToReserve(refusal, token)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.total -= 1;
        let Some(address) = self.address else { return };
        if let Some(count) = open.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

impl From<ConnectionRefusal> for Problem {
    fn from(refusal: ConnectionRefusal) -> Self {
        let problem = match refusal {
            ConnectionRefusal::Total => {
                let detail = "the server has as many connections as it accepts; try again later";
                Self::new(Code::Overloaded, detail)
            }
            ConnectionRefusal::Address => {
                let detail =
                    "too many connections from your address: use fewer, or close those that are idle";
                Self::new(Code::TooManyConnections, detail)
            }
        };
        problem.retry_after(PAUSE)
    }
}

fn lock(open: &Mutex<OpenConnections>) -> std::sync::MutexGuard<'_, OpenConnections> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(total: usize, per_address: usize) -> Admission {
        let limits = RequestLimits {
            max_connections: total,
            max_connections_per_address: per_address,
            ..RequestLimits::default()
        };
        Admission::new(&limits, TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]))
    }

    fn permit(admitted: Admitted) -> ConnectionPermit {
        match admitted {
            Admitted::Fully(permit) => permit,
            Admitted::ToReserve(refusal, _) => panic!("{refusal:?}"),
        }
    }

    fn refusal(admitted: Admitted) -> (ConnectionRefusal, CancellationToken) {
        match admitted {
            Admitted::ToReserve(refusal, token) => (refusal, token),
            Admitted::Fully(_) => panic!("admitted"),
        }
    }

    #[test]
    fn limits_count_open_connections_in_total_and_per_address() {
        let admission = admission(5, 2);
        let [one, other, proxy] = ["192.0.2.1", "192.0.2.2", "10.0.0.1"].map(|text| text.parse().unwrap());
        let mut open = vec![permit(admission.admit(one)), permit(admission.admit(one))];
        assert_eq!(refusal(admission.admit(one)).0, ConnectionRefusal::Address);
        open.push(permit(admission.admit(other)));
        open.extend([permit(admission.admit(proxy)), permit(admission.admit(proxy))]);
        assert_eq!(
            refusal(admission.admit(proxy)).0,
            ConnectionRefusal::Total,
            "a proxy has only that limit"
        );
        drop(open.remove(0));
        open.push(permit(admission.admit(one)));
        drop(open);
        let state = lock(&admission.open);
        assert!(state.total == 0 && state.by_address.is_empty(), "{state:?}");
    }

    #[test]
    fn newest_connections_stay_in_the_reserve() {
        let admission = admission(0, 1);
        let all: Vec<_> = (0..=RESERVE).map(|_| refusal(admission.admit([192, 0, 2, 1].into())).1).collect();
        assert!(all[0].is_cancelled() && all[1..].iter().all(|token| !token.is_cancelled()));
        assert_eq!(lock(&admission.open).reserve.len(), RESERVE);
    }
}
