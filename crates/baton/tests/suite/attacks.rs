//! Attacks on the built server, one module per target. None succeeds.

mod tenants;
