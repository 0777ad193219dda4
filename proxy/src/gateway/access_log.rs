//! One line per request on standard output. Never in it: the query, a body, a header, the path as
//! it was asked for, anything that a secret or personal data could stand in.
//!
//! A slow reader of the log slows no request (`log_writer.rs`): lines are dropped and counted.

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use rampart_core::platform::metrics::Metrics;
use serde::Serialize;

use crate::config::LogFormat;
use crate::log_writer::LogWriter;

/// One request.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    /// The end of the answer, RFC 3339, UTC.
    pub(super) time: String,
    /// Also in the answer's `X-Request-Id`, and in the log line of a failure.
    pub(super) request_id: &'a str,
    /// Id of its trace, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace_id: Option<String>,
    /// Method as sent.
    pub(super) method: &'a str,
    /// Path of the route as declared.
    pub(super) route: &'a str,
    /// Status of the answer; 0 when the client did not wait for it.
    pub(super) status: u16,
    /// Codes of the error envelope.
    pub(super) codes: Vec<&'static str>,
    /// Microseconds from the head to the end of the answer.
    pub(super) duration_us: u64,
    /// Bytes of the request's body.
    pub(super) bytes_in: usize,
    /// Bytes of the answer's body.
    pub(super) bytes_out: usize,
    /// Slug of the client, empty as long as nobody has proven to be one.
    pub(super) client: &'a str,
    /// The client, as far as it is known.
    pub(super) peer: Option<IpAddr>,
    /// `HTTP/1.1`, `HTTP/2.0` ...
    pub(super) protocol: String,
    /// `TLSv1_3` ..., empty without TLS.
    pub(super) tls: &'a str,
}

impl Line<'_> {
    fn write(&self, format: LogFormat) -> Option<Vec<u8>> {
        let mut bytes = match format {
            LogFormat::Json => serde_json::to_vec(self).ok()?,
            LogFormat::Text => self.text().into_bytes(),
        };
        bytes.push(b'\n');
        Some(bytes)
    }

    fn text(&self) -> String {
        let Self { time, request_id, route, status, .. } = self;
        let dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        let (method, client, tls) = (dash(self.method), dash(self.client), dash(self.tls));
        let codes = self.codes.join(",");
        let trace = self.trace_id.as_ref().map_or_else(String::new, |id| format!(" trace={id}"));
        let peer = self.peer.map_or_else(|| "-".to_owned(), |peer| peer.to_string());
        format!(
            "{time} {request_id} {method} {route} {status} codes={} client={client} us={} in={} \
             out={} peer={peer} {} {tls}{trace}",
            dash(&codes),
            self.duration_us,
            self.bytes_in,
            self.bytes_out,
            self.protocol,
        )
    }
}

/// The lines that wait to be written. Dropping it writes them.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: LogFormat,
    writer: LogWriter,
    dropped: AtomicU64,
}

impl AccessLog {
    /// Starts the thread that writes to `sink`.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn start(sink: impl Write + Send + 'static, format: LogFormat) -> io::Result<Self> {
        let writer = LogWriter::start("access-log", sink)?;
        Ok(Self { format, writer, dropped: AtomicU64::new(0) })
    }

    /// Queues a line. Never waits: a line without room is dropped, and counted in `metrics`.
    pub(super) fn write(&self, line: &Line<'_>, metrics: &Metrics) {
        let Some(bytes) = line.write(self.format) else { return };
        if !self.writer.queue(bytes) {
            metrics.log_lines_dropped.with_label_values(&["access"]).inc();
            // The first of each thousand is worth a word; the count says the rest.
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed);
            if dropped.is_multiple_of(1_000) {
                tracing::warn!(dropped = dropped + 1, "the access log cannot keep up");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_writer::LINES_MAX;
    use crate::log_writer::stuck_sink::stuck_sink;

    fn line() -> Line<'static> {
        Line {
            time: "2026-01-02T03:04:05.000006Z".into(),
            request_id: "abc",
            trace_id: None,
            method: "POST",
            route: "/api/v1/buy/quote",
            status: 400,
            codes: vec!["ER047", "ER060"],
            duration_us: 1234,
            bytes_in: 10,
            bytes_out: 20,
            client: "acme",
            peer: Some([127, 0, 0, 1].into()),
            protocol: "HTTP/2.0".into(),
            tls: "TLSv1_3",
        }
    }

    #[test]
    fn a_line_without_room_is_dropped_and_counted_and_nobody_waits() {
        let (sink, reader) = stuck_sink();
        let log = AccessLog::start(sink, LogFormat::Json).unwrap();
        let metrics = Metrics::new(1).unwrap();
        let dropped = metrics.log_lines_dropped.with_label_values(&["access"]);
        log.write(&line(), &metrics);
        reader.wait_until_stuck();
        for _ in 0..LINES_MAX {
            log.write(&line(), &metrics);
        }
        assert_eq!(dropped.get(), 0);
        for counted in [1, 2] {
            log.write(&line(), &metrics);
            assert_eq!(dropped.get(), counted);
        }
        let taken = reader.release();
        drop(log);
        let lines = taken.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, LINES_MAX + 1, "every other line is written");
    }

    #[test]
    fn a_json_line_is_one_object() {
        let bytes = line().write(LogFormat::Json).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["codes"], serde_json::json!(["ER047", "ER060"]));
        assert_eq!(value["peer"], "127.0.0.1");
    }

    #[test]
    fn a_text_line_names_everything_in_order() {
        let anonymous = Line { method: "", client: "", tls: "", codes: Vec::new(), ..line() };
        assert_eq!(
            anonymous.text(),
            "2026-01-02T03:04:05.000006Z abc - /api/v1/buy/quote 400 codes=- client=- us=1234 \
             in=10 out=20 peer=127.0.0.1 HTTP/2.0 -"
        );
    }
}
