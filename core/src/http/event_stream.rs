//! Server-sent events (WHATWG HTML, section 9.2): an answer that tells a value and each change of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest stream: the browser opens the next one by itself.
pub const STREAM_MAX: Duration = Duration::from_secs(60);
/// Pause between two comments on a stream that has nothing to tell.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time after which a browser opens the next stream, in milliseconds.
const RETRY_MS: u32 = 1_000;

/// A slot among the streams that may be open, given back when it is dropped.
pub trait StreamPermit: fmt::Debug + Send + Sync {}

/// The body of a reply that goes on: the current value first, then each one that follows.
#[derive(Clone, Debug)]
pub struct EventStream {
    /// Name of the events.
    event: &'static str,
    values: watch::Receiver<Arc<str>>,
    begun: bool,
    _permit: Arc<dyn StreamPermit>,
}

impl EventStream {
    /// Tells these values, each a line of text, as events of this name.
    pub fn new(
        event: &'static str,
        values: watch::Receiver<Arc<str>>,
        permit: Arc<dyn StreamPermit>,
    ) -> Self {
        Self { event, values, begun: false, _permit: permit }
    }

    /// The next part of the body, once there is one; `None` at its end. It loses nothing when it is
    /// dropped.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            return Some(format!("retry: {RETRY_MS}\n{}", self.current()).into());
        }
        match timeout(HEARTBEAT, self.values.changed()).await {
            Ok(Ok(())) => Some(self.current().into()),
            Ok(Err(_)) => None,
            Err(_) => Some(Bytes::from_static(b":\n\n")),
        }
    }

    fn current(&mut self) -> String {
        let value = Arc::clone(&self.values.borrow_and_update());
        format!("event: {}\ndata: {value}\n\n", self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct NoPermit;

    impl StreamPermit for NoPermit {}

    fn stream(first: &str) -> (watch::Sender<Arc<str>>, EventStream) {
        let (sender, values) = watch::channel(first.into());
        (sender, EventStream::new("state", values, Arc::new(NoPermit)))
    }

    async fn text(stream: &mut EventStream) -> Option<String> {
        stream.next().await.map(|part| String::from_utf8(part.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_tells_the_value_its_changes_and_otherwise_that_it_lives() {
        let (sender, mut stream) = stream("pending");
        let first = "retry: 1000\nevent: state\ndata: pending\n\n";
        assert_eq!(text(&mut stream).await.as_deref(), Some(first));
        assert_eq!(text(&mut stream).await.as_deref(), Some(":\n\n"));
        sender.send_replace("in progress".into());
        sender.send_replace("completed".into());
        let last = "event: state\ndata: completed\n\n";
        assert_eq!(text(&mut stream).await.as_deref(), Some(last));
        drop(sender);
        assert_eq!(text(&mut stream).await, None);
    }
}
