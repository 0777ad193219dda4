//! A source of prices on loopback, which says what the test tells it to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{DateTime, Utc};
use rampart_core::platform::settings::HttpPrice;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A server with one answer for every request.
pub struct PriceSource {
    url: String,
    /// `None`: it has not answered yet.
    answer: watch::Sender<Option<Vec<u8>>>,
    asked: Arc<AtomicU32>,
}

impl PriceSource {
    /// A source that keeps its callers waiting, until it is told what to say.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ticker", listener.local_addr().unwrap());
        let (answer, answers) = watch::channel(None);
        let asked = Arc::default();
        let source = Self { url, answer, asked: Arc::clone(&asked) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answers.clone(), Arc::clone(&asked)));
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
        self.answer.send_replace(Some(answer.into_bytes()));
    }

    /// The number of requests so far.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Answers one request, once there is an answer.
async fn serve(
    mut stream: TcpStream,
    mut answers: watch::Receiver<Option<Vec<u8>>>,
    asked: Arc<AtomicU32>,
) {
    let mut request = [0; 2048];
    let read = stream.read(&mut request).await.unwrap_or(0);
    asked.fetch_add(1, Ordering::Relaxed);
    if read == 0 {
        return;
    }
    let answer = answers.wait_for(Option::is_some).await.ok().and_then(|answer| (*answer).clone());
    // A caller that has gone away needs no answer.
    drop(stream.write_all(&answer.unwrap_or_default()).await);
}
