//! Acts carried out: reports of providers, and operators at their desk.

use std::sync::PoisonError;
use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::act::{Act, Again, Kind, Names, Report, Step};
use super::dice::Dice;
use super::trade::Trade;
use super::truth::{Fate, Outgoing};
use super::world::{Call, Caller, Heard, PARTNERS, World};

/// Number of an order that there is not.
const NO_ORDER: i64 = 1_000_000_000_000_007;
const EVENTS: &str = "/connectors/v1/events";
const PAYMENTS: &str = "/admin/v1/payments";

/// The moment at which an act is carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) round: usize,
    pub(crate) has_faults: bool,
}

/// Carries out the act of a round.
pub(crate) async fn perform(world: &World, trade: &Trade, moment: Moment) {
    let Some(act) = trade.script.get(moment.round) else { return };
    let round = u64::try_from(moment.round).unwrap();
    let mut dice = Dice::named(world.seed, "act", &[trade.index, round]);
    let desk = Desk { world, trade, moment, edge: dice.below(2) };
    match *act {
        Act::Nothing => {}
        Act::Report(report) => desk.report(&mut dice, report).await,
        Act::Again(which, how) => desk.again(&mut dice, which, how).await,
        Act::Event(event) => desk.event(&mut dice, event).await,
        Act::GiveBack(which, half) => desk.give_back(which, half).await,
        Act::Match(reference) => desk.match_to(&mut dice, reference).await,
        Act::ByHand(step, number, part) => desk.by_hand(step, number, part).await,
        Act::RefundByHand(number, part) => desk.refund_by_hand(number, part).await,
    }
}

struct Desk<'a> {
    world: &'a World,
    trade: &'a Trade,
    moment: Moment,
    edge: usize,
}

impl Desk<'_> {
    async fn report(&self, dice: &mut Dice, report: Report) {
        let Trade { id, is_sale, provider, currency, tenant, .. } = *self.trade;
        let (event, name) = match report.kind {
            Kind::Arrived if is_sale => ("deposit.received", "in"),
            Kind::Arrived => ("payment.received", "in"),
            Kind::Failed => ("payment.failed", "failed"),
            Kind::Refunded => ("payment.refunded", "back"),
            Kind::Disputed => ("payment.disputed", "dispute"),
            Kind::DisputeWon | Kind::DisputeLost => ("dispute.closed", "dispute"),
        };
        // Coins are not disputed.
        if is_sale && report.kind != Kind::Arrived {
            return;
        }
        let other = if is_sale { "BTC" } else { "USD" };
        let currency = if report.is_other_currency { other } else { currency };
        let by = match (report.is_by_other, provider) {
            (true, "cards") => "bank",
            (true, "bank") => "cards",
            _ => provider,
        };
        let round = self.moment.round;
        let mut body = json!({
            "id": format!("{id}-{round}"),
            "kind": event,
            "occurredAt": "2026-03-01T12:00:00Z",
            "partner": PARTNERS[tenant],
            "orderId": id,
            "providerReference": format!("{name}-{id}-{}", report.reference),
            "amount": number(self.trade.part(report.part)),
            if is_sale { "asset" } else { "currency" }: currency,
        });
        match report.kind {
            Kind::DisputeWon => body["outcome"] = json!("won"),
            Kind::DisputeLost => body["outcome"] = json!("lost"),
            Kind::Arrived if is_sale => {
                body["transactionId"] = body["providerReference"].clone();
                body["confirmations"] = json!(if dice.chance(10) { 0 } else { 12 });
                // The address tells the sale.
                if dice.chance(50) && report.names == Names::Order {
                    body["orderId"] = Value::Null;
                    body["address"] = self.trade.address.clone();
                }
            }
            _ => {}
        }
        match report.names {
            Names::Order => {}
            Names::Nobody => body["orderId"] = Value::Null,
            Names::OtherTenant => body["partner"] = json!(PARTNERS[1 - tenant]),
            Names::Unknown => body["orderId"] = json!(NO_ORDER),
        }
        let report = (by, body.clone());
        self.trade.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        tell(self.world, self.edge, by, &body, World::life(dice, self.moment.has_faults)).await;
    }

    async fn again(&self, dice: &mut Dice, which: u8, how: Again) {
        let earlier = {
            let reports = self.trade.reports.lock().unwrap_or_else(PoisonError::into_inner);
            let count = reports.len().max(1);
            reports.get(usize::from(which) % count).cloned()
        };
        let Some((by, mut body)) = earlier else { return };
        let round = self.moment.round;
        if matches!(how, Again::OtherId | Again::OtherAmount) {
            body["id"] = json!(format!("{}-{round}", self.trade.id));
        }
        if how == Again::OtherAmount {
            body["amount"] = json!(77);
        }
        if how == Again::OtherBody {
            body["reason"] = json!("another body");
            let call = Call::post(self.edge, Caller::Connector(by), EVENTS, body.clone());
            let life = World::life(dice, self.moment.has_faults);
            let ((status, answer), _) = self.world.insist(&call, life).await;
            if status != 409 {
                let violation = format!("{status} to another body of an event: {body} {answer}");
                self.world.violation(violation);
            }
            return;
        }
        tell(self.world, self.edge, by, &body, World::life(dice, self.moment.has_faults)).await;
    }

    async fn event(&self, dice: &mut Dice, event: &'static str) {
        let Trade { id, is_sale, .. } = *self.trade;
        if is_sale && matches!(event, "coins-sent" | "payment-denied") {
            return;
        }
        let mut body = json!({"event": event});
        let transaction = format!("hand-{id}-{}", self.moment.round);
        if event == "coins-sent" {
            body["transactionId"] = json!(transaction);
        }
        let path = format!("/admin/v1/orders/{id}/events");
        let call = Call::post(self.edge, Caller::Owner, path, body);
        // It is looked for in the answer whether coins have left by hand.
        let has_faults = self.moment.has_faults && event != "coins-sent";
        let heard = match event {
            "coins-sent" => Some(self.world.insist(&call, World::life(dice, false)).await.0),
            _ => self.world.call(&call, World::life(dice, has_faults)).await,
        };
        let Some((status, answer)) = heard else { return };
        self.expect(status, &answer, &[200, 409, 422], event);
        if event == "coins-sent"
            && let Some(amount) = self.recorded("manual", &format!("{id}/{transaction}")).await
        {
            self.sent_by_hand(&transaction, amount, "BTC");
        }
    }

    /// Coins or money that an operator has sent.
    fn sent_by_hand(&self, id: &str, amount: Decimal, currency: &str) {
        let outgoing = Outgoing {
            order: self.trade.id,
            amount,
            currency: currency.to_owned(),
            command: None,
            fate: Fate::Sent,
            round: self.moment.round,
            told_sent: true,
            told_arrived: false,
            told_failed: false,
        };
        self.world.truth.lock().outgoing.insert(id.to_owned(), outgoing);
    }

    async fn give_back(&self, which: u8, half: bool) {
        let found: Vec<(Uuid, Decimal)> = sqlx::query_as(
            "select p.payment_id, p.amount from payment p left join payment_match m using (payment_id) \
             where p.provider_reference like $1 and p.kind in ('received', 'deposit-received') \
             order by p.payment_id",
        )
        .bind(format!("%-{}-%", self.trade.id))
        .fetch_all(self.world.contexts[self.edge].db())
        .await
        .unwrap();
        let Some((payment, amount)) = found.get(usize::from(which)) else { return };
        let mut body = json!({"reason": "asked for"});
        if half {
            body["amount"] = number((amount / Decimal::TWO).round_dp(2).max(Decimal::new(1, 2)));
        }
        let path = format!("{PAYMENTS}/{payment}/refund");
        let call = Call::post(self.edge, Caller::Operator(0), path, body);
        let Some(heard) = self.world.call(&call, Duration::MAX).await else { return };
        self.expect(heard.0, &heard.1, &[200, 202, 409], "refund");
        let Some(approval) = heard.1["approval"].as_str() else { return };
        let path = format!("/admin/v1/approvals/{approval}/grant");
        let grant = Call::post(1 - self.edge, Caller::Operator(1), path, Value::Null);
        if let Some(heard) = self.world.call(&grant, Duration::MAX).await {
            self.expect(heard.0, &heard.1, &[204, 409], "grant");
        }
        if let Some(heard) = self.world.call(&call, Duration::MAX).await {
            self.expect(heard.0, &heard.1, &[200, 202, 409], "granted refund");
        }
    }

    async fn match_to(&self, dice: &mut Dice, reference: u8) {
        let id = self.trade.id;
        let db = self.world.contexts[self.edge].db();
        let found: Option<Uuid> = sqlx::query_scalar(
            "select payment_id from payment where provider_reference = $1 and kind in \
             ('received', 'deposit-received') limit 1",
        )
        .bind(format!("in-{id}-{reference}"))
        .fetch_optional(db)
        .await
        .unwrap();
        let Some(payment) = found else { return };
        let path = format!("{PAYMENTS}/{payment}/match");
        let call = Call::post(self.edge, Caller::Owner, path, json!({"orderId": id}));
        let life = World::life(dice, self.moment.has_faults);
        let Some((status, answer)) = self.world.call(&call, life).await else { return };
        self.expect(status, &answer, &[200, 409], "match");
        if status != 409 {
            return;
        }
        // An order is never pending again: if it is now, it has been all the time.
        let wanted: bool = sqlx::query_scalar(
            "select exists (select from payment p join \
                 (select order_id, status, fiat_currency as currency, 'received' as kind from buy_order \
                  union all select order_id, status, crypto_currency, 'deposit-received' from sell_order) o \
                 on o.currency = p.currency and o.kind = p.kind \
             where p.payment_id = $1 and o.order_id = $2 and o.status = 'pending' and p.suspense \
                 and p.order_id is distinct from $2 \
                 and not exists (select from payment_match m where m.payment_id = $1) \
                 and not exists (select from payment_refund r where r.payment_id = $1))",
        )
        .bind(payment)
        .bind(id)
        .fetch_one(db)
        .await
        .unwrap();
        if wanted {
            let violation = format!("order {id}: {payment} waits to be matched to it: {answer}");
            self.world.violation(violation);
        }
    }

    async fn by_hand(&self, step: Step, payout: u8, part: u16) {
        let Trade { id, is_sale, tenant, .. } = *self.trade;
        let transaction = format!("byhand-{id}-{payout}");
        let known = self.world.truth.lock().outgoing.get(&transaction).cloned();
        // Nobody can see the end of what was never sent, or is over.
        let sees = match (&known, step) {
            (None, Step::Sent) => true,
            (Some(known), Step::Arrived) => !known.told_failed,
            (Some(known), Step::Failed) => !known.told_failed && !known.told_arrived,
            _ => false,
        };
        if !sees {
            return;
        }
        let currency = match (is_sale, payout < 2) {
            (true, true) => "EUR",
            (true, false) => "USD",
            (false, true) => "BTC",
            (false, false) => "ETH",
        };
        let amount = match &known {
            Some(known) => known.amount,
            None => {
                let scale = if is_sale { 2 } else { 8 };
                (self.payout().await * Decimal::new(part.into(), 2)).round_dp(scale).normalize()
            }
        };
        let kind = match (step, is_sale) {
            (Step::Sent, false) => "payout-sent",
            (Step::Arrived, false) => "payout-confirmed",
            (Step::Failed, false) => "payout-failed",
            (Step::Sent, true) => "transfer-sent",
            (Step::Arrived, true) => "transfer-completed",
            (Step::Failed, true) => "transfer-returned",
        };
        let body = json!({"partner": PARTNERS[tenant], "kind": kind, "amount": number(amount),
            "currency": currency, "providerReference": transaction, "orderId": id,
            "reason": "by hand"});
        if self.record(body).await {
            if known.is_none() {
                self.sent_by_hand(&transaction, amount, currency);
            }
            let mut truth = self.world.truth.lock();
            truth.fact("manual", kind, &transaction, amount, currency);
            if let Some(known) = truth.outgoing.get_mut(&transaction) {
                match step {
                    Step::Sent => {}
                    Step::Arrived => known.told_arrived = true,
                    Step::Failed => (known.told_failed, known.fate) = (true, Fate::Failed),
                }
            }
        }
    }

    async fn refund_by_hand(&self, number_of: u8, part: u16) {
        let Trade { id, tenant, currency, .. } = *self.trade;
        let reference = format!("handback-{id}-{number_of}");
        let amount = self.trade.part(part);
        let body = json!({"partner": PARTNERS[tenant], "kind": "refunded", "amount": number(amount),
            "currency": currency, "providerReference": reference, "orderId": id,
            "reason": "by hand"});
        if self.record(body).await {
            let mut truth = self.world.truth.lock();
            truth.fact("manual", "refunded", &reference, amount, currency);
        }
    }

    /// Records a payment by hand, until it is answered. `false` for one that contradicts another.
    async fn record(&self, body: Value) -> bool {
        let call = Call::post(self.edge, Caller::Owner, PAYMENTS, body);
        let (heard, _) = self.world.insist(&call, Duration::MAX).await;
        self.expect(heard.0, &heard.1, &[200, 201, 409], "payment by hand");
        heard.0 != 409
    }

    /// Reads the amount that the order pays out, as it stands.
    async fn payout(&self) -> Decimal {
        let query = "select crypto_amount from buy_order where order_id = $1 union all \
                     select fiat_amount from sell_order where order_id = $1";
        let db = self.world.contexts[self.edge].db();
        sqlx::query_scalar(query).bind(self.trade.id).fetch_one(db).await.unwrap()
    }

    /// The amount of a payment, if it is recorded.
    async fn recorded(&self, connector: &str, reference: &str) -> Option<Decimal> {
        let query = "select amount from payment where connector = $1 and provider_reference = $2";
        let db = self.world.contexts[self.edge].db();
        let amount = sqlx::query_scalar(query).bind(connector).bind(reference);
        amount.fetch_optional(db).await.unwrap()
    }

    fn expect(&self, status: u16, answer: &Value, expected: &[u16], act: &str) {
        if !expected.contains(&status) {
            self.world.violation(format!("order {}: {act}: {status} {answer}", self.trade.id));
        }
    }
}

/// An amount as a JSON number.
pub(crate) fn number(amount: Decimal) -> Value {
    serde_json::from_str(&amount.normalize().to_string()).unwrap()
}

/// Reports an event until it is answered, and notes the fact.
pub(crate) async fn tell(
    world: &World,
    edge: usize,
    connector: &'static str,
    body: &Value,
    life: Duration,
) -> Heard {
    let call = Call::post(edge, Caller::Connector(connector), EVENTS, body.clone());
    let ((status, answer), again) = world.insist(&call, life).await;
    let mut truth = world.truth.lock();
    if status != 200 {
        truth.violations.push(format!("{status} to an event: {body} {answer}"));
        return (status, answer);
    }
    if again {
        match answer["duplicate"] == json!(true) {
            true => truth.cut_after += 1,
            false => truth.cut_before += 1,
        }
    }
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let kind = match text("kind") {
        "payment.received" => "received",
        "payment.refunded" => "refunded",
        "payment.disputed" => "disputed",
        "dispute.closed" if text("outcome") == "won" => "dispute-won",
        "dispute.closed" => "dispute-lost",
        "deposit.received" if body["confirmations"] != json!(0) => "deposit-received",
        "payout.confirmed" if body["confirmations"] != json!(0) => "payout-confirmed",
        "payout.failed" => "payout-failed",
        "transfer.completed" => "transfer-completed",
        "transfer.returned" => "transfer-returned",
        _ => return (status, answer),
    };
    let amount = body["amount"].to_string().parse().unwrap_or(Decimal::ZERO);
    let currency = if body["asset"].is_null() { text("currency") } else { text("asset") };
    truth.fact(connector, kind, text("providerReference"), amount, currency);
    (status, answer)
}
