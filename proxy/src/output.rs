//! Lines for whoever started the program.

use std::fmt::Display;
use std::io::{Write as _, stderr, stdout};

/// Prints a line. A reader that has gone away (`rampart … | head`) is no error.
pub(crate) fn line(text: impl Display) {
    _ = writeln!(stdout(), "{text}");
}

/// Prints a text that ends its own lines.
pub(crate) fn text(text: &str) {
    bytes(text.as_bytes());
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    _ = stdout().write_all(bytes);
}

/// Prints what a person should know beside the output.
pub(crate) fn note(text: &str) {
    _ = writeln!(stderr(), "{text}");
}

/// Prints the sentence with which a command fails.
pub(crate) fn problem(error: &impl Display) {
    _ = writeln!(stderr(), "rampart: {error}");
}
