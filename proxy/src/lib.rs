//! Rampart: a multi-tenant edge.
//!
//! Read `gateway.rs` first: the life of a request. `server.rs` is that of the process and of its
//! connections, `config.rs` what can be set. Everything a request meets before and after the core
//! is here; the API itself is in `rampart-core`.
//!
//! `main.rs` is the program. A library beside it, because cargo compiles a library while the code of the
//! core is still generated, and a program only once it is.

mod admin_client;
mod cli;
mod commands;
mod config;
mod demo;
mod gateway;
mod log_writer;
mod logging;
mod mock;
mod output;
mod partner_client;
mod server;
mod startup_error;

use std::process::ExitCode;

use clap::Parser as _;

use self::commands::Run as _;

/// Half the time per request of the system's allocator on this path.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Carries out the command that the process was started with. Its status is that of the process.
pub fn main() -> ExitCode {
    // Fails only when there is one already, which is then as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    commands::shell::answer();
    match cli::Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("rampart: {error}"));
            ExitCode::from(error.status())
        }
    }
}
