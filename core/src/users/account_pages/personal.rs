//! The data that is known of a user: on the account's page, and as a file that the user downloads.

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::{Markup, html};
use serde::Serialize;

use super::orders::{self, Filter, TradedOrder};
use super::view::View;
use crate::http::reply::Reply;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::dca::{Plan, plans};
use crate::users::accounts::{self, PaymentAccount};
use crate::users::personal_data::PersonalData;
use crate::users::profile::Profile;
use crate::users::session;
use crate::users::{authenticator_app, passkeys};

/// Most orders of a file, the newest.
const ORDERS_MAX: usize = 10_000;
/// Most savings plans of a file, the newest.
const PLANS_MAX: i64 = 1_000;

/// The file of a user's data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    made_at: DateTime<Utc>,
    profile: Profile,
    personal_data: PersonalData,
    newsletter: bool,
    /// Website locale as stored; the profile has only those that partners see.
    region: Option<String>,
    orders: Vec<TradedOrder>,
    /// False if there are more orders than a file has.
    has_all_orders: bool,
    savings_plans: Vec<Plan>,
    /// Also the disabled ones, which the profile has not.
    accounts: Vec<HeldAccount>,
    passkeys: Vec<Key>,
    /// Null without one in use.
    authenticator_app_since: Option<DateTime<Utc>>,
    sessions: Vec<Session>,
}

/// An account that the user pays from or is paid to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeldAccount {
    r#type: &'static str,
    identifier: String,
    holder: String,
    verified: bool,
    disabled: bool,
    added_at: DateTime<Utc>,
    last_used_at: DateTime<Utc>,
}

impl From<PaymentAccount> for HeldAccount {
    fn from(account: PaymentAccount) -> Self {
        Self {
            r#type: account.kind.as_str(),
            identifier: account.details.identifier,
            holder: account.details.holder,
            verified: account.verified,
            disabled: account.disabled,
            added_at: account.created_at,
            last_used_at: account.last_used_at,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    name: String,
    added_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    began_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
    /// Null if it is not known.
    device: Option<String>,
}

/// The user's details, with the buttons that download and erase everything.
pub(super) fn section(view: &View<'_>) -> Markup {
    let (texts, account) = (view.texts(), view.account);
    let personal = &account.personal;
    let join = |parts: [&Option<String>; 2]| {
        let known: Vec<_> = parts.into_iter().flatten().map(String::as_str).collect();
        (!known.is_empty()).then(|| known.join(" "))
    };
    let rows = [
        ("personal-name", join([&personal.first_name, &personal.last_name])),
        ("personal-born", personal.date_of_birth.map(|born| texts.date(born))),
        ("personal-nationality", personal.nationality.map(|code| code.as_str().to_owned())),
        ("personal-phone", personal.phone_number.as_ref().map(|phone| phone.as_str().to_owned())),
        ("check-address-street", join([&personal.address, &personal.address_no])),
        ("check-address-city", join([&personal.postal_code, &personal.city])),
        ("personal-country", account.country.clone()),
        ("personal-business", personal.business_name.clone()),
        ("check-tax-number", personal.tax_number.as_deref().map(masked)),
    ];
    html! {
        h2 { (texts.get("personal-title")) }
        dl {
            @for (label, value) in &rows {
                @if let Some(value) = value { dt { (texts.get(label)) } dd { (value) } }
            }
        }
        p { (texts.get("personal-about")) }
        (view.button("download", "main", &[], &texts.get("personal-download")))
        (view.button("erase-ask", "danger", &[], &texts.get("erase-ask")))
    }
}

/// Characters at the end of a number that are shown.
const SHOWN_CHARS: usize = 4;

/// A number, but for its end; nothing of one that is no longer than that.
fn masked(number: &str) -> String {
    let end = number.char_indices().rev().nth(SHOWN_CHARS - 1).filter(|(at, _)| *at > 0);
    match end {
        Some((at, _)) => format!("… {}", number.get(at..).unwrap_or_default()),
        None => "…".to_owned(),
    }
}

/// The file of everything that is known of the user; images by their kind alone.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn download(view: &View<'_>) -> Result<Reply> {
    let (core, key) = (view.invited.core, view.account.key());
    let mut conn = core.db.acquire().await?;
    let all = Filter::default();
    let mut orders = orders::find(&mut conn, key, &all, ORDERS_MAX + 1).await?;
    let has_all_orders = orders.len() <= ORDERS_MAX;
    orders.truncate(ORDERS_MAX);
    let accounts = accounts::list(&mut conn, core, key).await?;
    let passkeys = passkeys::list(&mut conn, core, key).await?;
    let sessions = session::open_sessions(&mut conn, key).await?;
    // The token is a secret of another service.
    let personal_data = PersonalData { share_token: None, ..view.account.personal.clone() };
    let file = File {
        made_at: core.clock.now(),
        profile: Profile::load(&mut conn, core, view.account.clone()).await?,
        personal_data,
        newsletter: view.account.newsletter,
        region: view.account.region.clone(),
        orders,
        has_all_orders,
        savings_plans: savings_plans(&mut conn, view).await?,
        accounts: accounts.into_iter().map(HeldAccount::from).collect(),
        passkeys: passkeys
            .into_iter()
            .map(|key| Key {
                name: key.name,
                added_at: key.created_at,
                last_used_at: key.last_used_at,
            })
            .collect(),
        authenticator_app_since: authenticator_app::in_use_since(&mut conn, key).await?,
        sessions: sessions
            .into_iter()
            .map(|session| Session {
                began_at: session.began_at,
                ends_at: session.ends_at,
                device: session.device,
            })
            .collect(),
    };
    let mut reply = Reply::json(StatusCode::OK, &file)?;
    reply.set("content-disposition", "attachment; filename=\"account.json\"");
    reply.set("cache-control", "no-store");
    reply.set("referrer-policy", "no-referrer");
    reply.set("x-content-type-options", "nosniff");
    Ok(reply)
}

async fn savings_plans(conn: &mut Connection, view: &View<'_>) -> Result<Vec<Plan>> {
    let client = view.invited.client;
    let rows = plans!(
        "select",
        "from dca_plan where client_id = $1 and user_id = $2 \
         order by created_at desc, code limit $3",
        client.id().uuid(),
        view.account.user.uuid(),
        PLANS_MAX,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| row.plan(&client.catalogue, &client.tenant.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_by_its_end() {
        for (number, shown) in
            [("123456789", "… 6789"), ("ß-éü1", "… -éü1"), ("1234", "…"), ("", "…")]
        {
            assert_eq!(masked(number), shown);
        }
    }
}
