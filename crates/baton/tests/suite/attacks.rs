//! Attacks on the built server. None may succeed, and none may keep others from being served.

mod flood;
mod proxy;
mod target;
