//! The `baton` command.

use std::process::ExitCode;

use clap::Parser as _;

/// A run allocates on several threads; the system's allocator returns memory to the kernel and takes it back all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A command or MCP server in a sandbox is started by another process of this binary.
    baton_sandbox::launch_if_requested();
    // So is the reading of a PDF or office document.
    baton_tools::documents::extract_if_requested();
    baton::cli::Cli::parse().run().into()
}
