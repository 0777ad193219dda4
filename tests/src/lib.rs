//! The test harness: a context for each test, partners in it, and answers as bytes.
//!
//! [`test_context::TestContext`] is the core over a database of this test's own, with a clock to move. A
//! [`partner::Partner`] is a client of it. An [`answer::Answer`] checks what every answer must be,
//! whatever the test is about. Nothing here gives a test the server's own response types.
//!
//! An [`edge::Edge`] is the real binary in a process of its own, to be spoken to over TLS with a
//! [`caller::Caller`] or byte by byte over a [`wire::Wire`]. A [`browser::Browser`] opens its pages.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a harness that cannot do its part must fail the test"
)]

pub mod account;
pub mod acme_server;
pub mod answer;
pub mod anvil;
pub mod bank;
pub mod browser;
pub mod buyer;
pub mod caller;
pub mod campaign;
pub mod certificate;
pub mod chain_shop;
pub mod cluster;
pub mod connector;
pub mod deadline;
pub mod document;
pub mod dump;
pub mod edge;
pub mod going_live;
pub mod guests;
pub mod journal;
pub mod keys;
pub mod link;
pub mod load;
pub mod localstripe;
pub mod mail_server;
pub mod neighbour;
pub mod ocsp_responder;
pub mod oidc_provider;
pub mod order_fixture;
pub mod outbox;
pub mod partner;
pub mod passkey;
pub mod pgbouncer;
pub mod port;
pub mod postgres_server;
pub mod price_source;
pub mod prices;
pub mod process;
pub mod receiver;
pub mod remote_connector;
pub mod repository;
pub mod rounds;
pub mod s3_server;
pub mod screens;
pub mod staff;
pub mod test_context;
pub mod totp;
pub mod user;
pub mod valkey;
pub mod wallet;
pub mod wire;
