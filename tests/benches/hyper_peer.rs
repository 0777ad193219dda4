//! The smallest server that could stand in for the edge: hyper over rustls, a fixed body.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, header::HeaderValue};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::arguments::HyperPeer;

/// Serves on one thread until the process is ended.
pub(crate) fn serve(peer: &HyperPeer) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(accept(peer));
}

async fn accept(peer: &HyperPeer) {
    let listener = TcpListener::bind(peer.listen).await.unwrap();
    let acceptor = acceptor(peer);
    let body = Bytes::from(std::fs::read(peer.folder.join("body.json")).unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, body) = (acceptor.clone(), body.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = service_fn(|_| {
                let mut response = Response::new(Full::new(body.clone()));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                async { Ok::<_, Infallible>(response) }
            });
            // A client that leaves is no news.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

fn acceptor(peer: &HyperPeer) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(peer.folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(peer.folder.join("key.pem")).unwrap();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
    TlsAcceptor::from(Arc::new(config))
}
