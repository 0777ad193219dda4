//! `GET /pay/{token}/events`: the state of a page's order, and each change of it, as server-sent
//! events. The page's script shows the page anew when the state is another one than it shows.

use std::net::IpAddr;

use http::{Method, StatusCode};

use super::{Link, page, watches};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::event_stream::EventStream;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::trading::orders::payment_link;

/// Name of the events.
const EVENT: &str = "state";

/// Follows the order.
pub struct Follow;

impl Endpoint for Follow {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/pay/{token}/events";
    type Caller = Anyone;
    type Request = (Link, IpAddr);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, IpAddr)> {
        Ok((Link::read(input), input.head.peer))
    }

    async fn call(core: &Core, _: Anyone, (link, address): (Link, IpAddr)) -> Result<Reply> {
        let not_found = || Ok(page::not_found(link.texts, &core.settings.pages));
        let Some(order) = payment_link::parse(core, &link.token)? else { return not_found() };
        let watches = &core.order_watches;
        let followed = match watches.follow(order, address, None)? {
            Some(followed) => followed,
            None => {
                let Some(state) = watches::read_state(core, order).await? else {
                    return not_found();
                };
                let Some(followed) = watches.follow(order, address, Some(state))? else {
                    return not_found();
                };
                followed
            }
        };
        let (states, permit) = followed;
        let events = EventStream::new(EVENT, states, permit);
        Ok(Reply { events: Some(events), ..event_stream_head() })
    }
}

/// The head of a stream. Nothing on the way to the browser may hold it back or keep it.
fn event_stream_head() -> Reply {
    let mut reply = Reply::empty(StatusCode::OK);
    reply.set("content-type", "text/event-stream");
    reply.set("cache-control", "no-store, no-transform");
    reply.set("x-accel-buffering", "no");
    reply.set("x-content-type-options", "nosniff");
    reply
}
