//! The public listener's application: Pingora's proxy around the [`Gateway`].

use std::net::IpAddr;
use std::sync::Arc;

use pingora_core::apps::{HttpServerApp as _, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use pingora_core::server::configuration::ServerConf;
use pingora_proxy::HttpProxy;
use rampart_core::exchange::Reply;
use tokio::sync::watch;

use crate::connection::App;
use crate::framing::Refused;
use crate::gateway::Gateway;

/// Serves requests through the gateway.
pub(crate) struct Edge {
    proxy: Arc<HttpProxy<Gateway>>,
    gateway: Gateway,
    /// Pingora's own stop, which never comes: `lifecycle` decides.
    never: ShutdownWatch,
}

impl Edge {
    /// Around `gateway`, with `threads` that serve.
    pub(crate) fn new(gateway: Gateway, threads: usize) -> Self {
        let conf = ServerConf { threads, ..ServerConf::default() };
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
    async fn serve(&self, session: ServerSession) -> Option<ReusedHttpStream> {
        self.proxy.process_new_http(session, &self.never).await
    }

    fn refuse(&self, refused: Refused, peer: IpAddr) -> Reply {
        self.gateway.refuse_head(refused, peer)
    }
}
