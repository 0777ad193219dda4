//! `GET /admin/v1/users`: users by e-mail address, phone number, full name or a partner's identifier,
//! all of them found by keyed digests.

mod find;
mod mask;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::find::{Criterion, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::{Head, Input};
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Paging, limit};
use crate::platform::error::{Denial, Result};
use crate::users::search_index::SearchKey;
use rampart_types::{EmailAddress, PhoneNumber, UserId, UserIdentifier, folded_name};

/// Most users of one answer.
const USERS_MAX: i64 = 50;
/// Longest name that is searched for, in characters.
const NAME_CHARS_MAX: usize = 255;
/// Roles that see personal data in clear.
const SEES_PERSONS: &[Role] = &[Role::Support, Role::Compliance];

/// `GET /admin/v1/users`
pub struct SearchUsers;

impl Endpoint for SearchUsers {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/users";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Search users",
        details: "Users that meet every criterion, newest first; all of them without one. \
                  E-mail address, phone number and identifier must be exact; of a name \
                  neither accents, case nor the order of its words matter. Without the role \
                  `support` or `compliance`, personal data are masked; those that no key opens any \
                  more are null. Every search stands in the audit, with the users that it showed \
                  and without what was searched for.",
        query: &[
            optional("email", Kind::Format("email"), "The e-mail address."),
            optional("phone", Kind::Text, "The phone number, in international form."),
            optional("name", Kind::Text, "The full name of the person or the business."),
            optional("identifier", Kind::Text, "A partner's identifier of the user."),
            optional("partner", Kind::Text, "The partner's slug."),
            AFTER,
            limit(USERS_MAX),
        ],
        answer: r#"[{"uuid": "0199a000-0000-7000-8000-000000000005", "partner": "acme",
            "masked": false, "email": "ada@example.com", "firstName": "Ada",
            "lastName": "Lovelace", "businessName": null, "phoneNumber": "+31612345678",
            "level": "bronze", "identityStatus": "verified", "disabled": false, "deleted": false,
            "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search;
    type Response = Page<Found>;

    fn read(input: &Input, _: &Operator) -> Result<Search> {
        Search::read(strict::query(input)?, &input.head)
    }

    async fn call(core: &Core, operator: Operator, search: Search) -> Result<Page<Found>> {
        let is_masked = operator.check(SEES_PERSONS).is_err();
        let (users, after) = find(core, &search, is_masked).await?;
        let shown: Vec<_> = users.iter().map(|found| found.uuid).collect();
        let by: Vec<_> = search.criteria.iter().map(Criterion::name).collect();
        let detail = json!({ "by": by, "masked": is_masked, "users": shown });
        let mut tx = core.db.begin().await?;
        // The audit has a partner's slug alone: whatever else was typed may be of a person.
        let target = sqlx::query_scalar!("select slug from client where slug = $1", search.partner);
        let target = target.fetch_optional(&mut *tx).await?.unwrap_or_default();
        operator.record(&mut tx, core, "user.search", &target, detail).await?;
        tx.commit().await?;
        Ok(search.paging.page_until(users, after.map(|last| last.to_string())))
    }
}

/// A search for users.
#[derive(Debug)]
pub struct Search {
    criteria: Vec<Criterion>,
    partner: Option<String>,
    after: Option<UserId>,
    paging: Paging,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    email: Option<String>,
    phone: Option<String>,
    name: Option<String>,
    identifier: Option<String>,
    partner: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

impl Search {
    /// Reads the criteria. A refusal names the parameter and never its value.
    fn read(members: Members, head: &Head) -> Result<Self> {
        let Members { email, phone, name, identifier, partner, after, limit } = members;
        let mut criteria = Vec::new();
        if let Some(email) = email {
            let email: Result<EmailAddress, _> = email.trim().parse();
            let wrong = |_| Denial::unprocessable("email: not an e-mail address");
            criteria.push(Criterion::Email(email.map_err(wrong)?));
        }
        if let Some(phone) = phone {
            let digits: String = phone.chars().filter(|c| !" -().".contains(*c)).collect();
            let phone: Result<PhoneNumber, _> = digits.parse();
            let wrong = |_| Denial::unprocessable("phone: not a number in international form");
            criteria.push(Criterion::Key(SearchKey::Phone(phone.map_err(wrong)?)));
        }
        if let Some(name) = name {
            let is_short = name.chars().nth(NAME_CHARS_MAX).is_none();
            let folded = Some(name).filter(|_| is_short).map(|name| folded_name(&name));
            let folded = folded.filter(|name| !name.is_empty());
            let wrong = || Denial::unprocessable("name: a full name of 1 to 255 characters");
            criteria.push(Criterion::Key(SearchKey::Name(folded.ok_or_else(wrong)?)));
        }
        if let Some(identifier) = identifier {
            let identifier: Result<UserIdentifier, _> = identifier.trim().parse();
            let wrong = |_| Denial::unprocessable("identifier: 36 to 255 letters and digits");
            criteria.push(Criterion::Identifier(identifier.map_err(wrong)?));
        }
        let after = after.map(|after| after.parse()).transpose();
        let after = after.map_err(|_| Denial::unprocessable("after: not a user's uuid"))?;
        let paging = Paging::of(head, limit.as_deref(), USERS_MAX)?;
        Ok(Self { criteria, partner, after, paging })
    }
}

/// A user who was found.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "FoundUser")]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The user's id.
    uuid: UserId,
    /// The partner's slug.
    partner: String,
    /// `true` if the personal data are shown in part.
    masked: bool,
    /// The e-mail address.
    email: Option<String>,
    /// The first name.
    first_name: Option<String>,
    /// The last name.
    last_name: Option<String>,
    /// The name of the business; null for a person.
    business_name: Option<String>,
    /// The phone number.
    phone_number: Option<String>,
    /// `bronze`, `silver` or `gold`.
    level: String,
    /// `pending`, `verified`, `failed` or `blocked`.
    identity_status: String,
    /// `true` if the user can do nothing.
    disabled: bool,
    /// `true` if the personal data are erased.
    deleted: bool,
    /// When the user was registered.
    created_at: DateTime<Utc>,
}
