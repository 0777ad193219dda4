//! The diagnostic log, on standard error. The access log is `access_log.rs`. A panic is not part of
//! it: the standard library prints its message at once.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rampart_core::platform::metrics::Metrics;
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use crate::log_writer::LogWriter;
use crate::startup_error::{Context as _, StartupError};

/// Libraries that log what callers do wrong as errors of ours.
const QUIET: &str = "pingora_core=off,pingora_proxy=off,rustls=off,h2=off,tokio_rustls=off";

/// The diagnostic log of an edge. Dropping it writes the lines that wait; later ones are written at
/// once.
#[derive(Debug)]
pub(crate) struct DiagnosticLog(Arc<LineSink>);

/// Starts the log of this process.
///
/// # Errors
/// When `log.level` is not a filter, there is a log already, or the operating system gives no thread.
pub(crate) fn start(log: &Log) -> Result<DiagnosticLog, StartupError> {
    const FAILED: &str = "the log cannot be started";
    let Log { level, .. } = log;
    let filter = EnvFilter::try_new(format!("{QUIET},{level}"))
        .context(format_args!("log.level = '{level}' is not a level or a list of filters"))?;
    let diagnostic = DiagnosticLog::over(io::stderr()).context(FAILED)?;
    let sink = Arc::clone(&diagnostic.0);
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(sink);
    let started = match log.format {
        LogFormat::Json => base.json().try_init(),
        LogFormat::Text => base.with_ansi(false).try_init(),
    };
    started.context(FAILED)?;
    Ok(diagnostic)
}

impl DiagnosticLog {
    fn over(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let writer = RwLock::new(Some(LogWriter::start("diagnostic-log", sink)?));
        Ok(Self(Arc::new(LineSink { writer, ..LineSink::default() })))
    }

    /// Counts dropped lines in the metrics of the core that has started, those so far among them.
    pub(crate) fn count_in(&self, metrics: &Metrics) {
        // A process has one core.
        let _ = self.0.metrics.set(metrics.clone());
        self.0.count_dropped();
    }
}

impl Drop for DiagnosticLog {
    fn drop(&mut self) {
        let writer = self.0.writer.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(writer);
    }
}

/// The lines of the log, as the subscriber writes them: each at once.
#[derive(Debug, Default)]
struct LineSink {
    /// There until the log is dropped.
    writer: RwLock<Option<LogWriter>>,
    metrics: OnceLock<Metrics>,
    /// Dropped lines that `metrics` do not count yet.
    dropped: AtomicU64,
}

impl LineSink {
    fn count_dropped(&self) {
        if let Some(metrics) = self.metrics.get() {
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            metrics.log_lines_dropped.with_label_values(&["diagnostic"]).inc_by(dropped);
        }
    }
}

impl Write for &LineSink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &*self.writer.read().unwrap_or_else(PoisonError::into_inner) {
            Some(writer) if writer.queue(line.to_vec()) => {}
            Some(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.count_dropped();
            }
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_writer::LINES_MAX;
    use crate::log_writer::stuck_sink::stuck_sink;

    #[test]
    fn lines_without_room_are_counted_and_all_others_are_written_before_the_end() {
        let (sink, reader) = stuck_sink();
        let log = DiagnosticLog::over(sink).unwrap();
        let base = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::clone(&log.0));
        let metrics = Metrics::new(1).unwrap();
        let dropped = metrics.log_lines_dropped.with_label_values(&["diagnostic"]);
        tracing::subscriber::with_default(base.finish(), || {
            tracing::error!("the first line");
            reader.wait_until_stuck();
            for _ in 0..LINES_MAX + 2 {
                tracing::error!("Postgres is away");
            }
            log.count_in(&metrics);
            assert_eq!(dropped.get(), 2, "lines from before the core has started count");
            tracing::error!("Postgres is away");
            assert_eq!(dropped.get(), 3);
        });
        let taken = reader.release();
        drop(log);
        let taken = taken.lock().unwrap();
        let text = std::str::from_utf8(&taken).unwrap();
        assert_eq!(text.lines().count(), LINES_MAX + 1);
        assert!(text.lines().next().unwrap().ends_with("the first line"));
    }
}
