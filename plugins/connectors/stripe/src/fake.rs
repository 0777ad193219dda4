//! One server that plays both an edge and the provider, for tests.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Connector;
use crate::settings::Settings;

/// A request.
pub(crate) struct Heard {
    /// Method and path, in small letters.
    pub(crate) line: String,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) body: String,
}

async fn request(stream: &mut TcpStream) -> Heard {
    let (mut head, mut body) = (Vec::new(), Vec::new());
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length = header("content-length: ").map_or(0, |length| length.parse().unwrap());
    body.resize(length, 0);
    stream.read_exact(&mut body).await.unwrap();
    let line = head.lines().next().unwrap().to_owned();
    let idempotency_key = header("idempotency-key: ").map(str::to_owned);
    Heard { line, idempotency_key, body: String::from_utf8(body).unwrap() }
}

/// A connector whose edge and provider answer so, with a status and a document.
pub(crate) async fn connector(
    answer: impl Fn(&Heard) -> (u16, Value) + Send + 'static,
) -> Connector {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let heard = request(&mut stream).await;
            let (status, body) = answer(&heard);
            let body = body.to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}");
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        }
    });
    let secret = std::env::temp_dir().join(format!("rampart-stripe-{}", address.port()));
    std::fs::write(&secret, "secret").unwrap();
    let settings: Settings = toml::from_str(&format!(
        "[edge]\nurl = \"http://{address}\"\ntoken = {{ file = {secret:?} }}\n\
         [stripe]\nurl = \"http://{address}\"\nsecret_key = {{ file = {secret:?} }}\n"
    ))
    .unwrap();
    let connector = Connector::new(&settings).unwrap();
    std::fs::remove_file(secret).unwrap();
    connector
}
