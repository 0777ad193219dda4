//! A request that no upstream answers, from its head to its end. Pingora's proxy does the same for
//! one that goes on, at the price of several boxes and of states that only an upstream needs.

use pingora_core::apps::{HttpPersistentSettings, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_error::ErrorType;

use super::account::Seen;
use super::{Gateway, set_bounds};
use crate::connection;
use crate::context::Context;

impl Gateway {
    /// Whether some requests go on to an upstream.
    pub(crate) fn has_upstream(&self) -> bool {
        self.core.upstream.is_some()
    }

    /// Serves a request; gives the connection back if it can go on.
    pub(crate) async fn serve(&self, mut session: ServerSession) -> Option<ReusedHttpStream> {
        match session.read_request().await {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                if *error.etype() == ErrorType::InvalidHTTPHeader {
                    // Whoever does not take it is gone.
                    let _ = session.respond_error(400).await;
                }
                session.shutdown().await;
                return None;
            }
        }
        let mut context = self.begin();
        set_bounds(&mut session);
        let responded = self.respond(&mut session, &mut context).await;
        self.close(&session, &mut context);
        if !responded.ok()? {
            return None;
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let stream = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }

    /// Counts and logs a request that is over, however it ended.
    pub(super) fn close(&self, session: &ServerSession, context: &mut Context) {
        context.place = None;
        if session.is_http2()
            && session.response_written().is_none()
            && let Some(connection) = connection::of(session)
        {
            connection.abandoned();
        }
        self.account(context, &Seen::of(session));
    }
}
