//! Attacks on the built server, one module per target. None may succeed, and none may keep others from being served.

mod audit;
mod identity;
mod installation;
mod tenants;
