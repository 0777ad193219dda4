//! The diagnostic log, on standard error. The access log is `access_log.rs`. A panic is in it
//! whatever its level.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread;

use chrono::SecondsFormat;
use rampart_core::platform::clock::Clock;
use rampart_core::platform::metrics::Metrics;
use serde_json::json;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use crate::log_writer::LogWriter;
use crate::startup_error::{Context as _, StartupError};

/// Libraries that log what callers do wrong as errors of ours.
const QUIET: &str = "pingora_core=off,pingora_proxy=off,rustls=off,h2=off,tokio_rustls=off";

/// The thread that writes the log.
const WRITER: &str = "diagnostic-log";
/// The standard library's messages of panics after which it aborts the process.
const ABORTING: [&str; 2] =
    ["panic in a destructor during cleanup", "panic in a function that cannot unwind"];

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
    let filter = filter(log)?;
    let diagnostic = DiagnosticLog::over(io::stderr(), log.format).context(FAILED)?;
    let sink = Arc::clone(&diagnostic.0);
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(sink);
    let started = match log.format {
        LogFormat::Json => base.json().try_init(),
        LogFormat::Text => base.with_ansi(false).try_init(),
    };
    started.context(FAILED)?;
    report_panics(Arc::clone(&diagnostic.0));
    Ok(diagnostic)
}

/// Writes panics to the log, but for those of its own writer: a thread that panics does not wait for a
/// slow reader either.
fn report_panics(sink: Arc<LineSink>) {
    let direct = panic::take_hook();
    panic::set_hook(Box::new(move |panic| match thread::current().name() {
        Some(WRITER) => direct(panic),
        thread => sink.write_panic(thread.unwrap_or("<unnamed>"), panic),
    }));
}

/// The filter of `log.level`.
///
/// # Errors
/// One sentence: it is empty, a word of it is no level, or a filter cannot be read.
pub(crate) fn filter(Log { level, .. }: &Log) -> Result<EnvFilter, StartupError> {
    let wrong = format!("log.level = '{level}' is not a level or a list of filters");
    // A blank would be part of a module's name.
    let filters: Vec<_> = level.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if filters.is_empty() {
        return Err(wrong.into());
    }
    if let Some(word) = filters.iter().find(|filter| is_unknown_word(filter)) {
        return Err(format!(
            "{wrong}: '{word}' is none of error, warn, info, debug, trace and off; a module has \
             its level behind it, as in {word}=debug"
        )
        .into());
    }
    EnvFilter::try_new(format!("{QUIET},{}", filters.join(","))).context(wrong)
}

/// True for a word that is no level: it would be taken for a module, whose lines alone are written.
fn is_unknown_word(filter: &str) -> bool {
    !filter.contains(['=', ':', '[']) && filter.parse::<LevelFilter>().is_err()
}

impl DiagnosticLog {
    fn over(sink: impl Write + Send + 'static, format: LogFormat) -> io::Result<Self> {
        Ok(Self(Arc::new(LineSink {
            format,
            writer: RwLock::new(Some(LogWriter::start(WRITER, sink)?)),
            metrics: OnceLock::new(),
            dropped: AtomicU64::new(0),
        })))
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
#[derive(Debug)]
struct LineSink {
    /// Form of the lines, for those of panics.
    format: LogFormat,
    /// There until the log is dropped.
    writer: RwLock<Option<LogWriter>>,
    metrics: OnceLock<Metrics>,
    /// Dropped lines that `metrics` do not count yet.
    dropped: AtomicU64,
}

impl LineSink {
    /// Writes a panic of this thread. A formatted message, which may quote what somebody sent, is left
    /// out: the place tells enough.
    fn write_panic(&self, thread: &str, panic: &PanicHookInfo<'_>) {
        let message = panic.payload().downcast_ref::<&'static str>();
        let mut what = format!("thread '{thread}' panicked");
        // Writing to a string cannot fail.
        if let Some(place) = panic.location() {
            let _ = write!(what, " at {place}");
        }
        if let Some(message) = message {
            let _ = write!(what, ": {message}");
        }
        let backtrace = Backtrace::capture();
        let captured = backtrace.status() == BacktraceStatus::Captured;
        let lines = panic_lines(self.format, &what, captured.then_some(&backtrace));
        if message.is_some_and(|message| ABORTING.contains(message))
            && let Ok(mut writer) = self.writer.try_write()
        {
            // Writes what waits.
            drop(writer.take());
        }
        let mut sink = self;
        let _ = sink.write_all(lines.as_bytes());
    }

    fn count_dropped(&self) {
        if let Some(metrics) = self.metrics.get() {
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            metrics.log_lines_dropped.with_label_values(&["diagnostic"]).inc_by(dropped);
        }
    }
}

/// The lines of a panic: one object, as the subscriber writes them, where lines are JSON.
fn panic_lines(format: LogFormat, what: &str, backtrace: Option<&Backtrace>) -> String {
    match (format, backtrace) {
        (LogFormat::Text, None) => format!("{what}\n"),
        (LogFormat::Text, Some(backtrace)) => format!("{what}\n{backtrace}\n"),
        (LogFormat::Json, _) => {
            let mut fields = json!({ "message": what });
            if let Some(backtrace) = backtrace {
                fields["backtrace"] = backtrace.to_string().into();
            }
            let time = Clock::system().now().to_rfc3339_opts(SecondsFormat::Micros, true);
            let line = json!({
                "timestamp": time, "level": "ERROR", "fields": fields, "target": module_path!(),
            });
            format!("{line}\n")
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
    use serde_json::Value;

    use super::*;
    use crate::log_writer::LINES_MAX;
    use crate::log_writer::stuck_sink::stuck_sink;

    #[test]
    fn a_word_that_is_no_level_is_refused_as_a_level() {
        let filter = |level: &str| filter(&Log { level: level.to_owned(), ..Log::default() });
        for level in [
            "info",
            "OFF",
            "info,rampart::server=debug",
            " warn, rampart_core=trace,",
            "info,rampart::server",
            "info,[request{method}]=debug",
        ] {
            assert!(filter(level).is_ok(), "{level}");
        }
        let spaced = filter(" warn, rampart_core=trace,").unwrap();
        assert_eq!(spaced.to_string(), filter("warn,rampart_core=trace").unwrap().to_string());
        for (level, why) in [
            ("inof", ": 'inof' is none of error, warn, info, debug, trace and off; a module has"),
            ("rampart=debug, warning", ": 'warning' is none of error, warn, info, debug,"),
            ("info,rampart", ": 'rampart' is none of error, warn, info, debug, trace and off"),
            ("info=loud", ": "),
            ("", ""),
            (" , ", ""),
        ] {
            let sentence = filter(level).unwrap_err().to_string();
            let begin = format!("log.level = '{level}' is not a level or a list of filters{why}");
            assert!(sentence.starts_with(&begin), "{sentence}");
        }
    }

    #[test]
    fn a_panic_waits_for_no_reader_and_quotes_nothing() {
        let (sink, reader) = stuck_sink();
        let log = DiagnosticLog::over(sink, LogFormat::Text).unwrap();
        let mut lines = &*log.0;
        lines.write_all(b"the first line\n").unwrap();
        reader.wait_until_stuck();
        report_panics(Arc::clone(&log.0));
        let plain = thread::spawn(|| panic!("a bound is wrong")).join();
        let sent = "correct horse".to_owned();
        let formatted = thread::spawn(move || panic!("no user has '{sent}'")).join();
        drop(panic::take_hook());
        assert!(plain.is_err() && formatted.is_err());
        let taken = reader.release();
        drop(log);
        let taken = taken.lock().unwrap();
        let text = std::str::from_utf8(&taken).unwrap();
        assert_eq!(text.matches("thread '<unnamed>' panicked at proxy/src/logging.rs:").count(), 2);
        assert!(text.contains(": a bound is wrong\n") && !text.contains("horse"), "{text}");
    }

    #[test]
    fn a_panic_is_one_object_where_lines_are_json() {
        let what = "thread 'a \"b\"' panicked at a.rs:1:2: no";
        assert_eq!(panic_lines(LogFormat::Text, what, None), format!("{what}\n"));
        let backtrace = Backtrace::force_capture();
        for backtrace in [None, Some(&backtrace)] {
            let lines = panic_lines(LogFormat::Json, what, backtrace);
            assert_eq!(lines.matches('\n').count(), 1, "{lines}");
            let line: Value = serde_json::from_str(&lines).unwrap();
            assert_eq!(line["level"], "ERROR");
            assert_eq!(line["fields"]["message"], what);
            assert_eq!(line["fields"]["backtrace"].is_string(), backtrace.is_some(), "{line}");
        }
    }

    #[test]
    fn lines_without_room_are_counted_and_all_others_are_written_before_the_end() {
        let (sink, reader) = stuck_sink();
        let log = DiagnosticLog::over(sink, LogFormat::Text).unwrap();
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
