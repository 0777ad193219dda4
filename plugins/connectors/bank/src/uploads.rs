//! The listener that statements are uploaded to: a second way into the inbox. Off unless it is
//! configured.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use rampart_connector::listener::{self, Bounds};
use ring::rand::SystemRandom;
use ring::{digest, hmac};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::Bank;
use crate::settings::UploadSettings;
use crate::statements::{FILE_BYTES_MAX, of_account, parse};

/// Path of the only resource.
const PATH: &str = "/statements";
/// Bounds of connections, each of which may hold a whole statement.
const BOUNDS: Bounds =
    Bounds { connections: 4, head: Duration::from_secs(10), connection: Duration::from_secs(90) };
/// Longest time for a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// A refusal: its status, and one sentence.
type Refused = (StatusCode, String);

struct Listener {
    bank: Arc<Bank>,
    token: TokenProof,
}

/// The token, known by its MAC under a key of this process alone: MACs are compared in constant time,
/// whatever the length of what was sent.
struct TokenProof {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl TokenProof {
    fn new(token: &str) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "there is no entropy".to_owned())?;
        let tag = hmac::sign(&key, token.as_bytes());
        Ok(Self { key, tag })
    }

    fn accepts(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let (Some(header), None) = (sent.next(), sent.next()) else { return false };
        let token = header.as_bytes().strip_prefix(b"Bearer ");
        token.is_some_and(|token| hmac::verify(&self.key, token, self.tag.as_ref()).is_ok())
    }
}

/// Takes statements without end.
///
/// # Errors
/// One sentence when the token cannot be read or the address cannot be listened on.
pub(crate) async fn listen(bank: Arc<Bank>, settings: &UploadSettings) -> Result<(), String> {
    let token = TokenProof::new(settings.token()?.expose())?;
    let socket = listener::bind("uploads", settings.listen).await?;
    Arc::new(Listener { bank, token }).accept(socket).await;
    Ok(())
}

impl Listener {
    async fn accept(self: Arc<Self>, socket: TcpListener) {
        listener::serve(socket, BOUNDS, move |request| {
            let listener = Arc::clone(&self);
            async move { listener.answer(request).await }
        })
        .await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, sentence) = match self.take(request).await {
            Ok(sentence) => (StatusCode::ACCEPTED, sentence),
            Err((status, sentence)) => {
                tracing::warn!(%status, sentence, "an upload is refused");
                (status, sentence)
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(sentence + "\n")));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            _ => {}
        }
        response
    }

    /// Puts one statement into the inbox. Nobody without the token learns anything, and nothing of
    /// their bodies is read.
    async fn take(&self, request: Request<Incoming>) -> Result<String, Refused> {
        let refused = |status, sentence: &str| Err((status, sentence.to_owned()));
        if !self.token.accepts(request.headers()) {
            return refused(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
        }
        if request.uri().path() != PATH {
            return refused(StatusCode::NOT_FOUND, "statements are sent to /statements");
        }
        if request.method() != Method::POST {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "statements are sent by POST");
        }
        let body = self.body(request.into_body()).await?;
        let lines = parse(&body).and_then(|lines| of_account(lines, &self.bank.settings.account));
        let lines =
            lines.map_err(|reason| (StatusCode::UNPROCESSABLE_ENTITY, reason.to_string()))?.len();
        let digest = digest::digest(&digest::SHA256, &body);
        // The same statement again is one file.
        let name = format!("upload-{}.xml", hex::encode(&digest.as_ref()[..16]));
        self.bank.folder.receive(&name, &body).map_err(|error| {
            tracing::error!(%error, name, "an uploaded statement cannot be stored");
            (StatusCode::SERVICE_UNAVAILABLE, "the statement cannot be stored now".to_owned())
        })?;
        tracing::info!(name, lines, "a statement was uploaded");
        Ok(format!("the statement is stored as {name}, lines: {lines}"))
    }

    async fn body(&self, body: Incoming) -> Result<Bytes, Refused> {
        let refused = |status, sentence: &str| Err((status, sentence.to_owned()));
        let most = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
        if body.size_hint().lower() > FILE_BYTES_MAX {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "the statement has more than 16 MiB");
        }
        match timeout(BODY_TIMEOUT, Limited::new(body, most).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                refused(StatusCode::PAYLOAD_TOO_LARGE, "the statement has more than 16 MiB")
            }
            Ok(Err(_)) => refused(StatusCode::BAD_REQUEST, "the statement was cut off"),
            Err(_) => refused(StatusCode::REQUEST_TIMEOUT, "the statement took too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr};

    use rampart_connector::Client;

    use super::*;
    use crate::folder::Folder;
    use crate::folder::tests::Place;
    use crate::settings::Settings;
    use crate::statements::tests::{entry, statement};

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    /// A listener over a folder of its own.
    async fn listening(place: &Place) -> SocketAddr {
        let token = place.0.join("edge.token");
        fs::write(&token, "rcn_abc").unwrap();
        let settings: Settings = toml::from_str(&format!(
            "folder = {root:?}\n[edge]\nurl = \"http://127.0.0.1:9\"\n\
             token = {{ file = {token:?} }}\n\
             [account]\nname = \"Rampart\"\niban = \"NL02 ABNA 0123 4567 89\"\n",
            root = place.0,
        ))
        .unwrap();
        let edge = Client::new(&settings.edge).unwrap();
        let folder = Folder::open(&settings.folder).unwrap();
        let bank = Arc::new(Bank { edge, folder, settings });
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let token = TokenProof::new(TOKEN).unwrap();
        tokio::spawn(Arc::new(Listener { bank, token }).accept(socket));
        address
    }

    /// Sends bytes, and reads the status and the sentence that are answered; `None` when the connection
    /// is reset instead.
    async fn exchange(address: SocketAddr, request: Vec<u8>) -> Option<(u16, String)> {
        let sent = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let mut answer = String::new();
            stream.write_all(&request).ok()?;
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        });
        let answer = sent.await.unwrap()?;
        let (head, sentence) = answer.split_once("\r\n\r\n").unwrap();
        Some((head.split(' ').nth(1).unwrap().parse().unwrap(), sentence.trim_end().to_owned()))
    }

    async fn send(address: SocketAddr, request: Vec<u8>) -> (u16, String) {
        exchange(address, request).await.unwrap()
    }

    fn request(line: &str, headers: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        format!("{line} HTTP/1.1\r\nHost: bank\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    fn upload(body: &str) -> Vec<u8> {
        request("POST /statements", &format!("Authorization: Bearer {TOKEN}\r\n"), body)
    }

    #[tokio::test]
    async fn an_uploaded_statement_is_in_the_inbox_once() {
        let place = Place::make();
        let address = listening(&place).await;
        let whole = statement(&[entry("bank-1", "CRDT", "")]);
        let (status, sentence) = send(address, upload(&whole)).await;
        assert_eq!(status, 202, "{sentence}");
        let names = place.names("inbox");
        assert!(sentence.contains(&names[0]) && sentence.ends_with("lines: 1"), "{sentence}");
        assert_eq!(fs::read_to_string(place.0.join("inbox").join(&names[0])).unwrap(), whole);
        assert_eq!(send(address, upload(&whole)).await.0, 202);
        assert_eq!(place.names("inbox"), names);
        let other = statement(&[entry("bank-2", "CRDT", "")]);
        assert_eq!(send(address, upload(&other)).await.0, 202);
        assert_eq!(place.names("inbox").len(), 2);
    }

    #[tokio::test]
    async fn every_refusal_is_one_sentence_and_leaves_nothing_behind() {
        let place = Place::make();
        let address = listening(&place).await;
        let whole = statement(&[entry("bank-1", "CRDT", "")]);
        let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
        let good = bearer(TOKEN);
        let others = whole.replace("NL02ABNA0123456789", "NL58ABNA0000000001");
        let post = "POST /statements";
        let large = format!(
            "{post} HTTP/1.1\r\nHost: bank\r\n{good}Content-Length: {}\r\n\r\n",
            FILE_BYTES_MAX + 1
        );
        for (request, status, part) in [
            (request(post, "", &whole), 401, "token"),
            (request(post, &bearer(&TOKEN[1..]), &whole), 401, "token"),
            (request(post, &bearer(&format!("{TOKEN}0")), &whole), 401, "token"),
            (request(post, &bearer(""), &whole), 401, "token"),
            (request(post, &format!("Authorization: {TOKEN}\r\n"), &whole), 401, "token"),
            (request(post, &format!("{good}{good}"), &whole), 401, "token"),
            (request("GET /statements", &good, ""), 405, "POST"),
            (request("POST /", &good, &whole), 404, "/statements"),
            (request("GET /", "", ""), 401, "token"),
            (large.into_bytes(), 413, "16 MiB"),
            (upload(&whole[..whole.len() - 5]), 422, ""),
            (upload("date,amount,currency\n"), 422, "camt.053"),
            (upload(""), 422, "camt.053"),
            (upload(&others), 422, "another account"),
        ] {
            let text = String::from_utf8_lossy(&request).into_owned();
            let (answered, sentence) = send(address, request).await;
            assert_eq!(answered, status, "{text}: {sentence}");
            assert!(sentence.contains(part) && sentence.lines().count() == 1, "{sentence}");
            assert!(!sentence.contains(TOKEN));
        }
        assert!(place.names("inbox").is_empty() && place.names("refused").is_empty());
    }

    #[tokio::test]
    async fn a_body_without_a_length_is_bounded_too() {
        let place = Place::make();
        let address = listening(&place).await;
        let size = usize::try_from(FILE_BYTES_MAX).unwrap() + 1;
        let head = format!(
            "POST /statements HTTP/1.1\r\nHost: bank\r\nAuthorization: Bearer {TOKEN}\r\n\
             Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n"
        );
        let request = [head.into_bytes(), vec![b'<'; size]].concat();
        // The listener does not wait for the rest; read in full, it would be no statement.
        let answered = exchange(address, request).await.map(|(status, _)| status);
        assert!([None, Some(413)].contains(&answered), "{answered:?}");
        assert!(place.names("inbox").is_empty());
    }
}
