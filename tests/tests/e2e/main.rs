//! The binary as its partners and operators meet it: processes, TLS, Postgres, bytes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot do must fail it"
)]

mod acme;
mod bank;
mod browser;
mod cards;
mod client_address;
mod clients;
mod codes;
mod commands;
mod conformance;
mod connectors;
mod console;
mod docs;
mod doctor;
mod documents;
mod evm;
mod failover;
mod faults;
mod framing;
mod guide;
mod keyboard;
mod kill;
mod lifecycle;
mod limits;
mod live;
mod metrics;
mod migrations;
mod ocsp;
mod oidc;
mod operators;
mod outage;
mod pay_events;
mod pgbouncer;
mod policies;
mod portal;
mod privacy;
mod private_listeners;
mod purchase;
mod race;
mod readme;
mod replicas;
mod scenarios;
mod screens;
mod shared_rates;
mod slow_line;
mod slow_readers;
mod tls;
mod traces;
mod uploads;
mod upstream;

use rampart_tests::buyer;
