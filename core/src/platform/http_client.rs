//! The HTTP client of calls to other servers than partners' and the price sources', which have
//! clients of their own.

use reqwest::{Client, ClientBuilder, redirect};

/// Begins a client that follows no redirect and uses no proxy.
pub fn builder() -> ClientBuilder {
    // The HTTP client uses the process's TLS provider; a second installation changes nothing.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .user_agent(concat!("Rampart/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
}
