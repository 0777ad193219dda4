//! Why an order is not completed, and who can do something about it.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::status::{Cause, OrderStatus};
use super::{Order, WalletType};
use crate::users::account::Statuses;

/// Above this amount in euros an unhosted wallet needs a proof that it is the user's (Regulation
/// (EU) 2023/1113, article 14(5)). Euro is what pairs are quoted in; another fiat currency is
/// held to the same number.
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
    /// Where the user can act, if it is up to the user.
    url: Option<String>,
}

/// What keeps the order from completing; nothing once it is final. `page_url` is the order's page,
/// where its user can act; `user` is what the user has shown.
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
    blocked.into_iter().chain(unproven).chain(unshown(user, Some(page_url))).collect()
}

/// What the user has not shown yet. Of tax residency, only `missing` asks the user for it.
pub(crate) fn unshown(
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

/// Why an order is blocked, by what blocked it and the operator's words for that.
pub(crate) fn blocked(cause: Cause, words: Option<&str>) -> Reason {
    let (code, description) = match cause {
        Cause::PaymentLate => ("031", "The payment arrived after the order's time to pay."),
        Cause::PaymentAmountWrong => ("032", "Another amount than the order's was paid."),
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
