//! `POST /api/v2/user` and `PATCH /api/v2/user`: registration and update of a user.

use chrono::{DateTime, Utc};
use http::Method;

use super::account::{Account, RegisteredUser};
use super::answers;
use super::changed;
use super::details::{self, Details, FormKind};
use super::documents::{self, Document};
use super::identifier::{self, LinkOutcome};
use super::ownership::{Ownership, Update};
use super::personal_data::{PersonalData, email_index, store_key};
use super::user_update::{EmailProof, Previous, UserUpdate};
use super::website_region::WebsiteRegion;
use super::{by_email, chamber_of_commerce, member_docs, session, uploads};
use crate::Core;
use crate::auth::caller::{Client, ClientAndUser};
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::http::upload::UploadedBody;
use crate::notify::events::{self, EventType, NewEvent};
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Transaction;
use crate::platform::error::{Code, Refusal, Result, concat_codes};
use crate::platform::object_store::{StoredObject, retain_all};
use crate::tenancy::tenants::Scope;
use rampart_types::{Country, EmailAddress, UserId, UserIdentifier, WebsiteLocale};

/// Largest body, with images in it, in bytes (section 1 of the contract).
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Codes of invalid members.
const ERRORS: [Code; 28] = [
    Code::EmailInvalid,
    Code::EmailTaken,
    Code::EmailMissing,
    Code::RequestMalformed,
    Code::UserIdentifierMissing,
    Code::PhoneNumberInvalid,
    Code::CountryCodeInvalid,
    Code::CountryMissing,
    Code::CountryUnknown,
    Code::BusinessCountryInvalid,
    Code::ImageInvalid,
    Code::WebsiteLanguageInvalid,
    Code::WebsiteCountryInvalid,
    Code::WebsiteRegionInvalid,
    Code::UserUnderage,
    Code::EmailCodeInvalid,
    Code::UserIdentifierLengthInvalid,
    Code::ChamberOfCommerceInvalid,
    Code::PasswordTooShort,
    Code::PasswordTooLong,
    Code::BusinessNameInvalid,
    Code::FirstNameInvalid,
    Code::LastNameInvalid,
    Code::StreetInvalid,
    Code::HouseNumberInvalid,
    Code::CityInvalid,
    Code::PostalCodeInvalid,
    Code::UserIdentifierTaken,
];

/// Registration, version 2.
pub struct RegisterV2;

impl Endpoint for RegisterV2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/user";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &ERRORS;
    const IS_LOGIN: bool = true;
    const BODY: Body = Body::JsonWithImage(BODY_BYTES_MAX);
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Register a user",
        details: "Without `emailCode` a code is mailed to the user; send it with PATCH. A test \
                  client's code is always `000000`.",
        body: Shape::Members(&member_docs::REGISTRATION),
        request: member_docs::REQUEST,
        answer: member_docs::ANSWER,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = Registration;
    type Response = Json<RegisteredUser>;

    fn read(input: &Input, client: &Client) -> Result<Registration> {
        let (fields, form) = (Fields::from_object(&input.document)?, FormKind::Registration);
        Registration::read(fields, form, client, input.now, input.upload.as_ref())
    }

    async fn call(
        core: &Core,
        client: Client,
        request: Registration,
    ) -> Result<Json<RegisteredUser>> {
        Self::call_with_key(core, client, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        client: Client,
        request: Registration,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<RegisteredUser>> {
        Ok(Json(register(core, &client, request, key).await?.into()))
    }
}

/// Update, version 2.
pub struct UpdateV2;

impl Endpoint for UpdateV2 {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/api/v2/user";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &concat_codes::<{ ERRORS.len() + 3 }>(&[
        &ERRORS,
        &[Code::PasswordMissing, Code::LoginInvalid, Code::DocumentPendingReview],
    ]);
    const BODY: Body = Body::JsonWithImage(BODY_BYTES_MAX);
    const DOC: Doc = Doc {
        summary: "Update the user's profile",
        details: "Members that are absent or null stay. `email` with the address known, and no \
                  code, mails a new code, at most five times an hour. A changed name or birth date \
                  takes the identity check back, another country that of the address, and either \
                  is screened anew; a person who becomes a business, or the reverse, is asked the \
                  AMLD5 questions of that kind. Verified images must be sent again after the name, \
                  birth date or address that they prove has changed. A new `password` or `email` \
                  wants `oldPassword`, or an `emailCode` that was mailed to the address known, and \
                  ends every session of the user.",
        body: Shape::Joined(&[&member_docs::CHANGE, member_docs::CHANGE_ALONE]),
        request: r#"{"emailCode": "000000"}"#,
        answer: member_docs::ANSWER,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = Update;
    type Response = Json<RegisteredUser>;

    fn read(input: &Input, caller: &ClientAndUser) -> Result<Update> {
        let mut fields = Fields::from_object(&input.document)?;
        let (form, upload) = (FormKind::Change, input.upload.as_ref());
        let details = details::read(&mut fields, form, &caller.client, input.now, upload);
        let details = fields.finish(Some(details))?;
        Ok(Update { details, head: input.head.clone() })
    }

    async fn call(
        core: &Core,
        caller: ClientAndUser,
        request: Update,
    ) -> Result<Json<RegisteredUser>> {
        Ok(Json(update(core, &caller, request).await?.into()))
    }
}

/// A registration request.
#[derive(Debug)]
pub struct Registration {
    email: EmailAddress,
    country: Country,
    details: Details,
}

impl Registration {
    fn read(
        mut fields: Fields<'_>,
        form: FormKind,
        client: &Client,
        now: DateTime<Utc>,
        upload: Option<&UploadedBody>,
    ) -> Result<Self> {
        let details = details::read(&mut fields, form, client, now, upload);
        let parts = details.personal.email.clone().zip(details.country);
        fields.finish(parts.map(|(email, country)| Self { email, country, details }))
    }
}

/// Registers a user from a page, where a password is required, because nothing else would let the
/// user in again. The identifier and the locale are the page's. Attempts count like logins, because
/// the response reveals if an address is registered.
///
/// # Errors
/// Every violation; ER002, ER706; code 920.
pub(crate) async fn register_on_page(
    core: &Core,
    client: &Client,
    mut fields: Fields<'_>,
    identifier: Option<UserIdentifier>,
    locale: Option<WebsiteLocale>,
) -> Result<UserId> {
    if fields.value("password").is_none() {
        fields.refuse_member(Code::PasswordTooShort, "password");
    }
    let mut request = Registration::read(fields, FormKind::Page, client, core.clock.now(), None)?;
    core.user_attempts.count(core, client, &request.email).await?;
    request.details.identifier = identifier;
    request.details.region = locale.map(WebsiteRegion::Whole);
    Ok(register(core, client, request, None).await?.user)
}

/// Creates the user and links the identifier, if any: all or nothing.
///
/// # Errors
/// ER002, ER090 and ER706, collected.
async fn register(
    core: &Core,
    client: &Client,
    request: Registration,
    key: Option<&ClaimedKey>,
) -> Result<Account> {
    let Registration { email, country, mut details } = request;
    let user = UserId::from(core.clock.uuid()?);
    let personal_key = PersonalDataKey::generate(&core.clock, client.key_of(user))?;
    let mut refusal = Refusal::new();
    let proof =
        EmailProof::check(core, client, Some(&email), details.email_code.as_deref()).await?;
    if proof == EmailProof::Invalid {
        refusal.add_of_member(Code::EmailCodeInvalid, "emailCode");
        details.leave_out_costly();
    }
    refuse_taken(core, client, &email, &mut details, &mut refusal).await?;
    let password_hash = hash(core, &mut details).await?;
    let documents = std::mem::take(&mut details.documents);
    let documents = documents::put(core, &personal_key, documents).await?;
    let mut tx = core.db.begin().await?;
    let inserted = sqlx::query!(
        "insert into end_user (client_id, user_id, sealed_key, email_index, password_hash, \
             country, created_at) \
         values ($1, $2, '', $3, $4, $5, $6) \
         on conflict (client_id, email_index) do nothing",
        client.id().uuid(),
        user.uuid(),
        email_index(core, client.id(), &email)?,
        password_hash,
        country.as_str(),
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    let is_new = inserted.rows_affected() == 1;
    if is_new {
        store_key(&mut tx, core, client.key_of(user), &personal_key).await?;
        let payload = serde_json::json!({ "uuid": user });
        let event = NewEvent { kind: EventType::UserCreated, order_id: None, payload };
        events::record(&mut tx, core, client.id(), event, None).await?;
    } else {
        refusal.add_of_member(Code::EmailTaken, "email");
    }
    let taken = match &details.identifier {
        Some(identifier) if is_new => {
            let linked = identifier::link(&mut tx, core, client.key_of(user), identifier).await?;
            linked == LinkOutcome::Conflict
        }
        Some(identifier) => {
            identifier::linked_user(&mut tx, core, client.id(), identifier).await?.is_some()
        }
        None => false,
    };
    if taken {
        refusal.add_of_member(Code::UserIdentifierTaken, "identifier");
    }
    if !refusal.is_empty() {
        return Err(refusal.into());
    }
    let user_update = UserUpdate { core, client, user, personal_key };
    let personal = std::mem::take(&mut details.personal);
    let before = Previous { personal: &PersonalData::default(), country: Some(country.as_str()) };
    let images = user_update.store(&mut tx, before, &personal, details, documents).await?;
    user_update.settle_email(&mut tx, Some(&email), &proof).await?;
    let needs_screening = personal.last_name.is_some();
    let account = answers::load_written(&mut tx, core, client.key_of(user), None, true).await?;
    finish(tx, &user_update, account, needs_screening, images, key).await
}

/// Refuses a registration with images whose address or identifier another user has, before they are
/// stored. What is taken meanwhile is refused by the statements that write.
async fn refuse_taken(
    core: &Core,
    client: &Client,
    email: &EmailAddress,
    details: &mut Details,
    refusal: &mut Refusal,
) -> Result<()> {
    if !details.documents.iter().any(Document::has_image) {
        return Ok(());
    }
    if by_email::find(core, client, email).await?.is_some() {
        refusal.add_of_member(Code::EmailTaken, "email");
    }
    if let Some(identifier) = &details.identifier {
        let mut conn = core.db.acquire().await?;
        if identifier::linked_user(&mut conn, core, client.id(), identifier).await?.is_some() {
            refusal.add_of_member(Code::UserIdentifierTaken, "identifier");
        }
    }
    if !refusal.is_empty() {
        details.leave_out_costly();
    }
    Ok(())
}

async fn update(core: &Core, caller: &ClientAndUser, request: Update) -> Result<Account> {
    let (client, user) = (&caller.client, caller.user);
    let Update { mut details, head } = request;
    if details.documents.iter().any(Document::has_image) {
        uploads::count(core, client, user)?;
    }
    let owner = Ownership::prove(core, caller, &mut details).await?;
    if owner.email_proof == EmailProof::Invalid {
        details.leave_out_costly();
    }
    let password_hash = hash(core, &mut details).await?;
    let key = client.key_of(user);
    let documents = std::mem::take(&mut details.documents);
    let documents = documents::put_of_user(core, key, documents).await?;
    let mut tx = core.db.begin().await?;
    let known = owner.lock(&mut tx, core, caller, &head).await?;
    let proof = owner.email_proof;
    let named_email = details.personal.email.is_some();
    let may_complete = answers::may_complete(&known, &details);
    let mut personal = known.personal.clone();
    personal.merge(std::mem::take(&mut details.personal));
    let new_email = personal.email.clone().filter(|_| personal.email != known.personal.email);
    let mut refusal = Refusal::new();
    if proof == EmailProof::Invalid {
        refusal.add_of_member(Code::EmailCodeInvalid, "emailCode");
    }
    if !chamber_of_commerce::is_valid(&personal, details.country, known.country.as_deref()) {
        refusal.add_of_member(Code::ChamberOfCommerceInvalid, "chamberOfCommerce");
    }
    answers::refuse_excess(&known.personal, &personal, &mut refusal);
    details.complete_region(client, &known, &mut refusal);
    let user_update = UserUpdate::start(&mut tx, core, client, user).await?;
    // Before another address is claimed: the proven one hears of both.
    if let Some(hash) = &password_hash {
        user_update.set_password(&mut tx, hash).await?;
    }
    if let Some(email) = &new_email
        && !user_update.claim_email(&mut tx, email).await?
    {
        refusal.add_of_member(Code::EmailTaken, "email");
    }
    if let Some(identifier) = &details.identifier {
        let linked = identifier::link(&mut tx, core, key, identifier).await?;
        if linked == LinkOutcome::Conflict {
            refusal.add_of_member(Code::UserIdentifierTaken, "identifier");
        }
    }
    if !refusal.is_empty() {
        return Err(refusal.into());
    }
    if password_hash.is_some() || new_email.is_some() {
        session::end_all(&mut tx, core, key).await?;
    }
    if named_email || proof != EmailProof::Missing {
        user_update.settle_email(&mut tx, personal.email.as_ref(), &proof).await?;
    }
    let known_country = known.country.as_deref();
    // A screening is of a name in a country.
    let needs_screening = known.personal.identity() != personal.identity()
        || details.names_other_country(known_country);
    let before = Previous { personal: &known.personal, country: known_country };
    let images = user_update.store(&mut tx, before, &personal, details, documents).await?;
    let account = answers::load_written(&mut tx, core, key, Some(&known), may_complete).await?;
    finish(tx, &user_update, account, needs_screening, images, None).await
}

/// Hashes the password of the request, if any.
async fn hash(core: &Core, details: &mut Details) -> Result<Option<String>> {
    let Some(password) = details.password.take() else { return Ok(None) };
    core.passwords.hash(password).await.map(Some)
}

/// Commits what was written of a user, with what follows from it and the answer under the request's
/// key.
async fn finish(
    mut tx: Transaction<'_>,
    update: &UserUpdate<'_>,
    account: Account,
    needs_screening: bool,
    images: Vec<StoredObject>,
    key: Option<&ClaimedKey>,
) -> Result<Account> {
    let UserUpdate { core, client, .. } = *update;
    // On the heap: most changes have nothing to follow.
    Box::pin(changed::follow(&mut tx, core, client, &account, needs_screening)).await?;
    if let Some(key) = key {
        key.set_user(account.user);
    }
    save_answer(key, core, &mut tx, &RegisteredUser::from(account.clone())).await?;
    retain_all(&mut tx, client.id(), images).await?;
    tx.commit().await?;
    Ok(account)
}
