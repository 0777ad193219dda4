//! A thread that writes the lines of a log, so that a slow reader of the log slows nothing else.
//! When the reader falls behind by more than [`LINES_MAX`] lines, lines are dropped.

#[cfg(test)]
pub(crate) mod stuck_sink;

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most lines that wait to be written.
pub(crate) const LINES_MAX: usize = 16 * 1024;
/// Most bytes gathered for one write.
const WRITE_BYTES_MAX: usize = 64 * 1024;
/// Longest wait for the reader when the log ends.
const END_MAX: Duration = Duration::from_secs(5);

/// The queue of lines. Dropping it waits until they are written, for 5 seconds at most.
#[derive(Debug)]
pub(crate) struct LogWriter {
    /// There until it is dropped.
    queue: Option<SyncSender<Vec<u8>>>,
    /// Closed by the thread when it ends.
    ended: Mutex<Receiver<Infallible>>,
}

impl LogWriter {
    /// Starts the thread, of this name, that writes to `sink`.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn start(name: &str, sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, lines) = sync_channel(LINES_MAX);
        let (running, ended) = sync_channel(0);
        std::thread::Builder::new().name(name.into()).spawn(move || {
            write_all(&lines, sink);
            drop(running);
        })?;
        Ok(Self { queue: Some(queue), ended: Mutex::new(ended) })
    }

    /// Queues a line with its line feed. Never waits: false if there is no room for it.
    pub(crate) fn queue(&self, line: Vec<u8>) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.try_send(line).is_ok())
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue = None;
        // A reader that takes nothing must not keep the process from its end.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(END_MAX);
    }
}

fn write_all(lines: &Receiver<Vec<u8>>, mut sink: impl Write) {
    while let Ok(mut batch) = lines.recv() {
        while batch.len() < WRITE_BYTES_MAX {
            match lines.try_recv() {
                Ok(line) => batch.extend_from_slice(&line),
                Err(_) => break,
            }
        }
        // A closed sink takes the log with it, not the service.
        let _ = sink.write_all(&batch).and_then(|()| sink.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::stuck_sink::stuck_sink;
    use super::*;

    #[test]
    fn nobody_waits_for_a_stuck_reader_and_every_queued_line_is_written_in_the_end() {
        let (sink, reader) = stuck_sink();
        let writer = LogWriter::start("log", sink).unwrap();
        assert!(writer.queue(b"first\n".to_vec()));
        reader.wait_until_stuck();
        for number in 0..LINES_MAX {
            assert!(writer.queue(format!("{number}\n").into_bytes()), "{number} has room");
        }
        assert!(!writer.queue(b"beyond\n".to_vec()));
        let taken = reader.release();
        drop(writer);
        let taken = taken.lock().unwrap();
        let lines: Vec<_> = std::str::from_utf8(&taken).unwrap().lines().collect();
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines[..2], ["first", "0"]);
        assert_eq!(lines[LINES_MAX], (LINES_MAX - 1).to_string());
    }
}
