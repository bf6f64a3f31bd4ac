//! The tools that come with Baton, behind the seam [`baton_core::Tool`].
//!
//! In reading order:
//!
//! - [`builtin`]: the settings, and the list of all tools made from them.
//! - [`schema`]: arguments in and out of JSON. [`offload`]: work that blocks, off the async threads.
//! - [`work_dir`]: the folder that file tools cannot leave; [`read_file`], [`write_file`] and [`list_files`] use it.
//! - [`protected`]: what they leave alone even there. [`workspaces`]: the work folders of threads.
//! - [`documents`]: the text of PDF and office documents, for `read_file` and searches.
//! - [`search_docs`] over [`search`]: documents as sections, ranked.
//! - [`semantic_search`]: the same with vectors of a server for embeddings.
//! - [`web_fetch`] over [`web`]: which addresses may be reached, and web pages as readable text.
//! - [`web_search`]: a search engine. [`wiki`]: MediaWiki. Both over `service`: JSON of configured servers.
//! - [`shell`] and [`python`] over [`process`]: one program in a sandbox.
//! - [`skills`]: Agent Skills, of files and of the store; [`write_skill`], [`validate_skill`] and [`save_skill`] make them.
//! - [`agents`]: agents that people create; [`write_agent`], [`validate_agent`], [`diff_agent`] and [`save_agent`] make them.
//! - [`read_output`]: more of an output that was too long for a model, from the store.
//! - [`ask_user`]: a question that the engine puts to a person.
//!
//! A tool that fails gives a [`baton_core::ToolError`], which becomes text for the model. Every tool is bounded in time and
//! memory by constants in its file, and dropping its future ends what it started.

pub mod agents;
pub mod ask_user;
pub mod builtin;
pub mod diff_agent;
pub mod documents;
pub mod list_files;
pub mod offload;
pub mod process;
pub mod protected;
pub mod python;
pub mod read_file;
pub mod read_output;
pub mod save_agent;
pub mod save_skill;
pub mod schema;
pub mod search;
pub mod search_docs;
pub mod semantic_search;
mod service;
pub mod shell;
pub mod skills;
pub mod validate_agent;
pub mod validate_skill;
pub mod web;
pub mod web_fetch;
pub mod web_search;
pub mod wiki;
pub mod work_dir;
pub mod workspaces;
pub mod write_agent;
pub mod write_file;
pub mod write_skill;

pub use builtin::{SKILLS_DIR, ToolSettings, built_in};
pub use search_docs::DocFolders;
pub use skills::{SkillFolder, SkillLibrary, SkillProblem, SkillStrictness, validate};
