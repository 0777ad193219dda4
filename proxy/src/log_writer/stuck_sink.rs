//! A sink whose reader takes nothing until it is released.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

/// The sink: each write waits until its reader is released.
pub(crate) struct StuckSink {
    stuck: SyncSender<()>,
    released: Receiver<()>,
    taken: Arc<Mutex<Vec<u8>>>,
}

/// The reader of a [`StuckSink`].
pub(crate) struct StuckReader {
    stuck: Receiver<()>,
    release: SyncSender<()>,
    taken: Arc<Mutex<Vec<u8>>>,
}

/// A sink with its reader.
pub(crate) fn stuck_sink() -> (StuckSink, StuckReader) {
    let (is_stuck, stuck) = sync_channel(1);
    let (release, released) = sync_channel(0);
    let taken = Arc::<Mutex<Vec<u8>>>::default();
    let sink = StuckSink { stuck: is_stuck, released, taken: Arc::clone(&taken) };
    (sink, StuckReader { stuck, release, taken })
}

impl Write for StuckSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Both are closed once the reader is released.
        let _ = self.stuck.try_send(());
        let _ = self.released.recv();
        self.taken.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StuckReader {
    /// Returns when a write waits.
    pub(crate) fn wait_until_stuck(&self) {
        self.stuck.recv().unwrap();
    }

    /// Takes everything from now on; gives what was taken.
    pub(crate) fn release(self) -> Arc<Mutex<Vec<u8>>> {
        drop(self.release);
        self.taken
    }
}
