//! Operation: the operators' API and console, the portal of partners' staff, the sandbox, documentation,
//! readiness.

pub mod acme;
pub mod admin;
mod asked_page;
mod console;
mod cross_site;
mod going_live;
mod idle_routes;
mod key_rotation;
mod listener;
mod money_metrics;
pub mod ocsp;
mod policy_differences;
pub mod portal;
mod queues;
pub mod readiness;
pub mod sandbox;
pub mod system;
