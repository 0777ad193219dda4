//! Rampart: a multi-tenant edge.
//!
//! Read `gateway.rs` first: the life of a request. `connection.rs` is the life of a connection,
//! `serve.rs` that of the process, `config.rs` what can be set. Everything a request meets before
//! and after the core is here; the API itself is in `rampart-core`.

mod access_log;
mod admin;
mod cli;
mod commands;
mod config;
mod connection;
mod context;
mod demo;
mod edge;
mod exchange;
mod framing;
mod gateway;
mod guard;
mod lifecycle;
mod listener;
mod local;
mod logging;
mod normal_form;
mod operator;
mod ops;
mod serve;
mod signals;
mod sockets;
mod stream;
mod tls;
mod upgrade;
mod whole;
mod wire;

use std::process::ExitCode;

use clap::Parser as _;

/// Half the time per request of the system's allocator on this path.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Fails only when there is one already, which is then as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let command = cli::Cli::parse().command;
    let status_of_fault = command.status_of_fault();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("rampart: {fault}");
            ExitCode::from(status_of_fault)
        }
    }
}
