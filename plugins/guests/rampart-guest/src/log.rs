//! Lines for the operator: at most 16 and 4 KiB per call, the rest is dropped and counted.

use std::panic;

use crate::bindings::about::rampart::policy::log::{Level, write};

/// Logs a line for the policy's author.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Logs a line for information.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Logs a line that needs attention.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Installs a panic hook that logs the location before the trap; call it first. A policy that never
/// logs is cheaper: the import adds two instances to every call.
pub fn write_panics() {
    panic::set_hook(Box::new(|panic| warn(&panic.to_string())));
}
