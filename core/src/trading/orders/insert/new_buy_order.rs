//! A bought order, and the screening of its wallet, as values of the composite types
//! `new_priced_order` and `new_wallet_screening`.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::Postgres;
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};
use uuid::Uuid;

use super::statement::{Bounded, NewOrderRow};
use crate::endpoint::SavedAnswer;
use crate::money::connectors::commands::SealedCommand;
use crate::money::connectors::screening::{Decision, SealedScreening};
use crate::trading::pricing::FeeRules;

/// Name of an order's type in the database.
const TYPE: &str = "new_priced_order";
/// Name of the type of a wallet's screening.
const SCREENING_TYPE: &str = "new_wallet_screening";

/// The attributes of an order that the statement takes, in the order of `new_priced_order`.
#[derive(sqlx::Encode)]
pub(super) struct NewBuyOrder<'a> {
    client_id: Uuid,
    order_id: i64,
    created_at: DateTime<Utc>,
    offer_id: Option<Uuid>,
    quote_id: Uuid,
    quote_expires_at: DateTime<Utc>,
    quote_sealed_at: DateTime<Utc>,
    quote_revision: i64,
    user_id: Option<Uuid>,
    account_id: Option<Uuid>,
    side_max: Option<Decimal>,
    day_max: Option<Decimal>,
    partner_reference: Option<&'a str>,
    status: &'a str,
    status_cause: &'a str,
    pair: &'a str,
    country: Option<&'a str>,
    payment_method: &'a str,
    wallet_address: &'a str,
    destination_tag: Option<&'a str>,
    wallet_type: &'a str,
    fiat_amount: Decimal,
    fiat_currency: &'a str,
    limit_amount: Option<Decimal>,
    crypto_amount: Decimal,
    crypto_currency: &'a str,
    price: Decimal,
    partner_fee: Decimal,
    partner_fee_percentage: Decimal,
    provider_fee: Decimal,
    payment_method_fee: Decimal,
    network_fee: Decimal,
    spread_fee: Decimal,
    affiliate_fee: Decimal,
    fee_rules: Option<&'a [u8]>,
    is_estimated_quote: bool,
    is_dca_order: bool,
    return_url: Option<&'a str>,
    callback_url: Option<&'a str>,
    terms_digest: &'a [u8],
    policy_decisions: &'a Value,
    expires_at: Option<DateTime<Utc>>,
    transition_id: Uuid,
    event_id: Uuid,
    event_type: &'a str,
    payload: &'a Value,
    traceparent: Option<&'a str>,
    tracestate: Option<&'a str>,
    command_id: Option<Uuid>,
    command_kind: Option<&'a str>,
    command_key: Option<&'a str>,
    command_connector: Option<&'a str>,
    command_direction: Option<&'a str>,
    command_method: Option<&'a str>,
    command_asset: Option<&'a str>,
    command_body: Option<&'a [u8]>,
    command_state: Option<&'a str>,
    command_delay_ms: Option<i64>,
    command_report_ms: Option<i64>,
    key_route: Option<&'a str>,
    key: Option<&'a str>,
    key_claim: Option<Uuid>,
    answer_status: Option<i16>,
    answer_body: Option<&'a [u8]>,
}

impl sqlx::Type<Postgres> for NewBuyOrder<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name(TYPE)
    }
}

impl PgHasArrayType for NewBuyOrder<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of(TYPE)
    }
}

impl<'a> NewBuyOrder<'a> {
    /// The value of this order.
    pub(super) fn new(row: &Bounded<'a, NewOrderRow>) -> Self {
        let Bounded { order, bounds } = *row;
        let (quoted, command, answer) =
            (&order.quoted, order.command.as_ref(), order.answer.as_ref());
        Self {
            client_id: order.client_id,
            order_id: order.order_id,
            created_at: order.created_at,
            offer_id: order.offer_id,
            quote_id: quoted.quote_id,
            quote_expires_at: order.quote_expires_at,
            quote_sealed_at: quoted.quote_sealed_at,
            quote_revision: quoted.quote_revision,
            user_id: order.user_id,
            account_id: order.account_id,
            side_max: bounds.map(|bounds| bounds.side_max),
            day_max: bounds.map(|bounds| bounds.day_max),
            partner_reference: order.partner_reference.as_deref(),
            status: order.status,
            status_cause: order.status_cause,
            pair: &quoted.pair,
            country: order.country.as_deref(),
            payment_method: &quoted.payment_method,
            wallet_address: &order.wallet_address,
            destination_tag: order.destination_tag.as_deref(),
            wallet_type: order.wallet_type,
            fiat_amount: quoted.fiat_amount,
            fiat_currency: &quoted.fiat_currency,
            limit_amount: quoted.limit_amount,
            crypto_amount: quoted.crypto_amount,
            crypto_currency: &quoted.crypto_currency,
            price: quoted.price,
            partner_fee: quoted.partner_fee,
            partner_fee_percentage: quoted.partner_fee_percentage,
            provider_fee: quoted.provider_fee,
            payment_method_fee: quoted.payment_method_fee,
            network_fee: quoted.network_fee,
            spread_fee: quoted.spread_fee,
            affiliate_fee: quoted.affiliate_fee,
            fee_rules: quoted.fee_rules.as_ref().map(FeeRules::as_bytes),
            is_estimated_quote: order.is_estimated_quote,
            is_dca_order: order.is_dca_order,
            return_url: order.return_url.as_deref(),
            callback_url: order.callback_url.as_deref(),
            terms_digest: &order.terms_digest,
            policy_decisions: &order.policy_decisions,
            expires_at: order.expires_at,
            transition_id: order.transition_id,
            event_id: order.event_id,
            event_type: order.event_type,
            payload: &order.payload,
            traceparent: order.trace.traceparent.as_deref(),
            tracestate: order.trace.tracestate.as_deref(),
            command_id: command.map(SealedCommand::id),
            command_kind: command.map(|command| command.kind),
            command_key: command.map(|command| command.idempotency_key.as_str()),
            command_connector: command.and_then(|command| command.connector.as_deref()),
            command_direction: command.and_then(|command| command.direction),
            command_method: command.and_then(|command| command.method.as_deref()),
            command_asset: command.and_then(|command| command.asset.as_deref()),
            command_body: command.and_then(|command| command.sealed_body.as_deref()),
            command_state: command.map(|command| command.state),
            command_delay_ms: command.map(|command| command.delay_ms),
            command_report_ms: command.and_then(|command| command.report_ms),
            key_route: answer.map(|answer| answer.key_route),
            key: answer.map(|answer| answer.key.as_str()),
            key_claim: answer.map(|answer| answer.key_claim),
            answer_status: answer.map(|answer| answer.answer_status),
            answer_body: answer.map(SavedAnswer::body),
        }
    }
}

/// The attributes of the screening of an order's wallet and of its command, in the order of
/// `new_wallet_screening`.
#[derive(sqlx::Encode)]
pub(super) struct NewWalletScreening<'a> {
    client_id: Uuid,
    order_id: i64,
    screening_id: Uuid,
    decision: Option<&'a str>,
    command_id: Uuid,
    idempotency_key: &'a str,
    connector: Option<&'a str>,
    sealed_body: Option<&'a [u8]>,
    sealed_result: Option<&'a [u8]>,
    state: &'a str,
    delay_ms: i64,
}

impl sqlx::Type<Postgres> for NewWalletScreening<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name(SCREENING_TYPE)
    }
}

impl PgHasArrayType for NewWalletScreening<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of(SCREENING_TYPE)
    }
}

impl<'a> NewWalletScreening<'a> {
    /// The value of the screening that is written beside this order, if there is one.
    pub(super) fn of(order: &'a NewOrderRow) -> Option<Self> {
        let SealedScreening { id, command, decision } = order.screening.as_ref()?;
        Some(Self {
            client_id: order.client_id,
            order_id: order.order_id,
            screening_id: *id,
            decision: decision.map(Decision::as_str),
            command_id: command.id(),
            idempotency_key: &command.idempotency_key,
            connector: command.connector.as_deref(),
            sealed_body: command.sealed_body.as_deref(),
            sealed_result: command.sealed_result.as_deref(),
            state: command.state,
            delay_ms: command.delay_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    /// Words that begin the lines after `start`, up to the one that begins with `end`.
    fn names<'t>(text: &'t str, start: &str, end: char) -> Vec<&'t str> {
        let after = text.split_once(start).unwrap().1;
        let lines = after.lines().skip(1).map(str::trim).take_while(|line| !line.starts_with(end));
        lines.map(|line| line.split([' ', ':']).next().unwrap()).collect()
    }

    #[test]
    fn the_fields_are_the_attributes_of_the_types_in_their_order() {
        let order = include_str!("../../../../../migrations/0561_new_priced_order.sql");
        let screening = include_str!("../../../../../migrations/0553_new_wallet_screening.sql");
        let source = include_str!("new_buy_order.rs");
        for (migration, name, fields, count) in [
            (order, "new_priced_order", "NewBuyOrder", 64),
            (screening, "new_wallet_screening", "NewWalletScreening", 11),
        ] {
            let attributes = names(migration, &format!("create type {name} as ("), ')');
            let fields = names(source, &format!("pub(super) struct {fields}<'a> {{"), '}');
            assert_eq!(fields.len(), count);
            assert_eq!(fields, attributes);
        }
    }
}
