//! `baton openapi`: the description of the HTTP API.

use crate::exit::Exit;

pub fn run() -> anyhow::Result<Exit> {
    super::print(baton_server::openapi::json())?;
    Ok(Exit::Ok)
}
