//! Orders that pages follow: one statement a second reads the states of all of them, however many
//! pages look at each.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

use crate::Core;
use crate::http::event_stream::StreamPermit;
use crate::platform::error::{Error, Result};
use crate::platform::keyed_semaphore::{KeyedPermit, KeyedSemaphore};
use crate::platform::network::network;
use crate::trading::orders::column::id;
use crate::trading::orders::status::{Cause, OrderStatus};
use rampart_types::{ClientId, OrderKey};

/// Most pages of this edge that follow an order.
const WATCHES_MAX: usize = 4_096;
/// Most of them that follow orders of one client: three quarters.
const WATCHES_PER_CLIENT_MAX: usize = WATCHES_MAX - WATCHES_MAX / 4;
/// Most of them that follow one order.
const WATCHES_PER_ORDER_MAX: usize = 8;
/// Most of them of one address, or of the /64 network of one IPv6 customer. A mobile network has
/// many customers behind one address.
const WATCHES_PER_ADDRESS_MAX: usize = 64;
/// The worker in metrics and logs.
const SWEEP: &str = "watched orders";

/// The orders that pages of this edge follow.
#[derive(Debug)]
pub struct OrderWatches {
    watched: Arc<Mutex<Watched>>,
    addresses: KeyedSemaphore<IpAddr>,
    clients: KeyedSemaphore<ClientId>,
}

impl Default for OrderWatches {
    fn default() -> Self {
        Self {
            watched: Arc::default(),
            addresses: KeyedSemaphore::new(WATCHES_PER_ADDRESS_MAX),
            clients: KeyedSemaphore::new(WATCHES_PER_CLIENT_MAX),
        }
    }
}

#[derive(Debug, Default)]
struct Watched {
    orders: HashMap<OrderKey, WatchedOrder>,
    /// Open watches of all orders.
    count: usize,
}

#[derive(Debug)]
struct WatchedOrder {
    state: watch::Sender<Arc<str>>,
    count: usize,
}

/// One page that follows an order.
#[derive(Debug)]
struct Watch {
    watched: Arc<Mutex<Watched>>,
    order: OrderKey,
    _address: KeyedPermit<IpAddr>,
    _client: KeyedPermit<ClientId>,
}

impl StreamPermit for Watch {}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = lock(&self.watched);
        watched.count -= 1;
        if let Some(order) = watched.orders.get_mut(&self.order) {
            order.count -= 1;
            if order.count == 0 {
                watched.orders.remove(&self.order);
            }
        }
    }
}

/// The states of an order that a page follows, and what ends the watch when it is dropped.
pub(super) type Followed = (watch::Receiver<Arc<str>>, Arc<dyn StreamPermit>);

impl OrderWatches {
    /// Follows an order for a page of this address. The state of one that nobody follows yet is
    /// `state`; without it `None`.
    ///
    /// # Errors
    /// 503 when too many follow already.
    pub(super) fn follow(
        &self,
        key: OrderKey,
        address: IpAddr,
        state: Option<Arc<str>>,
    ) -> Result<Option<Followed>> {
        let share_used_up = || Error::share_used_up("follow an order on one more page");
        let of_address = self.addresses.try_acquire(network(address)).ok_or_else(share_used_up)?;
        let of_client = self.clients.try_acquire(key.client).ok_or_else(share_used_up)?;
        let mut watched = lock(&self.watched);
        let of_order = watched.orders.get(&key).map_or(0, |order| order.count);
        // Whoever has the link takes all that follow its order.
        if of_order >= WATCHES_PER_ORDER_MAX {
            return Err(share_used_up());
        }
        if watched.count >= WATCHES_MAX {
            return Err(Error::unavailable("follow an order on one more page"));
        }
        let values = match (watched.orders.get_mut(&key), state) {
            (Some(order), _) => {
                order.count += 1;
                order.state.subscribe()
            }
            (None, Some(state)) => {
                let (sender, values) = watch::channel(state);
                watched.orders.insert(key, WatchedOrder { state: sender, count: 1 });
                values
            }
            (None, None) => return Ok(None),
        };
        watched.count += 1;
        drop(watched);
        let watched = Arc::clone(&self.watched);
        let watch = Watch { watched, order: key, _address: of_address, _client: of_client };
        Ok(Some((values, Arc::new(watch))))
    }

    /// Number of pages that follow an order.
    pub fn count(&self) -> usize {
        lock(&self.watched).count
    }

    fn keys(&self) -> Vec<OrderKey> {
        lock(&self.watched).orders.keys().copied().collect()
    }

    /// Tells the pages that follow the order, if its state is another one.
    fn tell(&self, key: OrderKey, state: &str) {
        if let Some(order) = lock(&self.watched).orders.get(&key) {
            order.state.send_if_modified(|known| {
                let changed = **known != *state;
                if changed {
                    *known = state.into();
                }
                changed
            });
        }
    }
}

impl Core {
    /// Reads the states of the orders that pages follow, and tells those that have changed; nothing
    /// where no page follows one. A partner with an order that cannot be read is passed over.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn read_watched_orders(&self) -> Result<()> {
        let mut keys = self.order_watches.keys();
        if keys.is_empty() {
            return Ok(());
        }
        match self.tell_states(&keys).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_unavailable() && !error.is_of_one_statement() => {
                return Err(error);
            }
            Err(_) => {}
        }
        keys.sort_unstable_by_key(|key| key.client.uuid());
        for of_client in keys.chunk_by(|one, other| one.client == other.client) {
            let told = self.tell_states(of_client).await;
            if let (Err(error), Some(first)) = (told, of_client.first()) {
                self.metrics.row_failed(SWEEP, first.client.uuid(), &first.order, error)?;
            }
        }
        Ok(())
    }

    /// Reads the states of these orders, and tells those that have changed.
    async fn tell_states(&self, keys: &[OrderKey]) -> Result<()> {
        for (key, state) in read_states(self, keys).await? {
            self.order_watches.tell(key, &state);
        }
        Ok(())
    }
}

/// The state of an order as its page shows it; `None` if there is no such order.
pub(super) async fn read_state(core: &Core, key: OrderKey) -> Result<Option<Arc<str>>> {
    let states = read_states(core, &[key]).await?;
    Ok(states.into_iter().next().map(|(_, state)| state.into()))
}

async fn read_states(core: &Core, keys: &[OrderKey]) -> Result<Vec<(OrderKey, String)>> {
    let keys = keys.iter().map(|key| (key.client.uuid(), key.order.number()));
    let (clients, orders): (Vec<Uuid>, Vec<i64>) = keys.unzip();
    let rows = sqlx::query!(
        r#"
        select o.client_id, o.order_id, o.status as "status: OrderStatus",
            o.status_cause as "status_cause: Cause",
            coalesce(o.expires_at < rampart_now(), false) as "late!",
            (select c.state = 'done' from command c
                where c.client_id = o.client_id and c.order_id = o.order_id
                    and c.kind = 'payment.create' and c.connector is distinct from 'sandbox')
                as made,
            o.transaction_id is not null as "sent!",
            case when o.status = 'in progress' and o.transaction_id is null and g.is_held
                then g.holds end as holds
        from unnest($1::uuid[], $2::bigint[]) as w (client_id, order_id)
        join buy_order o using (client_id, order_id)
        cross join payout_gate(o.client_id, o.order_id, $3) g
        "#,
        &clients,
        &orders,
        core.settings.compliance.gate_of_live().as_str(),
    )
    .fetch_all(&core.db)
    .await?;
    let states = rows.into_iter().map(|row| {
        let holds = row.holds.unwrap_or_default();
        let state = shown_state(row.status, row.status_cause, row.late, row.made, row.sent, &holds);
        Ok((OrderKey { client: row.client_id.into(), order: id(row.order_id)? }, state))
    });
    states.collect()
}

/// The state of an order as far as its page shows it, in a line: as long as it is the same, the page
/// is. `made` is true once the payment provider has answered, and `None` if none was asked; `sent` once
/// its coins have a transaction; `holds` are the checks that they wait for.
pub(super) fn shown_state(
    status: OrderStatus,
    cause: Cause,
    late: bool,
    made: Option<bool>,
    sent: bool,
    holds: &[String],
) -> String {
    if !holds.is_empty() {
        return format!("{}: {}", status.as_str(), holds.join(" "));
    }
    let detail = match (status, late, made) {
        (OrderStatus::Pending, true, _) => "late",
        (OrderStatus::Pending, false, Some(true)) => "at provider",
        (OrderStatus::Pending, false, Some(false)) => "preparing",
        (OrderStatus::InProgress, ..) if sent => "sent",
        // Of the other causes the page says nothing.
        (OrderStatus::Cancelled, ..) => cause.as_str(),
        _ => return status.as_str().to_owned(),
    };
    format!("{}: {detail}", status.as_str())
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rampart_types::OrderId;

    fn order(number: i64) -> OrderKey {
        OrderKey { client: Uuid::nil().into(), order: OrderId::new(number).unwrap() }
    }

    /// An order of another client.
    fn other(number: i64) -> OrderKey {
        OrderKey { client: Uuid::max().into(), ..order(number) }
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn follow(watches: &OrderWatches, number: i64, last: u8) -> Result<Option<Followed>> {
        watches.follow(order(number), address(last), Some("pending".into()))
    }

    #[test]
    fn watches_are_bounded_by_order_address_client_and_in_all_and_leave_nothing_behind() {
        let watches = OrderWatches::default();
        let mut open: Vec<_> = (0..WATCHES_PER_ORDER_MAX)
            .map(|number| follow(&watches, 1, number.try_into().unwrap()).unwrap())
            .collect();
        let by_sender = |followed: Result<Option<Followed>>| {
            followed.err().map(|error| error.reply("1").by_sender)
        };
        assert_eq!(by_sender(follow(&watches, 1, 100)), Some(true), "no failure of ours");
        open.pop();
        open.push(follow(&watches, 1, 100).unwrap());
        drop(open);
        let mut open: Vec<_> = (1..)
            .take(WATCHES_PER_ADDRESS_MAX)
            .map(|number| follow(&watches, number, 1).unwrap())
            .collect();
        assert!(follow(&watches, 1_000, 1).is_err());
        let numbers = 1_000_i64..;
        let addresses = (2..=u8::MAX).cycle();
        let mut rest = numbers.zip(addresses);
        let of_client = rest.by_ref().take(WATCHES_PER_CLIENT_MAX - WATCHES_PER_ADDRESS_MAX);
        open.extend(of_client.map(|(number, last)| follow(&watches, number, last).unwrap()));
        assert!(follow(&watches, 9_999, 255).is_err(), "the client has its part");
        let follow_other = |number: i64, last: u8| {
            watches.follow(other(number), address(last), Some("pending".into()))
        };
        let of_other = rest.take(WATCHES_MAX - WATCHES_PER_CLIENT_MAX);
        open.extend(of_other.map(|(number, last)| follow_other(number, last).unwrap()));
        assert_eq!(by_sender(follow_other(9_999, 255)), Some(false));
        assert_eq!(watches.count(), WATCHES_MAX);
        drop(open);
        let left = lock(&watches.watched);
        assert_eq!((left.count, left.orders.len()), (0, 0));
        drop(left);
        assert!(follow(&watches, 1, 1).is_ok() && follow_other(1, 1).is_ok());
    }

    #[test]
    fn a_change_is_told_to_who_follows_the_order_and_to_nobody_else() {
        let watches = OrderWatches::default();
        let (mut one, _one) = follow(&watches, 1, 1).unwrap().unwrap();
        let (other, _other) = follow(&watches, 2, 1).unwrap().unwrap();
        assert!(watches.follow(order(3), address(1), None).unwrap().is_none());
        watches.tell(order(1), "pending");
        assert!(!one.has_changed().unwrap());
        watches.tell(order(1), "completed");
        assert_eq!(&**one.borrow_and_update(), "completed");
        assert!(!other.has_changed().unwrap());
        let late = watches.follow(order(1), address(2), None).unwrap();
        assert_eq!(&**late.unwrap().0.borrow(), "completed");
    }

    #[test]
    fn a_state_says_what_the_page_shows_of_it() {
        let state = |status, cause, late, made| shown_state(status, cause, late, made, false, &[]);
        let (pending, moved) = (OrderStatus::Pending, OrderStatus::InProgress);
        let first = state(pending, Cause::Confirmed, false, None);
        assert_eq!(first, "pending");
        assert_eq!(state(pending, Cause::Confirmed, true, Some(true)), "pending: late");
        let made =
            [Some(false), Some(true)].map(|made| state(pending, Cause::Confirmed, false, made));
        assert_eq!(made, ["pending: preparing", "pending: at provider"]);
        assert_eq!(state(moved, Cause::PaymentReceived, true, Some(true)), "in progress");
        let denied = state(OrderStatus::Cancelled, Cause::PaymentDenied, false, None);
        assert_eq!(denied, "cancelled: payment-denied");
        let holds = ["identity", "tax"].map(str::to_owned);
        let held = shown_state(moved, Cause::PaymentReceived, false, None, false, &holds);
        assert_eq!(held, "in progress: identity tax");
        let sent = shown_state(moved, Cause::CoinsSent, false, None, true, &[]);
        assert_eq!(sent, "in progress: sent");
    }
}
