//! `baton backup`: a copy of a SQLite store, also while a server uses it.

use std::path::PathBuf;

use anyhow::Context as _;

use super::print;
use crate::cli::Common;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to write, which must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let copied = runtime.block_on(baton_store::backup(&project.config.store.url, &project.root, &args.file));
    let bytes = copied.context("cannot back up the store")?;
    print(&format!("wrote {} ({bytes} bytes)\n", args.file.display()))?;
    Ok(Exit::Ok)
}
