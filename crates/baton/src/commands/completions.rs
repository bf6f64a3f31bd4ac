//! `baton completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
pub struct Args {
    pub shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "baton", &mut script);
    super::print(&String::from_utf8(script)?)?;
    Ok(Exit::Ok)
}
