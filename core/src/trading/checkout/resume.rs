//! The link by which a shopper goes on with a checkout, mailed to another device or after a sign-in:
//! the checkout's own link with the step, and what was typed, sealed in its query. It signs nobody in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::purchase::{LANGUAGE, Purchase};
use super::session;
use super::stored::Checkout;
use crate::Core;
use crate::http::form::Form;
use crate::http::language::Language;
use crate::platform::crypto::Purpose;
use crate::platform::error::{Error, Result};
use crate::platform::mail::{Kind, Message};
use crate::users::account::{self, Account, RowLock};
use rampart_types::UserId;

/// Time for which a link works.
const LIFETIME: TimeDelta = TimeDelta::hours(1);
/// Inputs that are carried over, besides the language of the amount.
const INPUTS: [&str; 3] = ["amount", "wallet", "tag"];
/// Longest input that is carried over, in bytes; no address of a chain is as long.
const INPUT_BYTES_MAX: usize = 128;
/// Longest text that is opened, in bytes; one with the longest inputs has less than 1,800.
const TEXT_BYTES_MAX: usize = 2_048;

/// The step that a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step {
    /// Amount and wallet.
    Details,
    /// The quote.
    Confirm,
}

impl Step {
    /// The step that a form names; the first one if it names none.
    pub(super) fn of(form: &Form) -> Self {
        if form.get("step") == Self::Confirm.as_str() { Self::Confirm } else { Self::Details }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Details => "details",
            Self::Confirm => "confirm",
        }
    }
}

/// The sealed content of a link.
#[derive(Deserialize, Serialize)]
struct Claims {
    step: Step,
    /// The inputs, as a form.
    inputs: String,
    #[serde(with = "chrono::serde::ts_seconds")]
    expires_at: DateTime<Utc>,
}

/// A step to go on with, and what was typed before it.
pub(super) struct Resumption {
    pub(super) step: Step,
    pub(super) form: Form,
}

impl Resumption {
    /// Opens the sealed part of a link; `None` if it is not of this checkout, or too old.
    pub(super) fn open(core: &Core, checkout: &Checkout, text: &str) -> Option<Self> {
        let text = Some(text).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
        let key = core.keys.sealing_key(Purpose::Identifiers).ok()?;
        let plain = key.open(&context(checkout), &URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let claims: Claims = serde_json::from_slice(&plain).ok()?;
        let form = Form::read(claims.inputs.as_bytes());
        (core.clock.now() < claims.expires_at).then_some(Self { step: claims.step, form })
    }

    /// Seals the inputs of a form for a link to this step.
    ///
    /// # Errors
    /// Without entropy.
    pub(super) fn seal(
        core: &Core,
        checkout: &Checkout,
        step: Step,
        form: &Form,
    ) -> Result<String> {
        let language = Language::from_tag(form.get(LANGUAGE)).map_or("", Language::code);
        let typed = INPUTS.map(|name| (name, form.get(name)));
        let typed = typed.into_iter().filter(|(_, value)| value.len() <= INPUT_BYTES_MAX);
        let typed = typed.chain([(LANGUAGE, language)]);
        let claims = Claims {
            step,
            inputs: form_urlencoded::Serializer::new(String::new()).extend_pairs(typed).finish(),
            expires_at: core.clock.now() + LIFETIME,
        };
        let plain = serde_json::to_vec(&claims)
            .map_err(|error| Error::internal("write a checkout's link", error))?;
        let key = core.keys.sealing_key(Purpose::Identifiers)?;
        Ok(URL_SAFE_NO_PAD.encode(key.seal(&core.clock, &context(checkout), &plain)?))
    }
}

/// The outcome of a shopper's wish for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mailed {
    Sent,
    /// The account has no e-mail address.
    NoAddress,
    /// The address has got enough mail for now.
    TooMany,
}

/// Mails the user a link to the step and the inputs of the form. `identifier` is the sealed one of the
/// checkout's link.
pub(super) async fn mail_link(
    core: &Core,
    Purchase { checkout, texts, form, .. }: Purchase<'_>,
    user: UserId,
    identifier: Option<&str>,
) -> Result<Mailed> {
    let client = checkout.client.id();
    let key = checkout.client.key_of(user);
    let account = Account::load(&mut *core.db.acquire().await?, core, key).await?;
    let account = account.filter(|account| account.deleted_at.is_none());
    let Some(to) = account.and_then(|account| account.personal.email) else {
        return Ok(Mailed::NoAddress);
    };
    match core.user_attempts.count_mail(core, &checkout.client, &to).await {
        Ok(()) => {}
        Err(error @ Error::Failed(_)) => return Err(error),
        Err(_) => return Ok(Mailed::TooMany),
    }
    let url = session::url(core, client, checkout.offer, identifier)?;
    let sealed = Resumption::seal(core, checkout, Step::of(form), form)?;
    let link = format!("{url}{}resume={sealed}", if identifier.is_some() { '&' } else { '?' });
    let shop = [("shop", &*checkout.client.tenant.name)];
    let message = Message {
        to,
        subject: texts.with("checkout-mail-subject", &shop),
        text: format!(
            "{}\n{link}\n{}\n",
            texts.with("checkout-mail-text", &shop),
            texts.get("mail-ignore"),
        ),
        secrets: Some(vec![link]),
    };
    let mut tx = core.db.begin().await?;
    // An erasure finds the mail, or there is nobody to write to any more.
    if !account::lock(&mut tx, key, RowLock::NoKeyUpdate).await? {
        return Ok(Mailed::NoAddress);
    }
    message.enqueue(&mut tx, core, client, Kind::CheckoutLink, Some(user)).await?;
    tx.commit().await?;
    Ok(Mailed::Sent)
}

fn context(checkout: &Checkout) -> String {
    format!("checkout resumption/{}/{}", checkout.client.id(), checkout.offer)
}
