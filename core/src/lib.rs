//! Rampart's business: what partners ask for, decided and stored.

pub mod private_postgres;
