//! The files that were in `ui/dist` at build time. `build.rs` writes the table.

use super::UiFile;

pub static FILES: &[UiFile] = include!(concat!(env!("OUT_DIR"), "/ui_files.rs"));
