//! Reasons that an order is not completed, and the party that can act on them.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::status::{Cause, OrderStatus};
use super::{Order, WalletType};
use crate::users::account::Statuses;

/// Amount in euros above which the user must prove to own an unhosted wallet (Regulation (EU)
/// 2023/1113, article 14(5)). Pairs are quoted in euros; the same number applies to any other fiat
/// currency.
const UNPROVEN_WALLET_MAX: Decimal = Decimal::ONE_THOUSAND;

/// A reason, as the API document has it.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "OrderNotCompletedReason")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reason {
    code: &'static str,
    description: String,
    solution: &'static str,
    user_action_required: bool,
    support_action_required: bool,
    /// Page on which the user can act, if the user can.
    url: Option<String>,
}

impl Reason {
    /// The reason in words.
    pub(crate) fn into_description(self) -> String {
        self.description
    }
}

/// The reasons of an order; none once it is final. `page_url` is the order's page, on which its
/// user can act; `user` has the results of the user's checks.
pub(super) fn reasons(order: &Order, user: &Statuses, page_url: &str) -> Vec<Reason> {
    if order.status.is_final() {
        return Vec::new();
    }
    let blocked = (order.status == OrderStatus::Blocked)
        .then(|| blocked(order.cause, order.reason.as_deref()));
    let unproven = is_unproven(order).then(|| Reason {
        code: "021",
        description: "The wallet is unhosted and the amount is above 1000 EUR.".to_owned(),
        solution: "The user proves to own the wallet, or chooses a hosted one.",
        user_action_required: true,
        support_action_required: false,
        url: Some(page_url.to_owned()),
    });
    blocked.into_iter().chain(unproven).chain(incomplete_checks(user, Some(page_url))).collect()
}

/// Checks that the user has not passed yet. Tax residency counts only if it is `missing`.
pub(crate) fn incomplete_checks(
    user: &Statuses,
    page_url: Option<&str>,
) -> impl Iterator<Item = Reason> + use<> {
    let reason = |code, description: &str, solution| Reason {
        code,
        description: description.to_owned(),
        solution,
        user_action_required: true,
        support_action_required: false,
        url: page_url.map(str::to_owned),
    };
    let all = [
        (
            user.identity != "verified",
            reason(
                "011",
                "The user's identity is not verified.",
                "The user shows an identity document.",
            ),
        ),
        (
            user.amld5 != "verified",
            reason(
                "012",
                "The AMLD5 questions are not answered.",
                "The user answers the questions.",
            ),
        ),
        (
            user.dac8 == "missing",
            reason(
                "013",
                "The DAC8 declaration is missing.",
                "The user declares the tax residency.",
            ),
        ),
    ];
    all.into_iter().filter_map(|(open, reason)| open.then_some(reason))
}

fn is_unproven(order: &Order) -> bool {
    order.wallet_type == WalletType::Unhosted && order.fiat.amount > UNPROVEN_WALLET_MAX
}

/// The reason of a blocked order, by the cause of its status and the operator's words.
pub(crate) fn blocked(cause: Cause, words: Option<&str>) -> Reason {
    let (code, description) = match cause {
        Cause::PaymentLate => ("031", "The payment arrived after the order's time to pay."),
        Cause::PaymentAmountWrong => ("032", "Another amount than the order's was paid."),
        Cause::PriceMoved => ("033", "The price has moved too far before the payment arrived."),
        _ => ("041", "The order is on hold."),
    };
    let description = match words {
        Some(words) => format!("{description} ({words})"),
        None => description.to_owned(),
    };
    Reason {
        code,
        description,
        solution: "Support releases the order or gives the payment back.",
        user_action_required: false,
        support_action_required: true,
        url: None,
    }
}
