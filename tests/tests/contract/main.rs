//! The contract of every endpoint, seen as bytes over real Postgres: a file per domain, and the
//! loops over the whole table.

mod admin;
mod policies;
mod quotes;
mod table;
