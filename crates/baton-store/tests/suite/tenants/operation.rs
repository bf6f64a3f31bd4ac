//! What can happen.

use baton_core::store::OnBusy;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// Thread ids that all tenants choose from.
pub(super) const THREADS: usize = 3;

/// Something that a tenant does. Threads, runs and claims may be those of another tenant.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Accept {
        tenant: usize,
        thread: usize,
        is_bob: bool,
        on_busy: OnBusy,
    },
    Claim {
        tenant: usize,
        thread: usize,
    },
    /// With the claim that `of` has on the thread.
    Append {
        tenant: usize,
        of: usize,
        thread: usize,
        events: usize,
        messages: usize,
        ends: bool,
    },
    /// The last run that `of` has put into the thread.
    Cancel {
        tenant: usize,
        of: usize,
        thread: usize,
    },
    ReadRun {
        tenant: usize,
        of: usize,
        thread: usize,
    },
    ReadThread {
        tenant: usize,
        thread: usize,
        is_bob: bool,
    },
    List {
        tenant: usize,
    },
    Delete {
        tenant: usize,
        thread: usize,
        is_bob: bool,
    },
}

pub(super) fn operations(tenants: usize) -> impl Strategy<Value = Operation> {
    let place = (0..tenants, 0..THREADS);
    // Mostly one's own.
    let of = prop_oneof![3 => Just(None), 1 => (0..tenants).prop_map(Some)];
    let is_bob = prop_oneof![4 => Just(false), 1 => Just(true)];
    let on_busy = prop_oneof![Just(OnBusy::Enqueue), Just(OnBusy::Reject), Just(OnBusy::Interrupt)];
    let foreign =
        (place.clone(), of).prop_map(|((tenant, thread), of)| (tenant, of.unwrap_or(tenant), thread));
    prop_oneof![
        6 => (place.clone(), is_bob.clone(), on_busy).prop_map(|((tenant, thread), is_bob, on_busy)| {
            Operation::Accept { tenant, thread, is_bob, on_busy }
        }),
        4 => place.clone().prop_map(|(tenant, thread)| Operation::Claim { tenant, thread }),
        8 => (foreign.clone(), 0..3_usize, 0..3_usize, any::<bool>()).prop_map(
            |((tenant, of, thread), events, messages, ends)| {
                Operation::Append { tenant, of, thread, events, messages, ends }
            }
        ),
        2 => foreign.clone().prop_map(|(tenant, of, thread)| Operation::Cancel { tenant, of, thread }),
        3 => foreign.prop_map(|(tenant, of, thread)| Operation::ReadRun { tenant, of, thread }),
        3 => (place.clone(), is_bob.clone()).prop_map(|((tenant, thread), is_bob)| {
            Operation::ReadThread { tenant, thread, is_bob }
        }),
        1 => (0..tenants).prop_map(|tenant| Operation::List { tenant }),
        1 => (place, is_bob).prop_map(|((tenant, thread), is_bob)| Operation::Delete { tenant, thread, is_bob }),
    ]
}
