//! `GET /api/v2/user/verification-status`: the open requirements of a level.
//!
//! A level includes the requirements of the levels below it. A verified identity is not required
//! again.

use std::collections::BTreeMap;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::amld5::LocalizedQuestion;
use super::questions;
use crate::Core;
use crate::auth::caller::{Client, ClientAndUser};
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::Nationality;
use crate::users::account::Account;
use crate::users::documents::{self, IDENTITY_DOCUMENTS, has_address_proof, has_identity_document};
use rampart_types::Language;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/user/verification-status";
    const SCOPE: Option<Scope> = Some(Scope::UsersRead);
    const ERRORS: &'static [Code] = &[Code::VerificationLevelInvalid];
    const DOC: Doc = Doc {
        summary: "List what a user still has to show",
        details: "An empty list: nothing is left to do for the level. Items are answered by \
                  `PATCH /api/v2/user` under their name, questions by the AMLD5 endpoint. The \
                  images of `idDocument`, every side of one of the kinds in its `data`, and of \
                  `proofOfAddress` (`documentType` `proof-of-address`, any side) are sent in \
                  `identityDocument`. A `pending` item waits for us.",
        query: &[optional(
            "level",
            Kind::OneOf(&["bronze", "silver", "gold"]),
            "The level wanted; the highest when it is absent.",
        )],
        answer: r#"[{"name": "emailCode", "type": "string", "status": "missing"}]"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = Level;
    type Response = Json<Vec<Item>>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<Level> {
        let mut fields = Fields::of_query(input.head.query.as_deref());
        let level = fields.optional("level", Code::VerificationLevelInvalid, |value| {
            Level::from_name(value.as_str()?)
        });
        fields.finish(Some(level.unwrap_or(Level::Gold)))
    }

    async fn call(core: &Core, caller: ClientAndUser, level: Level) -> Result<Json<Vec<Item>>> {
        let key = caller.client.key_of(caller.user);
        let mut conn = core.db.acquire().await?;
        let account = Account::load(&mut conn, core, key).await?;
        let account = account.ok_or(Code::UserNotFound)?;
        let sides = documents::sides(&mut conn, key).await?;
        Ok(Json(UserState::new(&caller.client, &account, &sides).requirements(level)))
    }
}

/// The open requirements of the highest level.
pub(crate) fn open_items(
    client: &Client,
    account: &Account,
    sides: &[documents::Side],
) -> Vec<Item> {
    UserState::new(client, account, sides).requirements(Level::Gold)
}

/// A verification level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Verified e-mail address, and consent.
    Bronze,
    /// Verified identity.
    Silver,
    /// Verified address.
    Gold,
}

impl Level {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "bronze" => Some(Self::Bronze),
            "silver" => Some(Self::Silver),
            "gold" => Some(Self::Gold),
            _ => None,
        }
    }
}

/// An open requirement.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "VerificationStatusItem")]
pub struct Item {
    /// Name of what is wanted.
    name: &'static str,
    /// `boolean`, `string`, `choice`, `question`, `document` or `file`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// `missing`: the user must act. `pending`: a review must be completed.
    status: &'static str,
    /// For a choice, labels and their codes; for a question, the AMLD5 questions; for a document, its
    /// kinds with their sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Item {
    const fn missing(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, status: "missing", data: None }
    }

    const fn pending(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, status: "pending", data: None }
    }

    fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Name of what is wanted.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// True if it waits for a review alone.
    pub(crate) fn is_pending(&self) -> bool {
        self.status == "pending"
    }
}

/// The current state of a user.
struct UserState<'a> {
    language: Language,
    nationalities: &'a [Nationality],
    account: &'a Account,
    /// Received sides of documents, with their review status.
    sides: &'a [documents::Side],
}

impl<'a> UserState<'a> {
    fn new(client: &'a Client, account: &'a Account, sides: &'a [documents::Side]) -> Self {
        let language = account.region.as_deref().and_then(|region| region.get(..2)?.parse().ok());
        Self {
            language: language.unwrap_or_default(),
            nationalities: &client.catalogue.nationalities,
            account,
            sides,
        }
    }

    /// The open requirements of a level.
    fn requirements(&self, level: Level) -> Vec<Item> {
        let mut items = self.bronze();
        if level >= Level::Silver {
            items.extend(self.silver());
        }
        if level >= Level::Gold {
            items.extend(self.gold());
        }
        items
    }

    fn bronze(&self) -> Vec<Item> {
        let (statuses, personal) = (&self.account.statuses, &self.account.personal);
        let identified = statuses.identity == "verified";
        let requirements = [
            (statuses.email != "verified", Item::missing("emailCode", "string")),
            (
                statuses.privacy_agreement != "verified",
                Item::missing("privacyAgreement", "boolean"),
            ),
            (!identified && personal.first_name.is_none(), Item::missing("firstName", "string")),
            (!identified && personal.last_name.is_none(), Item::missing("lastName", "string")),
            (
                !identified && personal.date_of_birth.is_none(),
                Item::missing("dateOfBirth", "string"),
            ),
        ];
        requirements.into_iter().filter_map(|(open, item)| open.then_some(item)).collect()
    }

    fn silver(&self) -> Vec<Item> {
        let (statuses, personal) = (&self.account.statuses, &self.account.personal);
        let mut items = Vec::new();
        if statuses.amld5 != "verified" {
            let (business, answers) = (self.account.is_business, &personal.amld5_answers);
            let open = questions::to_ask(business, &statuses.amld5, answers).into_iter();
            let open: Vec<_> =
                open.map(|question| LocalizedQuestion::new(question, self.language)).collect();
            items.push(match open.is_empty() {
                true => Item::pending("AMLD5Questions", "question"),
                false => Item::missing("AMLD5Questions", "question").with(json!(open)),
            });
        }
        if statuses.identity == "verified" {
            return items;
        }
        if personal.nationality.is_none() {
            let codes: BTreeMap<_, _> =
                self.nationalities.iter().map(|known| (&known.name, &known.code)).collect();
            items.push(Item::missing("nationality", "choice").with(json!(codes)));
        }
        if has_identity_document(self.sides) {
            items.push(Item::pending("idDocument", "document"));
            items.push(Item::pending("verificationFlag", "boolean"));
        } else {
            let kinds: Vec<_> = IDENTITY_DOCUMENTS
                .iter()
                .map(|(kind, sides)| {
                    let sides = sides.iter().map(|side| json!({"name": side, "type": "file"}));
                    json!({"type": kind, "data": sides.collect::<Vec<_>>()})
                })
                .collect();
            items.push(Item::missing("idDocument", "document").with(json!(kinds)));
        }
        items
    }

    fn gold(&self) -> Vec<Item> {
        let (statuses, personal) = (&self.account.statuses, &self.account.personal);
        if statuses.residential_address == "verified" {
            return Vec::new();
        }
        let parts = [
            ("address", &personal.address),
            ("addressNo", &personal.address_no),
            ("postalCode", &personal.postal_code),
            ("city", &personal.city),
        ];
        let missing = parts.into_iter().filter(|(_, value)| value.is_none());
        let mut items: Vec<_> = missing.map(|(name, _)| Item::missing(name, "string")).collect();
        items.push(match has_address_proof(self.sides) {
            true => Item::pending("proofOfAddress", "file"),
            false => Item::missing("proofOfAddress", "file"),
        });
        items
    }
}
