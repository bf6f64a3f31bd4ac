//! Test your agents the way Baton tests itself: a model that says what the test wrote down.
//!
//! ```
//! use baton::testing::{Scripted, Turn};
//! use serde_json::json;
//!
//! let model = Scripted::default().script(
//!     "assistant",
//!     [Turn::call("search_docs", &json!({"query": "limits"})), Turn::text("Six hundred a minute.")],
//! );
//! assert_eq!(model.left(), 2);
//! ```

pub use baton_models::scripted::{Asked, Scripted, Turn};
