//! `POST /api/v1/user/verify/iban/photo`: adds a bank account with an image as proof of ownership,
//! which an operator reviews.

use http::Method;
use serde_json::Value;

use super::Started;
use crate::Core;
use crate::auth::caller::{Client, ClientAndUser};
use crate::endpoint::openapi::doc::{Doc, Kind as Form, Shape, required};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::{Fields, Member};
use crate::http::images::ReceivedImage;
use crate::http::request::Input;
use crate::http::upload::body;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::platform::object_store::{OBJECT_BYTES_MAX, retain_all};
use crate::tenancy::tenants::Scope;
use crate::tenancy::tenants::Tenant;
use crate::users::accounts::{
    self, AccountDetails, AccountType, HOLDER_CHARS_MAX, NewAccount, OpenOutcome, PaymentAccount,
};
use crate::users::{personal_data, uploads};
use rampart_types::{Iban, UserId, UserKey, plain_text};

/// The member with the account's number.
const IBAN: &str = "iban";
/// Suffix of account numbers that are disabled in the sandbox (ER086).
const DISABLED: &str = "0000000086";
/// Suffix of account numbers that are unknown to the sandbox's bank (ER087).
const UNKNOWN_TO_BANK: &str = "0000000087";
/// Suffix of account numbers that are verified instantly in the sandbox.
const VERIFIED_INSTANTLY: &str = "0000000001";
/// Longest proof, in characters of base64: 63 MiB.
const ENCODED_CHARS_MAX: u64 = 63 * 1024 * 1024;
/// Most proofs of one account.
const PROOFS_MAX: i64 = 32;

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/verify/iban/photo";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] = &[
        Code::RequestMalformed,
        Code::IbanInvalid,
        Code::AccountHolderMissing,
        Code::ImageMissing,
        Code::ImageInvalid,
        Code::IbanAccountDisabled,
        Code::IbanAccountUnknown,
        Code::IbanMissing,
        Code::IbanEmpty,
        Code::AccountHolderEmpty,
        Code::OwnershipProofMissing,
        Code::DocumentPendingReview,
    ];
    const BODY: Body = Body::JsonWithImage(OBJECT_BYTES_MAX);
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Verify a bank account by a photo",
        details: "The account counts as verified once an operator has seen the proof. In the \
                  sandbox an IBAN that ends in 0000000001 is verified at once, one that ends in \
                  0000000086 is disabled (ER086), and one that ends in 0000000087 is unknown to \
                  its bank (ER087).",
        body: Shape::Members(&[
            required("name", Form::Text, "The account's holder."),
            required(IBAN, Form::Text, "In either case, with or without blanks."),
            required("proof", Form::Text, "JPEG, PNG or PDF in base64, at most 63 MB."),
        ]),
        request: r#"{"name": "Ada Lovelace", "iban": "NL91ABNA0417164300",
            "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="}"#,
        answer: r#"{"type": "photo", "status": "initiated", "data": {}}"#,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = OwnershipClaim;
    type Response = Json<Started>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<OwnershipClaim> {
        let mut fields = Fields::from_object(&input.document)?;
        let (holder, iban) = (holder(&mut fields), iban(&mut fields));
        let proof = proof(&mut fields, input);
        let claim = holder.zip(iban).zip(proof);
        fields.finish(claim.map(|((holder, iban), proof)| OwnershipClaim { holder, iban, proof }))
    }

    async fn call(
        core: &Core,
        caller: ClientAndUser,
        request: OwnershipClaim,
    ) -> Result<Json<Started>> {
        Self::call_with_key(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: ClientAndUser,
        request: OwnershipClaim,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Started>> {
        uploads::count(core, &caller.client, caller.user)?;
        if caller.client.tenant.is_test() {
            refuse_magic_number(&request.iban)?;
        }
        let verified = is_verified_instantly(&caller.client.tenant, &request.iban);
        let started = Started::initiated("photo");
        let user = caller.client.key_of(caller.user);
        store(core, user, request, verified, key, &started).await?;
        Ok(Json(started))
    }
}

/// Refuses the sandbox's account numbers that no user can have verified.
fn refuse_magic_number(iban: &Iban) -> Result<()> {
    let refused =
        [(DISABLED, Code::IbanAccountDisabled), (UNKNOWN_TO_BANK, Code::IbanAccountUnknown)];
    match refused.into_iter().find(|(suffix, _)| iban.as_str().ends_with(suffix)) {
        Some((_, code)) => Err(Error::of_member(code, IBAN)),
        None => Ok(()),
    }
}

/// True if a bank account needs no review: in the sandbox, by the end of its IBAN.
pub(crate) fn is_verified_instantly(tenant: &Tenant, iban: &Iban) -> bool {
    tenant.is_test() && iban.as_str().ends_with(VERIFIED_INSTANTLY)
}

/// A bank account with its proof of ownership.
#[derive(Debug)]
pub struct OwnershipClaim {
    holder: String,
    iban: Iban,
    proof: ReceivedImage,
}

/// ER057 when the member is missing, ER185 when it is empty or invalid.
fn holder(fields: &mut Fields<'_>) -> Option<String> {
    let code = match fields.value("name") {
        None => Code::AccountHolderMissing,
        Some(_) => Code::AccountHolderEmpty,
    };
    fields.required("name", code, |value| plain_text(value.as_str()?, HOLDER_CHARS_MAX))
}

/// ER088 when the member is missing, ER113 when it is empty, ER056 when it is invalid.
fn iban(fields: &mut Fields<'_>) -> Option<Iban> {
    let code = match fields.value(IBAN).map(Value::as_str) {
        None => Code::IbanMissing,
        Some(Some("")) => Code::IbanEmpty,
        Some(_) => Code::IbanInvalid,
    };
    fields.required(IBAN, code, |value| value.as_str()?.parse().ok())
}

/// ER186 when the member is missing, ER077 when it is null or empty, ER078 when it is no image or
/// too long.
fn proof(fields: &mut Fields<'_>, input: &Input) -> Option<ReceivedImage> {
    let code = match fields.member("proof") {
        Member::Absent => Code::OwnershipProofMissing,
        Member::Null => Code::ImageMissing,
        Member::Value(value) if value.as_str() == Some("") => Code::ImageMissing,
        Member::Value(_) => Code::ImageInvalid,
    };
    fields.required("proof", code, |value| {
        let image = body::image(input.upload.as_ref(), value.as_str()?)?;
        fits(image.info.size).then_some(image)
    })
}

/// True if a proof of this many bytes is no longer than [`ENCODED_CHARS_MAX`] in base64. It was decoded
/// while it arrived, so that only its size is known.
const fn fits(size: u64) -> bool {
    encoded_chars(size) <= ENCODED_CHARS_MAX
}

/// Characters of this many bytes in padded base64.
const fn encoded_chars(size: u64) -> u64 {
    size.div_ceil(3).saturating_mul(4)
}

/// Stores a proof of a bank account of the user, sent on a page.
///
/// # Errors
/// Code 920 above the rate of uploads, ER086 for an account that is disabled, ER708 above
/// [`PROOFS_MAX`].
pub(crate) async fn prove(
    core: &Core,
    client: &Client,
    user: UserId,
    account: &PaymentAccount,
    proof: ReceivedImage,
) -> Result<()> {
    uploads::count(core, client, user)?;
    let AccountDetails { identifier, holder, .. } = account.details.clone();
    let iban = identifier.parse().map_err(|_| Error::invariant("read an account's IBAN"))?;
    let claim = OwnershipClaim { holder, iban, proof };
    let user = client.key_of(user);
    store(core, user, claim, false, None, &Started::initiated("photo")).await
}

/// The number of proofs of the account that were received.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn count_proofs(
    conn: &mut Connection,
    key: UserKey,
    account: &PaymentAccount,
) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"
        select count(*) as "count!" from ownership_proof
        where client_id = $1 and user_id = $2 and account_id = $3
        "#,
        key.client.uuid(),
        key.user.uuid(),
        account.id,
    )
    .fetch_one(conn)
    .await?;
    Ok(count)
}

/// Stores the proof and its account, both or none, and the answer under the request's key.
async fn store(
    core: &Core,
    user: UserKey,
    OwnershipClaim { holder, iban, proof }: OwnershipClaim,
    verified: bool,
    key: Option<&ClaimedKey>,
    answer: &Started,
) -> Result<()> {
    let mut conn = core.db.acquire().await?;
    let personal_key = personal_data::load_key(&mut conn, core, user).await?;
    // The proof would be stored for nothing. An account that is disabled meanwhile is refused below.
    let known = accounts::find(&mut conn, core, user, iban.as_str()).await?;
    if known.is_some_and(|account| account.disabled) {
        return Err(Error::of_member(Code::IbanAccountDisabled, IBAN));
    }
    drop(conn);
    let (image, stored) = proof.store(core, &personal_key).await?;
    let account = NewAccount {
        kind: AccountType::BankTransfer,
        details: AccountDetails { identifier: iban.as_str().to_owned(), holder, token: None },
        is_stored_card: false,
        verified,
    };
    let mut tx = core.db.begin().await?;
    let account = match accounts::open(&mut tx, core, user, account).await? {
        OpenOutcome::Created(account) => account,
        OpenOutcome::Existing(account) if account.disabled => {
            return Err(Error::of_member(Code::IbanAccountDisabled, IBAN));
        }
        OpenOutcome::Existing(account) => account,
        OpenOutcome::LimitReached => {
            let detail = "the user has as many accounts as one may have";
            return Err(Error::of_member_with(Code::IbanAccountUnknown, IBAN, detail));
        }
    };
    // Opening has locked the user's row, so that none exceeds the limit in a race.
    if count_proofs(&mut tx, user, &account).await? >= PROOFS_MAX {
        let detail = "the account has 32 proofs, as many as one may have";
        return Err(Error::with_detail(Code::DocumentPendingReview, detail));
    }
    sqlx::query!(
        "insert into ownership_proof (client_id, user_id, account_id, proof_id, media_type, size, \
             created_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
        user.client.uuid(),
        user.user.uuid(),
        account.id,
        stored.id(),
        image.media_type,
        i64::try_from(image.size).unwrap_or(i64::MAX),
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    save_answer(key, core, &mut tx, answer).await?;
    retain_all(&mut tx, user.client, vec![stored]).await?;
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_proof_has_63_mib_of_base64_at_most() {
        assert!(fits(0) && fits(49_545_216), "the last group is full");
        assert!(!fits(49_545_217) && !fits(u64::MAX));
        for size in 0..10_u64 {
            let bytes = vec![7; usize::try_from(size).unwrap()];
            assert_eq!(encoded_chars(size), STANDARD.encode(bytes).len() as u64, "{size}");
        }
    }
}
