//! The public listener's application: the [`Gateway`], in Pingora's proxy if there is an upstream.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::BytesMut;
use pingora_core::apps::HttpServerApp as _;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use pingora_core::server::configuration::ServerConf;
use pingora_proxy::HttpProxy;
use rampart_core::http::reply::Reply;
use tokio::sync::watch;

use crate::connection::{App, Origin};
use crate::framing::Refused;
use crate::gateway::Gateway;
use crate::stream::Stream as Http2Stream;
use crate::whole::Whole;

/// How often a request is sent to an upstream. It is sent again only when the upstream has closed a
/// kept connection meanwhile, and it only reads.
const UPSTREAM_TRIES: usize = 2;

/// Serves requests through the gateway.
pub(crate) struct Edge {
    proxy: Arc<HttpProxy<Gateway>>,
    gateway: Gateway,
    /// Pingora's own stop, which never comes: `lifecycle` decides.
    never: ShutdownWatch,
}

impl Edge {
    /// Around `gateway`, with `threads` that serve. An upstream's certificate is checked against
    /// the authorities in `ca_file`, or else the system's; the file has been seen to be good.
    pub(crate) fn new(gateway: Gateway, threads: usize, ca_file: Option<String>) -> Self {
        let max_retries = UPSTREAM_TRIES;
        let conf = ServerConf { threads, max_retries, ca_file, ..ServerConf::default() };
        let mut proxy = HttpProxy::new(gateway.clone(), Arc::new(conf));
        proxy.handle_init_modules();
        // CONNECT gets our own 405 instead of Pingora's, which is no envelope.
        let mut options = pingora_core::apps::HttpServerOptions::default();
        options.allow_connect_method_proxying = true;
        proxy.server_options = Some(options);
        Self { proxy: Arc::new(proxy), gateway, never: watch::channel(false).1 }
    }
}

impl App for Edge {
    async fn serve(&self, session: ServerSession) -> Option<Stream> {
        if self.gateway.has_upstream() {
            let reused = self.proxy.process_new_http(session, &self.never).await?;
            return Some(reused.consume().0);
        }
        // Boxed, so that a connection takes no memory for it between requests.
        Box::pin(self.gateway.serve(session)).await
    }

    async fn serve_whole(
        &self,
        request: BytesMut,
        origin: &Origin,
        stream: &mut Stream,
        last: bool,
    ) -> Result<bool, BytesMut> {
        if self.gateway.has_upstream() {
            return Err(request);
        }
        let request = Whole::read(request)?;
        Ok(Box::pin(self.gateway.serve_whole(request, origin, stream, last)).await)
    }

    async fn serve_stream(&self, stream: Http2Stream, origin: &Origin) {
        self.gateway.serve_stream(stream, origin).await;
    }

    fn serves_streams(&self) -> bool {
        !self.gateway.has_upstream()
    }

    fn refuse(&self, refused: Refused, peer: IpAddr) -> Reply {
        self.gateway.refuse_head(refused, peer)
    }
}
