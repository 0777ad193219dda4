//! HTML of the checkout's page, step by step.

use http::StatusCode;
use maud::{Markup, html};

use super::price::{ShownWallet, is_hint, of_quote, tag_term, when_renewed};
use super::purchase::{LANGUAGE, Purchase};
use super::resume;
use super::shopper::Shopper;
use super::stored::Checkout;
use crate::http::form::Form;
use crate::http::html::components::{Field, address, field, money, time_in};
use crate::http::html::form_errors::FormErrors;
use crate::http::html::steps::{Step, stepper};
use crate::http::html::{Page, PageScripts, back_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::platform::error::{Code, Refusal};
use crate::platform::settings::Pages;
use crate::trading::catalogue::Crypto;
use crate::trading::quotes::create::View;
use crate::users::account_pages::sign_in::{forms, refusal_text};
use crate::users::account_pages::sign_in_page::SignInPage;
use rampart_types::TagKind;

/// Our script: a sign-in may need a passkey, and a price that ends is renewed.
const SCRIPT: &str = concat!(
    include_str!("../../http/html/page.js"),
    include_str!("../../http/html/passkey.js"),
    include_str!("price.js"),
);

/// Inputs that the last step carries along.
const CARRIED: [&str; 4] = ["amount", LANGUAGE, "wallet", "tag"];

/// The reader's language, and the settings of pages.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) texts: Texts,
    pub(super) settings: &'a Pages,
}

/// A purchase as it is shown.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) purchase: Purchase<'a>,
    /// The shopper as forms carry it; empty unless the shopper has signed in.
    pub(super) sealed: &'a str,
    pub(super) errors: &'a FormErrors,
    pub(super) note: &'a Markup,
}

/// The step that the shopper is at.
#[derive(Clone, Copy)]
enum At {
    Account,
    Details,
    Confirm,
}

/// The first step: the shopper signs in or registers, `form` if that has another step.
pub(super) fn account(
    look: Look<'_>,
    status: StatusCode,
    checkout: &Checkout,
    note: &Markup,
    form: Option<&Markup>,
) -> Reply {
    let texts = look.texts;
    let page = SignInPage::new(&checkout.client, texts, look.settings);
    let body = html! {
        (steps(texts, At::Account))
        (terms(texts, checkout, true))
        @if Shopper::initial(checkout) == Shopper::Unknown {
            p { (texts.get("checkout-account-intro")) }
        }
        (note)
        @if let Some(form) = form { (form) } @else { (forms(page, None)) }
    };
    render(look, status, checkout, "checkout-title", &body)
}

/// The second step: amount and wallet, as far as the partner has left them open, with the price of the
/// amount.
pub(super) fn details(
    look: Look<'_>,
    status: StatusCode,
    shown: Shown<'_>,
    quote: Option<&View>,
) -> Reply {
    let Shown { purchase, sealed, errors, note } = shown;
    let Purchase { checkout, shopper, texts, form } = purchase;
    let at_once = purchase.is_at_once();
    let button = if at_once { "checkout-buy-now" } else { "checkout-continue" };
    let body = html! {
        (steps(texts, At::Details))
        p { (texts.get("checkout-intro")) }
        (note)
        (errors.summary(texts))
        (terms(texts, checkout, false))
        div data-quote {
            @if let Some(quote) = quote {
                (of_quote(texts, checkout, None, quote))
                @if at_once {
                    // The price that a purchase without another step is made at.
                    input type="hidden" name="quote" value=(quote.token()) form="details";
                    @let amount = purchase.shown_amount();
                    input type="hidden" name="quoted" value=(amount) form="details";
                }
            } @else {
                (amounts(texts, checkout))
            }
        }
        (when_renewed(texts))
        form #details method="post" data-renew="change" {
            input type="hidden" name="shopper" value=(sealed);
            (amount_input(purchase, errors))
            (wallet_inputs(texts, checkout, form, errors))
            @if at_once {
                (consent(texts, checkout, errors))
            }
            button.main type="submit" name="action" value="quote" { (texts.get(button)) }
            (link_button(texts, shopper, resume::Step::Details))
            @if shopper == Shopper::Guest {
                button type="submit" name="action" value="account" formnovalidate {
                    (texts.get("checkout-have-account"))
                }
            }
        }
    };
    render(look, status, checkout, "checkout-title", &body)
}

/// The third step: the quote with its fees.
pub(super) fn confirmation(look: Look<'_>, shown: Shown<'_>, quote: &View) -> Reply {
    let Shown { purchase, sealed, errors, note } = shown;
    let Purchase { checkout, shopper, texts, form } = purchase;
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let refused = quote.quote_unconfirmable_reasons.iter().any(|reason| !is_hint(*reason));
    let wallet = match checkout.wallet_address {
        Some(_) => partners_wallet(checkout),
        None => Some(ShownWallet { address: form.get("wallet"), tag: form.get("tag").trim() }),
    };
    let body = html! {
        (steps(texts, At::Confirm))
        (note)
        (errors.summary(texts))
        // With the price the quote is renewed.
        div data-quote {
            (of_quote(texts, checkout, wallet, quote))
            input type="hidden" name="quote" value=(quote.token()) form="confirm";
        }
        (when_renewed(texts))
        noscript { p.hint { (texts.get("checkout-price-ends")) } }
        form #confirm method="post" {
            input type="hidden" name="shopper" value=(sealed);
            @for name in CARRIED {
                input type="hidden" name=(name) value=(form.get(name));
            }
            @if !refused {
                (consent(texts, checkout, errors))
                button.main type="submit" name="action" value="confirm" {
                    (texts.get("checkout-confirm"))
                }
            }
        }
        form method="post" data-renew="quote" {
            input type="hidden" name="shopper" value=(sealed);
            @for name in CARRIED {
                input type="hidden" name=(name) value=(form.get(name));
            }
            button type="submit" name="action" value="quote" { (texts.get("checkout-renew")) }
            button type="submit" name="action" value="change" { (texts.get("checkout-change")) }
            (link_button(texts, shopper, resume::Step::Confirm))
        }
    };
    render(look, status, checkout, "checkout-confirm-title", &body)
}

/// The box that is ticked to buy: nobody can have checked a wallet that the partner hides.
fn consent(texts: Texts, checkout: &Checkout, errors: &FormErrors) -> Markup {
    let is_hidden = checkout.wallet_address.is_some() && !checkout.show_wallet_address;
    let label = if is_hidden { "checkout-consent-terms" } else { "checkout-consent" };
    errors.consent("consent", &html! { (texts.get(label)) })
}

/// The button that mails a link to a step, for who has an account to mail it to.
fn link_button(texts: Texts, shopper: Shopper, step: resume::Step) -> Markup {
    html! {
        @if shopper.user().is_some() {
            input type="hidden" name="step" value=(step.as_str());
            button type="submit" name="action" value="mail-link" formnovalidate {
                (texts.get("checkout-mail-link"))
            }
        }
    }
}

/// The page of a checkout that was confirmed or has expired.
pub(super) fn ended(look: Look<'_>, status: StatusCode, checkout: &Checkout) -> Reply {
    let body = html! {
        p { (look.texts.get("checkout-ended")) }
        (terms(look.texts, checkout, true))
    };
    render(look, status, checkout, "checkout-ended-title", &body)
}

/// The page for an invalid link; the same for every reason.
pub(super) fn not_found(look: Look<'_>) -> Reply {
    let title = look.texts.get("checkout-unknown-title");
    let body = html! { p { (look.texts.get("checkout-unknown")) } };
    Page::new(look.texts, look.settings, &title).render(StatusCode::NOT_FOUND, &body)
}

/// The way to the payment page. 303 makes it a GET, so that a reload repeats nothing.
pub(super) fn to_payment(payment_url: &str) -> Reply {
    let mut reply = Reply::empty(StatusCode::SEE_OTHER);
    reply.set("location", payment_url);
    reply.set("referrer-policy", "no-referrer");
    reply
}

/// The violations, each at its input if the form has that.
pub(super) fn refusal(texts: Texts, checkout: &Checkout, refusal: &Refusal) -> FormErrors {
    let mut errors = FormErrors::default();
    for code in refusal.codes() {
        let field = match code {
            Code::FiatAmountInvalid | Code::CryptoAmountInvalid | Code::AmountMissing
                if !checkout.fixed_amount =>
            {
                "amount"
            }
            Code::WalletAddressInvalid if checkout.wallet_address.is_none() => "wallet",
            Code::DestinationTagInvalid
                if checkout.wallet_address.is_none() && has_tag(checkout) =>
            {
                "tag"
            }
            _ => "",
        };
        errors.add(field, refusal_text(texts, code));
    }
    errors
}

fn render(
    look: Look<'_>,
    status: StatusCode,
    checkout: &Checkout,
    title: &'static str,
    body: &Markup,
) -> Reply {
    let tenant = &checkout.client.tenant;
    let body = html! {
        (body)
        @if let Some(url) = &checkout.return_url { (back_link(look.texts, url, &tenant.name)) }
    };
    let title = look.texts.get(title);
    let page = Page::new(look.texts, look.settings, &title).branded(&tenant.name, &tenant.brand);
    Page {
        is_test: tenant.is_test(),
        return_url: checkout.return_url.as_ref(),
        scripts: Some(PageScripts::Calling(SCRIPT)),
        ..page
    }
    .render(status, &body)
}

fn steps(texts: Texts, at: At) -> Markup {
    use Step::{Ahead, Current, Done};
    let steps = match at {
        At::Account => [Current, Ahead, Ahead, Ahead],
        At::Details => [Done, Current, Ahead, Ahead],
        At::Confirm => [Done, Done, Current, Ahead],
    };
    let names = [
        "checkout-step-account",
        "checkout-step-details",
        "checkout-step-confirm",
        "checkout-step-pay",
    ];
    let names = names.map(|id| texts.get(id));
    let steps: Vec<_> = names.iter().map(String::as_str).zip(steps).collect();
    stepper(texts, &steps)
}

/// Amounts that the partner proposes to pay and to get.
fn amounts(texts: Texts, checkout: &Checkout) -> Markup {
    let catalogue = &checkout.client.catalogue;
    let text = |value, code: &String| match value {
        Some(value) => texts.amount(&catalogue.format_amount(value, code)),
        None => code.clone(),
    };
    html! {
        dl {
            dt { (texts.get("term-pays")) }
            dd { strong { (money(&text(checkout.quote_amount, &checkout.quote))) } }
            dt { (texts.get("term-gets")) }
            dd { (money(&text(checkout.base_amount, &checkout.base))) }
            dt { (texts.get("term-method")) } dd { (checkout.method_name(texts)) }
        }
    }
}

/// The partner's wallet, unless it hides it or leaves it to the shopper.
fn partners_wallet(checkout: &Checkout) -> Option<ShownWallet<'_>> {
    let address = checkout.wallet_address.as_deref().filter(|_| checkout.show_wallet_address)?;
    let tag = checkout.wallet_address_tag.as_deref().unwrap_or_default();
    Some(ShownWallet { address, tag })
}

/// The partner's other terms, with the amounts where no price says them.
fn terms(texts: Texts, checkout: &Checkout, with_amounts: bool) -> Markup {
    html! {
        dl {
            dt { (texts.get("term-shop")) } dd { (checkout.client.tenant.name) }
            @if let Some(wallet) = partners_wallet(checkout) {
                dt { (texts.get("term-wallet")) } dd { (address(wallet.address)) }
                (tag_term(texts, wallet.tag))
            }
            @if checkout.is_open {
                dt { (texts.get("term-open-until")) } dd { (time_in(texts, checkout.expires_at)) }
            }
        }
        @if with_amounts { (amounts(texts, checkout)) }
    }
}

fn amount_input(purchase: Purchase<'_>, errors: &FormErrors) -> Markup {
    let Purchase { checkout, texts, .. } = purchase;
    let proposed = checkout.amount().map(|amount| texts.number(amount)).unwrap_or_default();
    let typed = purchase.typed_amount();
    let currency = checkout.amount_currency();
    let label = texts.with("checkout-amount", &[("currency", currency)]);
    let value = if typed.is_empty() { proposed.as_str() } else { typed.as_str() };
    html! {
        @if !checkout.fixed_amount {
            input type="hidden" name=(LANGUAGE) value=(texts.language().code());
            (field(&Field {
                value,
                error: errors.of("amount"),
                inputmode: Some("decimal"),
                ..Field::text("amount", &label)
            }))
        }
    }
}

fn wallet_inputs(texts: Texts, checkout: &Checkout, form: &Form, errors: &FormErrors) -> Markup {
    let network = checkout.client.catalogue.network_name(&checkout.base);
    let label = texts.with("checkout-wallet", &[("network", &network)]);
    let (hint, tag) = (texts.get("checkout-wallet-hint"), texts.get("checkout-tag"));
    let tag_hint = texts.get("checkout-tag-hint");
    html! {
        @if checkout.wallet_address.is_none() {
            (field(&Field {
                value: form.get("wallet"),
                hint: Some(&hint),
                error: errors.of("wallet"),
                is_verbatim: true,
                ..Field::text("wallet", &label)
            }))
            @if has_tag(checkout) {
                (field(&Field {
                    value: form.get("tag"),
                    error: errors.of("tag"),
                    hint: Some(&tag_hint),
                    required: false,
                    is_verbatim: true,
                    ..Field::text("tag", &tag)
                }))
            }
        } @else if !checkout.show_wallet_address {
            p.hint { (texts.get("checkout-wallet-of-shop")) }
        }
    }
}

/// True if wallets of the coin have a tag.
fn has_tag(checkout: &Checkout) -> bool {
    crypto(checkout).is_some_and(|crypto| {
        crypto.supports_tag && !matches!(crypto.chain.tag_kind(), TagKind::None)
    })
}

fn crypto(checkout: &Checkout) -> Option<&Crypto> {
    let code = checkout.base.parse().ok()?;
    checkout.client.catalogue.currencies.get(&code)?.crypto.as_ref()
}
