//! Baton without a language model: no key, no network, the same answer for the same request.
//!
//! - [`Offline`]: the model. It answers by rules: it picks tools, routes, fills JSON forms and quotes what it found.
//! - [`Guide`]: leads a person through the workflow of an agent. It is what [`Offline`] gives the engine as its
//!   [`WorkflowGuide`](baton_core::WorkflowGuide).
//!
//! ```
//! use baton_core::Model as _;
//! use baton_offline::Offline;
//!
//! assert_eq!(Offline.provider(), "offline");
//! assert!(Offline.workflow_guide().is_some());
//! ```

mod guide;
mod model;

pub use guide::Guide;
pub use model::Offline;
