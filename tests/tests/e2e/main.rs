//! The binary as its partners and operators meet it: processes, TLS, Postgres, bytes.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod framing;
