//! The price on a checkout's page.

use maud::{Markup, html};
use rust_decimal::Decimal;

use super::stored::Checkout;
use crate::http::html::components::{Tone, countdown, money, note, time_in, toast};
use crate::http::language::Texts;
use crate::trading::price_terms::PriceTerm;
use crate::trading::quotes::create::View;
use crate::trading::quotes::limits::Reason;
use rampart_types::FeeBreakdown;

/// A wallet that the shopper is to check.
#[derive(Clone, Copy)]
pub(super) struct ShownWallet<'a> {
    pub(super) address: &'a str,
    /// Empty without one.
    pub(super) tag: &'a str,
}

/// The price of a quote with each fee, and what keeps it from being confirmed. A script renews it once
/// it has ended.
pub(super) fn of_quote(
    texts: Texts,
    checkout: &Checkout,
    wallet: Option<ShownWallet<'_>>,
    quote: &View,
) -> Markup {
    let catalogue = &checkout.client.catalogue;
    let format = |value: Decimal| catalogue.format_amount(value, &checkout.quote);
    let fees = FeeBreakdown {
        partner: quote.partner_fee.into(),
        provider: quote.provider_fee.into(),
        payment_method: quote.payment_method_cost.into(),
        network: quote.network_fee_cost.into(),
        spread: quote.spread_fee.into(),
        affiliate: Decimal::ZERO,
    };
    let crypto = catalogue.format_amount(quote.crypto_amount.into(), &checkout.base);
    let shop = &checkout.client.tenant.name;
    let price_terms = PriceTerm::all(catalogue, &checkout.quote, quote.price.into(), &fees);
    let price_terms: Vec<_> = price_terms.iter().map(|term| term.text(texts, shop)).collect();
    html! {
        (reasons(texts, &quote.quote_unconfirmable_reasons))
        dl {
            dt { (texts.get("term-pays")) }
            dd data-amount { strong { (money(&texts.amount(&format(quote.fiat_amount.into())))) } }
            dt { (texts.get("term-gets")) } dd data-amount { strong { (money(&texts.amount(&crypto))) } }
            @for (term, amount) in &price_terms { dt { (term) } dd { (money(amount)) } }
            dt { (texts.get("term-method")) } dd { (checkout.method_name(texts)) }
            dt { (texts.get("term-network")) } dd { (catalogue.network_name(&checkout.base)) }
            @if let Some(wallet) = wallet {
                dt { (texts.get("term-wallet")) } dd { code { (wallet.address) } }
                (tag_term(texts, wallet.tag))
            }
            dt { (texts.get("checkout-valid")) }
            dd { (time_in(texts, quote.expires_at)) " " (countdown(quote.expires_at)) }
        }
        @if quote.is_estimated_quote { p.hint { (texts.get("checkout-estimated")) } }
    }
}

/// The tag of a wallet, which coins need as much as its address; nothing without one.
pub(super) fn tag_term(texts: Texts, tag: &str) -> Markup {
    html! {
        @if !tag.is_empty() { dt { (texts.get("checkout-tag")) } dd { code { (tag) } } }
    }
}

/// The sentences that a script shows when a price has ended and there is no new one yet, and when a
/// new one differs.
pub(super) fn when_renewed(texts: Texts) -> Markup {
    html! {
        div hidden data-ended { (toast(Tone::Warning, &texts.get("checkout-price-ended"))) }
        div hidden data-changed { (toast(Tone::Warning, &texts.get("checkout-new-price"))) }
    }
}

/// True for a reason that does not refuse the confirm.
pub(super) const fn is_hint(reason: Reason) -> bool {
    matches!(reason, Reason::UserRegistrationNotCompleted)
}

fn reasons(texts: Texts, reasons: &[Reason]) -> Markup {
    let message = |reason| match reason {
        Reason::CurrencyLimitExceeded => "checkout-reason-currency",
        Reason::PaymentMethodLimitExceeded => "checkout-reason-method",
        Reason::PaymentMethodDisabled => "checkout-reason-method-disabled",
        Reason::UserLimitExceeded => "checkout-reason-user",
        Reason::UserRegistrationNotCompleted => "checkout-reason-registration",
    };
    html! {
        @for reason in reasons {
            @let tone = if is_hint(*reason) { Tone::Info } else { Tone::Bad };
            (note(tone, &html! { p { (texts.get(message(*reason))) } }))
        }
    }
}
