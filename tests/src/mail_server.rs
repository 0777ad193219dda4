//! A mail server on loopback, as far as a sender needs one (RFC 5321): it takes what it is sent, or
//! answers as told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A mail as it came.
#[derive(Clone, Debug)]
pub struct Mail {
    /// The recipient.
    pub to: String,
    /// Head and text, with single line ends.
    pub content: String,
}

#[derive(Default)]
struct Shared {
    mails: Mutex<Vec<Mail>>,
    refusals: Mutex<Vec<&'static str>>,
}

/// The server. It stops when it is dropped.
pub struct MailServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl MailServer {
    /// Listens on a free port and takes every mail.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move { serve(stream, &shared).await });
            }
        });
        Self { address, shared, accepting }
    }

    /// `mail.smtp_url` for it.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Answers the next recipients with these lines, the last one first.
    pub fn refuse(&self, answers: Vec<&'static str>) {
        *self.shared.refusals.lock().unwrap_or_else(PoisonError::into_inner) = answers;
    }

    /// The mails that it has received.
    pub fn mails(&self) -> Vec<Mail> {
        self.shared.mails.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection; it ends when the client goes.
async fn serve(stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut lines = BufStream::new(stream).lines();
    say(&mut lines, "220 localhost").await?;
    let mut to = String::new();
    loop {
        let line = lines.next_line().await.ok()??;
        let upper = line.to_ascii_uppercase();
        if upper.starts_with("RCPT TO:") {
            let refusal = shared.refusals.lock().unwrap_or_else(PoisonError::into_inner).pop();
            to = line.split(['<', '>']).nth(1)?.to_owned();
            say(&mut lines, refusal.unwrap_or("250 ok")).await?;
        } else if upper == "DATA" {
            say(&mut lines, "354 go on").await?;
            let mut content = String::new();
            loop {
                let line = lines.next_line().await.ok()??;
                if line == "." {
                    break;
                }
                content.push_str(line.strip_prefix('.').unwrap_or(&line));
                content.push('\n');
            }
            let mail = Mail { to: to.clone(), content };
            shared.mails.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
            say(&mut lines, "250 taken").await?;
        } else if upper == "QUIT" {
            return say(&mut lines, "221 bye").await;
        } else {
            say(&mut lines, "250 localhost").await?;
        }
    }
}

async fn say(lines: &mut Lines<BufStream<TcpStream>>, line: &str) -> Option<()> {
    let stream = lines.get_mut();
    stream.write_all(format!("{line}\r\n").as_bytes()).await.ok()?;
    stream.flush().await.ok()
}
