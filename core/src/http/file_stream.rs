//! Files that are made while they are sent: nothing holds the whole of one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{BoxStream, Stream};
use tokio::sync::Mutex;

/// Longest time that a file is sent for.
pub const FILE_STREAM_MAX: Duration = Duration::from_mins(15);

/// Sign that the rest of a file could not be made: the transfer must not look complete.
#[derive(Clone, Copy, Debug)]
pub struct Broken;

/// The body of a reply, part after part. A part is made when the one before it has been taken.
#[derive(Clone)]
pub struct FileStream(Arc<Mutex<BoxStream<'static, Result<Bytes, Broken>>>>);

impl FileStream {
    /// A file of these parts.
    pub fn new(parts: impl Stream<Item = Result<Bytes, Broken>> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(parts.boxed())))
    }

    /// The next part, once it is made; `None` at the end. It loses nothing when it is dropped.
    pub async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        self.0.lock().await.next().await
    }
}

rampart_types::opaque_debug!(FileStream);
