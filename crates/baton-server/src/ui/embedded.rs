//! The files that were in `ui/dist` at build time. `build.rs` writes the table.

use super::File;

pub static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/ui_files.rs"));
