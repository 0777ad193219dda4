//! The program alone. Cargo builds a package's binary for its integration tests, so that `make test`
//! compiles it in parallel with all other tests.

use std::process::Command;

#[test]
fn the_program_says_its_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_rampart")).arg("--version").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.trim_end(), concat!("rampart ", env!("CARGO_PKG_VERSION")));
}
