//! `rampart mock`: the partners' API as its document has it, without a database, for the tests of
//! partners. Requests are held to the document; answers are its examples.

mod contract;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rampart_api::PARTNERS_API;
use rampart_core::http::request::request_id;
use rampart_core::platform::clock::Clock;
use rampart_core::platform::error::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use self::contract::Contract;
use crate::commands::Run;
use crate::output;
use crate::server;
use crate::startup_error::{Context as _, StartupError};

/// Connections at once; more wait.
const CONNECTIONS_MAX: usize = 256;
/// Longest wait for the head of a request.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);

/// Answer as the partners' API would by its document, without state: for tests of partners.
#[derive(Debug, Args)]
pub(crate) struct Mock {
    /// Port to listen on; 0 takes a free one and says which.
    #[arg(long, value_name = "PORT")]
    port: u16,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    address: IpAddr,
}

impl Run for Mock {
    fn run(self) -> Result<(), StartupError> {
        let contract = Arc::new(Contract::read()?);
        server::runtime(1)?.block_on(async {
            let address = SocketAddr::new(self.address, self.port);
            let cannot = format!("cannot listen on {address}");
            let listener = TcpListener::bind(address).await.context(&cannot)?;
            let address = listener.local_addr().context(&cannot)?;
            output::line(format_args!("mock: http://{address}"));
            serve(listener, contract).await;
            Ok(())
        })
    }
}

async fn serve(listener: TcpListener, contract: Arc<Contract>) {
    let (places, clock) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Clock::system());
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (contract, clock) = (Arc::clone(&contract), clock.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                answer(request, Arc::clone(&contract), clock.clone())
            });
            let mut connections = http1::Builder::new();
            connections.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT_MAX);
            // A client that goes away is its own affair.
            _ = connections.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

async fn answer<B>(
    request: Request<B>,
    contract: Arc<Contract>,
    clock: Clock,
) -> Result<Response<Full<Bytes>>, Infallible>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let id = request_id(head.headers.get("x-request-id").map(|id| id.as_bytes()), &clock);
    let (bound, code) = PARTNERS_API.body_bound(&head.method, head.uri.path());
    let mut reply = match Limited::new(body, bound).collect().await {
        Ok(body) => contract.answer(&head, &body.to_bytes()),
        Err(_) => {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            Error::with_status(code, status, "the body is too large").reply(&id)
        }
    };
    reply.set("x-request-id", id);
    let mut response = Response::new(Full::new(reply.body));
    (*response.status_mut(), *response.headers_mut()) = (reply.status, reply.headers);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::Value;

    use super::*;

    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;
    /// Read once: it takes long to compile the schemas where nothing is optimised.
    static CONTRACT: LazyLock<Arc<Contract>> =
        LazyLock::new(|| Arc::new(Contract::read().unwrap()));

    /// The answer to a POST of a body of so many bytes.
    async fn post(path: &str, id: Option<&str>, bytes: usize) -> Response<Full<Bytes>> {
        let mut request = Request::post(path).header("x-api-key", "any");
        if let Some(id) = id {
            request = request.header("x-request-id", id);
        }
        let request = request.body(Full::<Bytes>::from(vec![b' '; bytes])).unwrap();
        answer(request, Arc::clone(&CONTRACT), Clock::system()).await.unwrap()
    }

    #[tokio::test]
    async fn every_answer_has_a_well_formed_id() {
        for bytes in [0, 300 * KIB] {
            let named = post("/api/v1/buy/quote", Some("build-7.a"), bytes).await;
            assert_eq!(named.headers()["x-request-id"], "build-7.a");
            for sent in [None, Some("a;b")] {
                let named = post("/api/v1/buy/quote", sent, bytes).await;
                let id = named.headers()["x-request-id"].to_str().unwrap();
                assert!(id.len() == 36 && id.as_bytes()[14] == b'7', "{sent:?} gave {id}");
            }
        }
    }

    #[tokio::test]
    async fn a_body_is_bounded_as_on_an_edge() {
        for (path, bytes, status, code) in [
            ("/api/v1/buy/quote", 256 * KIB, 400, "ER048"),
            ("/api/v1/buy/quote", 256 * KIB + 1, 413, "ER048"),
            ("/api/v2/user", 64 * MIB, 400, "ER048"),
            ("/api/v2/user", 64 * MIB + 1, 413, "ER078"),
            ("/api/v9/user", 256 * KIB + 1, 413, "ER048"),
            ("/api/v9/user", 256 * KIB, 404, "ER998"),
        ] {
            let answer = post(path, None, bytes).await;
            assert_eq!(answer.status(), status, "{path}: {bytes}");
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert!(body["errors"].get(code).is_some(), "{path}: {bytes}: {body}");
        }
    }
}
