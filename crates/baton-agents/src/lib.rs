//! Agent files become a [`Roster`]: all agents of a folder, read and validated together.
//!
//! The walk of a file, in reading order:
//!
//! 1. [`files`] finds the Markdown files and reads them, within limits.
//! 2. [`format`] tells files of other programs. [`frontmatter`] splits head from body; [`yaml`] reads the head into nodes that know where they stand
//!    ([`source`]), with [`repair`] for the one mistake everybody makes, and [`secrets`] masks what reports must not
//!    quote.
//! 3. [`names`] collects what every agent is called, so that
//! 4. [`decode`] can turn heads into [`baton_core::Agent`]s with every reference resolved, and edges between them.
//! 5. [`check`] looks at all agents together: cycles, clashes, who may be used by whom.
//! 6. [`roster`] ties it up. [`extend`] adds agents that are not in files. [`terminal`] says who owns an answer, [`graph`] draws it, [`watch`] keeps it fresh.
//!
//! Nothing stops at the first mistake: every step adds [`Diagnostic`]s and goes on with what it could read.
//!
//! ```
//! use baton_agents::{KnownNames, RosterDraft, SourceFile};
//!
//! let files = [
//!     SourceFile::new("assistant.md", "---\ndescription: Answers.\nagents: [reserch]\n---\nAnswer.\n"),
//!     SourceFile::new("research.md", "---\ndescription: Finds out.\n---\nFind out.\n"),
//! ];
//! let rejected = RosterDraft::parse(&files, &KnownNames::default(), Vec::new()).finish().unwrap_err();
//! assert_eq!(
//!     rejected.problems[0].to_string(),
//!     "assistant.md:3:10: error[unknown-agent]: no agent is called `reserch` (did you mean `research`?)"
//! );
//! ```

pub mod check;
pub mod decode;
pub mod extend;
pub mod files;
pub mod format;
pub mod frontmatter;
pub mod graph;
pub mod keys;
pub mod known;
pub mod names;
pub mod problem;
pub mod repair;
pub mod roster;
mod schema_fit;
pub mod secrets;
pub mod source;
pub mod terminal;
pub mod watch;
pub mod yaml;

pub use extend::{Extended, LeftOut};
pub use format::FileFormat;
pub use graph::{Edge, EdgeKind, Graph};
pub use known::{KnownNames, OnError, Prices};
pub use problem::{Diagnostic, Rule, Severity};
pub use roster::{Rejected, Roster, RosterDraft, Strictness};
pub use source::{Location, SourceFile, Span};
pub use watch::{Reload, Watch};
