//! A source of prices on loopback, which says what the test tells it to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rampart_core::platform::settings::HttpPrice;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server with one answer for every request.
pub struct PriceSource {
    url: String,
    /// `None`: it never answers.
    answer: Arc<Mutex<Option<Vec<u8>>>>,
    asked: Arc<AtomicU32>,
}

impl PriceSource {
    /// A source that never answers, until it is told what to say.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ticker", listener.local_addr().unwrap());
        let (answer, asked) = (Arc::default(), Arc::default());
        let source = Self { url, answer: Arc::clone(&answer), asked: Arc::clone(&asked) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answer), Arc::clone(&asked)));
            }
        });
        source
    }

    /// The source as a configuration names it.
    pub fn settings(&self) -> HttpPrice {
        HttpPrice {
            url: self.url.clone(),
            pointer: "/last".to_owned(),
            time_pointer: "/at".to_owned(),
        }
    }

    /// Says this price from now on, observed at this time.
    pub fn say(&self, price: &str, at: DateTime<Utc>) {
        let at = at.to_rfc3339();
        self.answer_with(200, &format!(r#"{{"last":{price},"at":"{at}"}}"#));
    }

    /// Answers with this status and body from now on.
    pub fn answer_with(&self, status: u16, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} -\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.into_bytes());
    }

    /// Answers nothing any more, and keeps its callers waiting.
    pub fn hang(&self) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The number of requests so far.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Answers one request, or holds it until its caller gives up.
async fn serve(mut stream: TcpStream, answer: Arc<Mutex<Option<Vec<u8>>>>, asked: Arc<AtomicU32>) {
    let mut request = [0; 2048];
    let read = stream.read(&mut request).await.unwrap_or(0);
    asked.fetch_add(1, Ordering::Relaxed);
    let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if read > 0
        && let Some(answer) = answer
    {
        // A caller that has gone away needs no answer.
        drop(stream.write_all(&answer).await);
    } else {
        while stream.read(&mut request).await.is_ok_and(|read| read > 0) {}
    }
}
