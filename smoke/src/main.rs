//! The `baton-smoke` command.

use std::process::ExitCode;

use baton_smoke::{Options, table};
use clap::Parser as _;

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(baton_smoke::run(&options)) {
        Ok(reports) => {
            println!("{}", table::render(&reports));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
