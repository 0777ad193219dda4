//! The binary as its partners and operators meet it: processes, TLS, Postgres, bytes.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod buyer;
mod framing;
mod purchase;
