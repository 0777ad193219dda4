//! Operation: the operators' API and console, the portal of partners' staff, the sandbox, documentation.

pub mod admin;
mod asked_page;
mod console;
mod cross_site;
pub mod going_live;
pub mod idle_routes;
pub mod key_rotation;
pub mod listener;
pub mod ocsp;
mod policy_differences;
pub mod portal;
pub mod sandbox;
pub mod system;
