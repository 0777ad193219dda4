//! The connectors: they lease commands, carry them out at a simulated chain, bank or card provider,
//! crash at every step, lie after they have lost a lease, and tell what has come of it.

use std::time::Duration;

use http::Method;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::desk::{Moment, tell};
use super::dice::Dice;
use super::truth::{Fate, Outgoing};
use super::world::{Call, Caller, World};

/// Commands of one lease.
const LEASED_MAX: u32 = 20;

/// A connector at work on one edge for one round.
#[derive(Clone, Copy)]
pub(crate) struct Provider<'a> {
    pub(crate) world: &'a World,
    pub(crate) name: &'static str,
    pub(crate) edge: usize,
    pub(crate) moment: Moment,
    /// It does what it should, so that everything ends.
    pub(crate) is_faithful: bool,
}

/// A connector's conduct with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Do,
    Retry,
    Reject,
    /// Leases it and is gone.
    Crash,
    /// Is gone once the checkpoint is stored.
    CrashBefore,
    /// Is gone once the effect is there.
    CrashAfter,
    /// Loses its lease, and says something all the same.
    Lie,
}

impl Provider<'_> {
    /// Leases commands and carries them out.
    pub(crate) async fn serve(self) {
        let round = u64::try_from(self.moment.round).unwrap();
        let edge = u64::try_from(self.edge).unwrap();
        let mut dice = Dice::named(self.world.seed, self.name, &[round, edge]);
        let lease = json!({"max": LEASED_MAX, "waitSeconds": 0, "leaseSeconds": 60});
        let call = self.call(Method::POST, "lease".to_owned(), lease);
        let life = World::life(&mut dice, self.moment.has_faults);
        let Some((200, leased)) = self.world.call(&call, life).await else { return };
        for command in leased.as_array().into_iter().flatten() {
            self.carry_out(command).await;
        }
    }

    fn call(&self, method: Method, path: String, body: Value) -> Call {
        let path = format!("/connectors/v1/commands/{path}");
        Call { edge: self.edge, caller: Caller::Connector(self.name), method, path, body }
    }

    fn dice(&self, command: &Value) -> Dice {
        let order = command["body"]["orderId"].as_i64().unwrap_or_default();
        let attempt = command["attempt"].as_u64().unwrap_or_default();
        let kind = command["kind"].as_str().unwrap_or_default();
        Dice::named(self.world.seed, kind, &[self.world.index(order), attempt])
    }

    async fn carry_out(&self, command: &Value) {
        let mut dice = self.dice(command);
        let kind = command["kind"].as_str().unwrap_or_default();
        if matches!(kind, "payout.send" | "transfer.send") {
            return self.pay_out(command, &mut dice).await;
        }
        let conduct = match self.is_faithful || kind == "deposit.address" {
            true => Conduct::Do,
            false => dice.weigh(&[
                (82, Conduct::Do),
                (5, Conduct::Retry),
                (3, Conduct::Reject),
                (5, Conduct::Crash),
                (5, Conduct::Lie),
            ]),
        };
        let result = match kind {
            "payment.create" => json!({"redirectUrl": "https://psp.example/pay",
                "providerReference": format!("session-{}", text(command, "id"))}),
            "deposit.address" => self.addresses(command),
            "screening.check" => {
                let decision = dice.weigh(&[(75, "clear"), (17, "review"), (8, "block")]);
                json!({"decision": decision, "reasons": ["simulated"]})
            }
            _ => json!({}),
        };
        match conduct {
            Conduct::Retry => self.undone(command, "retry", &mut dice).await,
            Conduct::Reject => self.undone(command, "rejected", &mut dice).await,
            Conduct::Lie => self.lie(command, &mut dice).await,
            Conduct::Do => {
                let is_done = self.report(command, "done", result, &mut dice).await == 200;
                if is_done && kind == "payment.refund" {
                    self.tell_refund(command, &mut dice).await;
                }
            }
            _ => {}
        }
    }

    /// The conduct with a payout, whose transaction may be stored already.
    fn payout_conduct(&self, has_checkpoint: bool, dice: &mut Dice) -> Conduct {
        match (self.is_faithful, has_checkpoint) {
            (true, _) => Conduct::Do,
            // It may have been sent: there is no way back.
            (_, true) => dice.weigh(&[(75, Conduct::Do), (25, Conduct::CrashAfter)]),
            _ => dice.weigh(&[
                (60, Conduct::Do),
                (8, Conduct::Retry),
                (5, Conduct::Reject),
                (4, Conduct::Crash),
                (8, Conduct::CrashBefore),
                (10, Conduct::CrashAfter),
                (5, Conduct::Lie),
            ]),
        }
    }

    /// Sends coins or money: stores which transaction it will be, sends it, and says so.
    async fn pay_out(&self, command: &Value, dice: &mut Dice) {
        let checkpoint = command["checkpoint"]["transaction"].as_str();
        let conduct = self.payout_conduct(checkpoint.is_some(), dice);
        self.check_owed(command);
        let transaction = match checkpoint {
            Some(transaction) => transaction.to_owned(),
            None => format!("tx-{}-{}", text(command, "id"), command["attempt"]),
        };
        match conduct {
            Conduct::Crash => return,
            Conduct::Lie => return self.lie(command, dice).await,
            Conduct::Retry => return self.undone(command, "retry", dice).await,
            Conduct::Reject => return self.undone(command, "rejected", dice).await,
            _ => {}
        }
        let body = json!({"leaseToken": command["leaseToken"],
            "checkpoint": {"transaction": transaction}});
        let path = format!("{}/checkpoint", text(command, "id"));
        let call = self.call(Method::PUT, path, body);
        let life = World::life(dice, self.moment.has_faults);
        let ((status, _), _) = self.world.insist(&call, life).await;
        if status != 200 || conduct == Conduct::CrashBefore {
            return;
        }
        let is_coins = command["kind"] == "payout.send";
        let body = &command["body"];
        let outgoing = Outgoing {
            order: body["orderId"].as_i64().unwrap(),
            amount: body["amount"].to_string().parse().unwrap(),
            currency: body[if is_coins { "asset" } else { "currency" }]
                .as_str()
                .unwrap()
                .to_owned(),
            command: Some(text(command, "id").to_owned()),
            fate: Fate::Sent,
            round: self.moment.round,
            told_sent: false,
            told_arrived: false,
            told_failed: false,
        };
        let (amount, currency) = (outgoing.amount, outgoing.currency.clone());
        self.world.truth.lock().send(&transaction, outgoing);
        if conduct == Conduct::CrashAfter {
            return;
        }
        let result = json!({"transactionId": transaction, "providerReference": transaction});
        if self.report(command, "done", result, dice).await == 200 {
            let mut truth = self.world.truth.lock();
            let kind = if is_coins { "payout-sent" } else { "transfer-sent" };
            truth.fact(self.name, kind, &transaction, amount, &currency);
            if let Some(sent) = truth.outgoing.get_mut(&transaction) {
                sent.told_sent = true;
            }
        }
    }

    /// Checks that a payout that was just commanded was not made by hand before.
    fn check_owed(&self, command: &Value) {
        let body = &command["body"];
        let order = body["orderId"].as_i64().unwrap();
        let amount: Decimal = body["amount"].to_string().parse().unwrap();
        let currency = body["asset"].as_str().or(body["currency"].as_str()).unwrap_or_default();
        let mut truth = self.world.truth.lock();
        let by_hand = truth.paid_by_hand(order, currency, self.moment.round);
        if command["attempt"] == 1 && by_hand >= amount {
            truth.violations.push(format!("order {order}: paid by hand, and commanded then"));
        }
    }

    /// Reports a result until it is answered, and gives the status.
    async fn report(&self, command: &Value, outcome: &str, result: Value, dice: &mut Dice) -> u16 {
        let mut body = json!({"leaseToken": command["leaseToken"], "outcome": outcome,
            "result": result});
        if outcome == "retry" {
            body["retryAfterSeconds"] = json!(0);
        }
        let call = self.call(Method::POST, format!("{}/result", text(command, "id")), body);
        let life = World::life(dice, self.moment.has_faults);
        let ((status, answer), _) = self.world.insist(&call, life).await;
        if status != 200 && status != 409 {
            self.world.violation(format!("{status} to a result of {command}: {answer}"));
        }
        status
    }

    /// Says that nothing was done.
    async fn undone(&self, command: &Value, outcome: &str, dice: &mut Dice) {
        self.report(command, outcome, Value::Null, dice).await;
    }

    /// Loses the lease, and says that all is done.
    async fn lie(&self, command: &Value, dice: &mut Dice) {
        let id: uuid::Uuid = text(command, "id").parse().unwrap();
        sqlx::query(
            "update command set leased_until = now() - interval '1 second' \
                     where command_id = $1 and lease_token = $2",
        )
        .bind(id)
        .bind(text(command, "leaseToken").parse::<uuid::Uuid>().unwrap())
        .execute(self.world.contexts[self.edge].db())
        .await
        .unwrap();
        let outcome = dice.pick(&["done", "rejected", "retry"]);
        let lie = json!({"transactionId": "never-sent"});
        let status = self.report(command, outcome, lie, dice).await;
        if status == 200 {
            self.world.violation(format!("a result without a lease is accepted: {command}"));
        }
    }

    fn addresses(&self, command: &Value) -> Value {
        let seed = text(command, "id")
            .bytes()
            .map(u64::from)
            .fold(3, |sum, byte| u64::wrapping_mul(sum, 31) ^ byte);
        let mut dice = Dice::new(seed, &[]);
        let count = command["body"]["count"].as_u64().unwrap();
        (0..count)
            .map(|_| {
                let (high, low) = (dice.next(), dice.next());
                json!({"address": format!("0x{high:016x}{low:016x}{:08x}", dice.next() >> 32)})
            })
            .collect()
    }

    async fn tell_refund(&self, command: &Value, dice: &mut Dice) {
        let body = &command["body"];
        let partner: Option<String> = sqlx::query_scalar(
            "select c.slug from payment p join client c using (client_id) \
             where p.connector = $1 and p.provider_reference = $2 and p.kind = 'received'",
        )
        .bind(self.name)
        .bind(text(body, "providerReference"))
        .fetch_optional(self.world.contexts[self.edge].db())
        .await
        .unwrap();
        let reference = format!("refund-{}", text(command, "id"));
        let event = json!({
            "id": reference,
            "kind": "payment.refunded",
            "occurredAt": "2026-03-01T12:00:00Z",
            "partner": partner.filter(|slug| slug != "house"),
            "orderId": body["orderId"],
            "providerReference": reference,
            "amount": body["amount"],
            "currency": body["currency"],
        });
        let life = World::life(dice, self.moment.has_faults);
        tell(self.world, self.edge, self.name, &event, life).await;
    }

    /// Tells the ends of what was sent.
    pub(crate) async fn tell_ends(self) {
        let mine = match self.name {
            "bank" => "EUR",
            "chain" => "BTC",
            _ => return,
        };
        let open: Vec<(String, Outgoing)> = {
            let mut truth = self.world.truth.lock();
            let open = truth.outgoing.iter_mut().filter(|(_, one)| {
                one.command.is_some()
                    && one.currency == mine
                    && !(one.told_arrived || one.told_failed)
                    && (one.round < self.moment.round || self.is_faithful)
            });
            open.filter_map(|(id, one)| {
                let path = [self.world.index(one.order), u64::try_from(self.moment.round).unwrap()];
                let mut dice = Dice::named(self.world.seed, "fate", &path);
                if one.fate == Fate::Sent && (self.is_faithful || dice.chance(40)) {
                    let fails = one.told_sent && !self.is_faithful && dice.chance(15);
                    one.fate = if fails { Fate::Failed } else { Fate::Arrived };
                }
                (one.fate != Fate::Sent).then(|| (id.clone(), one.clone()))
            })
            .collect()
        };
        for (id, outgoing) in open {
            self.tell_end(&id, &outgoing).await;
        }
    }

    async fn tell_end(&self, id: &str, outgoing: &Outgoing) {
        let path = [self.world.index(outgoing.order), u64::try_from(self.moment.round).unwrap()];
        let mut dice = Dice::named(self.world.seed, "end", &path);
        let is_coins = self.name == "chain";
        let has_arrived = outgoing.fate == Fate::Arrived;
        let kind = match (is_coins, has_arrived) {
            (true, true) => "payout.confirmed",
            (true, false) => "payout.failed",
            (false, true) => "transfer.completed",
            (false, false) => "transfer.returned",
        };
        let mut event = json!({
            "id": format!("{kind}-{id}"),
            "kind": kind,
            "occurredAt": "2026-03-01T12:00:00Z",
            "commandId": outgoing.command,
            "providerReference": id,
            "transactionId": id,
            "amount": super::desk::number(outgoing.amount),
            if is_coins { "asset" } else { "currency" }: outgoing.currency,
        });
        if kind == "payout.confirmed" {
            if dice.chance(20) {
                let mut early = event.clone();
                (early["id"], early["confirmations"]) = (json!(format!("early-{id}")), json!(0));
                let life = World::life(&mut dice, false);
                tell(self.world, self.edge, self.name, &early, life).await;
            }
            event["confirmations"] = json!(6);
        }
        for _ in 0..1 + usize::from(dice.chance(25)) {
            let life = World::life(&mut dice, self.moment.has_faults);
            let (status, _) = tell(self.world, self.edge, self.name, &event, life).await;
            if let (200, Some(known)) = (status, self.world.truth.lock().outgoing.get_mut(id)) {
                match has_arrived {
                    true => known.told_arrived = true,
                    false => known.told_failed = true,
                }
            }
        }
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// Ends leases whose connector is gone: half of them, or all.
pub(crate) async fn end_leases(world: &World, all: bool) {
    let query = "update command set leased_until = now() - interval '1 second' \
                 where state = 'open' and leased_until > now() and ($1 or random() < 0.5)";
    sqlx::query(query).bind(all).execute(world.contexts[0].db()).await.unwrap();
}

/// An operator decides about the wallets that wait for one; with `all`, in favour of all.
pub(crate) async fn decide_screenings(world: &World, moment: Moment, all: bool) {
    let states = if all { &["review", "block"][..] } else { &["review"] };
    for state in states {
        let path = format!("/admin/v1/screenings?state={state}&limit=100");
        let call =
            Call { edge: 1, caller: Caller::Owner, method: Method::GET, path, body: Value::Null };
        let Some((_, list)) = world.call(&call, Duration::MAX).await else { continue };
        for screening in list.as_array().into_iter().flatten() {
            let order = screening["orderId"].as_i64().unwrap_or_default();
            let path = [world.index(order), u64::try_from(moment.round).unwrap()];
            let mut dice = Dice::named(world.seed, "screening", &path);
            if !all && dice.chance(50) {
                continue;
            }
            let decision = if all || dice.chance(70) { "clear" } else { "block" };
            let body = json!({"decision": decision, "reason": "looked at"});
            let path = format!("/admin/v1/screenings/{}/decision", text(screening, "id"));
            let call = Call::post(0, Caller::Operator(1), path, body);
            if let Some((status, answer)) = world.call(&call, Duration::MAX).await
                && ![200, 409].contains(&status)
            {
                world.violation(format!("{status} to a screening's decision: {answer}"));
            }
        }
    }
}
