//! Test your agents the way Baton tests itself: a model that says what the test wrote down.
//!
//! ```
//! use baton::testing::{Scripted, ScriptedTurn};
//! use serde_json::json;
//!
//! let model = Scripted::default().script(
//!     "assistant",
//!     [
//!         ScriptedTurn::call("search_docs", &json!({"query": "limits"})),
//!         ScriptedTurn::text("Six hundred a minute."),
//!     ],
//! );
//! assert_eq!(model.left(), 2);
//! ```

pub use baton_models::scripted::{RecordedRequest, Scripted, ScriptedTurn};
