//! HTTP as every connector calls others: no redirects, no proxies, answers and lists with bounds.

use std::collections::HashSet;
use std::time::Duration;

/// An HTTP client whose calls last no longer than `timeout`. It follows no redirect and uses no proxy.
pub fn client(timeout: Duration) -> reqwest::ClientBuilder {
    // An earlier client has installed it at worst.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
}

/// An answer that was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// There is none, or it was cut off. Without the URL, which may hold a key.
    #[error("{0}")]
    Transport(reqwest::Error),
    /// It is larger than the caller takes.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

impl From<reqwest::Error> for AnswerError {
    fn from(error: reqwest::Error) -> Self {
        Self::Transport(error.without_url())
    }
}

/// The body of an answer, which has at most `bytes_max` bytes. No more is held in memory.
///
/// # Errors
/// When it is larger, by its own word or by what has come of it; and when it is cut off.
pub async fn body(mut answer: reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, AnswerError> {
    let too_large = || AnswerError::TooLarge(bytes_max);
    let declared = usize::try_from(answer.content_length().unwrap_or_default());
    if declared.map_err(|_| too_large())? > bytes_max {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len().saturating_add(chunk.len()) > bytes_max {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A list whose pages do not come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Endless {
    /// There are more of them than the caller takes.
    #[error("the list has more than {0} pages")]
    TooLong(usize),
    /// A cursor has led to a page before.
    #[error("the list repeats itself")]
    Repeats,
}

/// The way through a list that comes in pages.
#[derive(Debug)]
pub struct Pages {
    pages_max: usize,
    /// Cursors of the pages behind the first one.
    cursors: HashSet<String>,
}

impl Pages {
    /// A way through at most `pages_max` pages. It stands before the first one.
    #[must_use]
    pub fn new(pages_max: usize) -> Self {
        Self { pages_max, cursors: HashSet::new() }
    }

    /// Goes on to the page behind a cursor.
    ///
    /// # Errors
    /// When it would be one too many, or the cursor has led to a page before.
    pub fn turn(&mut self, cursor: &str) -> Result<(), Endless> {
        if !self.cursors.insert(cursor.to_owned()) {
            return Err(Endless::Repeats);
        }
        if self.cursors.len() >= self.pages_max {
            return Err(Endless::TooLong(self.pages_max));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The body of an answer whose headers and body are these.
    async fn read(answer: &'static str, bytes_max: usize) -> Result<Vec<u8>, AnswerError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answered = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let answer = format!("HTTP/1.1 200 X\r\nconnection: close\r\n{answer}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let http = client(Duration::from_secs(20)).build().unwrap();
        let answer = http.get(url).send().await.unwrap();
        answered.await.unwrap();
        body(answer, bytes_max).await
    }

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_bound() {
        for answer in [
            "content-length: 5\r\n\r\nhello",
            "transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ] {
            assert_eq!(read(answer, 5).await.unwrap(), b"hello");
            let refused = read(answer, 4).await.unwrap_err();
            assert_eq!(refused.to_string(), "the answer has more than 4 bytes");
        }
        let declared = read("content-length: 1099511627776\r\n\r\n", 4).await.unwrap_err();
        assert!(matches!(declared, AnswerError::TooLarge(4)), "{declared}");
        let cut = read("content-length: 5\r\n\r\nhell", 5).await.unwrap_err();
        assert!(matches!(cut, AnswerError::Transport(_)), "{cut}");
    }

    #[test]
    fn a_list_comes_to_an_end() {
        let mut pages = Pages::new(3);
        assert_eq!((pages.turn("a"), pages.turn("b")), (Ok(()), Ok(())));
        assert_eq!(pages.turn("c"), Err(Endless::TooLong(3)));
        let mut pages = Pages::new(9);
        assert_eq!((pages.turn("a"), pages.turn("b")), (Ok(()), Ok(())));
        assert_eq!(pages.turn("a"), Err(Endless::Repeats));
        assert_eq!(Pages::new(1).turn("a"), Err(Endless::TooLong(1)));
    }
}
