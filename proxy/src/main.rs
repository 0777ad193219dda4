//! The program `rampart`: `lib.rs` is all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    rampart::main()
}
