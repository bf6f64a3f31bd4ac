//! The `baton` command.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    baton::cli::Cli::parse().run().into()
}
