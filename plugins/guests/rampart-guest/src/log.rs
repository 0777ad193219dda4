//! Lines for the operator: at most 16 and 4 KiB per call, the rest is dropped and counted.

use std::panic;

use crate::bindings::about::rampart::policy::log::{Level, write};

/// For whoever works on the policy.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Worth knowing.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Worth acting on.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Makes a panic say where it happened before it traps: to be called first. A policy that never
/// writes a line is the cheaper one: the import makes two more instances of every call.
pub fn write_panics() {
    panic::set_hook(Box::new(|panic| warn(&panic.to_string())));
}
