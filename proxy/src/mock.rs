//! `rampart mock`: the partners' API as its document has it, without a database, for the tests of
//! partners. Requests are held to the document; answers are its examples.

mod contract;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rampart_core::http::reply::Reply;
use rampart_core::platform::error::{Code, Error};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use self::contract::Contract;
use crate::output;
use crate::server;
use crate::startup_error::StartupError;

/// Largest body that is read, in bytes: a document with images.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Connections at once; more wait.
const CONNECTIONS_MAX: usize = 256;
/// Longest wait for the head of a request.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// Header that names each answer, taken from the request where it has one.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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

impl Mock {
    /// Serves until the process is ended.
    ///
    /// # Errors
    /// The port is taken, or the document is broken.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        let contract = Arc::new(Contract::read()?);
        server::runtime(1)?.block_on(async {
            let address = SocketAddr::new(self.address, self.port);
            let cannot = |e| StartupError::new(&format!("cannot listen on {address}"), &e);
            let listener = TcpListener::bind(address).await.map_err(cannot)?;
            let address = listener.local_addr().map_err(cannot)?;
            output::line(format_args!("mock: http://{address}"));
            serve(listener, contract).await;
            Ok(())
        })
    }
}

async fn serve(listener: TcpListener, contract: Arc<Contract>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let contract = Arc::clone(&contract);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&contract)));
            let mut connections = http1::Builder::new();
            connections.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT_MAX);
            // A client that goes away is its own affair.
            _ = connections.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    contract: Arc<Contract>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let id = head.headers.get(REQUEST_ID).cloned();
    let mut reply = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => contract.answer(&head, &body.to_bytes()),
        Err(_) => {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            Error::with_status(Code::RequestMalformed, status, "the body is too large")
                .reply("mock")
        }
    };
    reply.headers.insert(REQUEST_ID, id.unwrap_or(HeaderValue::from_static("mock")));
    Ok(into_response(reply))
}

fn into_response(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(reply.body));
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    response
}
