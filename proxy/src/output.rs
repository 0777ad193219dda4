//! Lines for whoever started the program.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

use crate::startup_error::StartupError;

/// Prints what a command was asked for, which ends its own lines. A reader that has gone away
/// (`rampart … | head`) is no error.
///
/// # Errors
/// When it cannot be written, as on a full disk: a token that is shown once would be lost, and nobody
/// told.
pub(crate) fn answer(text: impl AsRef<[u8]>) -> Result<(), StartupError> {
    write(&mut stdout().lock(), text.as_ref())
}

fn write(out: &mut impl Write, bytes: &[u8]) -> Result<(), StartupError> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output cannot be written: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Prints a line of what is done or found meanwhile, which is lost where it cannot be written.
pub(crate) fn line(text: impl Display) {
    _ = writeln!(stdout(), "{text}");
}

/// Prints what a person should know beside the output.
pub(crate) fn note(text: impl Display) {
    _ = writeln!(stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// An output that takes nothing.
    struct Closed(ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_is_lost_to_a_full_disk_and_not_to_a_reader_that_is_gone() {
        let write_to = |kind| write(&mut Closed(kind), b"token\n");
        assert!(write_to(ErrorKind::BrokenPipe).is_ok());
        let failed = write_to(ErrorKind::StorageFull).unwrap_err().to_string();
        assert!(failed.starts_with("standard output cannot be written: "), "{failed}");
    }
}
