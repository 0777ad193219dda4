//! What the operating system tells the process.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM: finish, then end.
    Terminate,
    /// SIGINT: end.
    Interrupt,
    /// SIGQUIT: hand over to a new process, then finish and end.
    Upgrade,
    /// SIGHUP: read the certificates again.
    Reload,
}

/// The signals that are caught, from when this was made.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    quit: unix::Signal,
    hang_up: unix::Signal,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// When the operating system does not let us.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            quit: unix::signal(SignalKind::quit())?,
            hang_up: unix::signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.quit.recv() => Signal::Upgrade,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }

    /// The next one that asks for an end.
    pub(crate) async fn end(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
