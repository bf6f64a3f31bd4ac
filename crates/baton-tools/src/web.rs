//! Web pages from addresses that may be reached.
//!
//! [`address`] says which addresses are public; [`reach`] makes a client that connects to nothing else; [`fetch`] follows
//! redirects and reads within limits; [`content`] turns bytes into text, with [`html`] for pages.

pub mod address;
pub mod content;
pub mod fetch;
pub mod html;
pub mod reach;

pub use reach::{LazyClient, Reach};
