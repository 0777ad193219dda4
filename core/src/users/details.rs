//! Reading of the members of a registration or an update, which collects all violations.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::account::Account;
use super::documents::{self, Document};
use super::personal_data::PersonalData;
use super::website_region::WebsiteRegion;
use super::{birth_date, chamber_of_commerce};
use crate::auth::caller::Client;
use crate::http::fields::{Fields, flag};
use crate::http::upload::UploadedBody;
use crate::platform::crypto::Secret;
use crate::platform::error::{Code, Refusal};
use crate::users::verification::questions;
use rampart_types::{Country, EmailAddress, UserIdentifier, plain_text};

/// Characters of a password (API document, limits).
pub(super) const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=64;
/// Characters of a name, a street or a city.
const NAME_CHARS_MAX: usize = 100;
/// Characters of a house number with its addition, and of a postal code.
const NUMBER_CHARS_MAX: usize = 20;
/// Characters of a share token.
const SHARE_TOKEN_CHARS_MAX: usize = 1_024;
/// Most AMLD5 answers of one request, and most characters of a key or an answer.
const ANSWERS_MAX: usize = 32;
const ANSWER_CHARS_MAX: usize = 255;
/// Prefix of the keys of AMLD5 questions.
const QUESTION_PREFIX: &str = "kyc-amld5-";

/// The user details in a request. `None` if not sent.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) personal: PersonalData,
    pub(super) country: Option<Country>,
    pub(super) identifier: Option<UserIdentifier>,
    pub(super) email_code: Option<String>,
    pub(super) password: Option<Secret>,
    /// Proves that a change of password or address is the user's.
    pub(super) old_password: Option<Secret>,
    pub(super) region: Option<WebsiteRegion>,
    pub(super) is_business: Option<bool>,
    pub(super) privacy_agreement: Option<bool>,
    pub(super) newsletter: Option<bool>,
    pub(super) documents: Vec<Document>,
}

impl Details {
    /// True if the request names a country of residence other than the known one.
    pub(super) fn names_other_country(&self, known: Option<&str>) -> bool {
        self.country.is_some_and(|country| known != Some(country.as_str()))
    }

    /// Leaves out the images and the password of a request that will be refused: neither is stored or
    /// hashed for nothing.
    pub(super) fn leave_out_costly(&mut self) {
        self.documents.clear();
        self.password = None;
    }

    /// Completes half a region by what is known of the user; ER084 in `refusal` where they do not fit.
    pub(super) fn complete_region(
        &mut self,
        client: &Client,
        known: &Account,
        refusal: &mut Refusal,
    ) {
        let Some(region) = self.region.take() else { return };
        let residence = self.country.map(Country::as_str).or(known.country.as_deref());
        match region.complete(client, known.region.as_deref(), residence) {
            Ok(region) => self.region = Some(region),
            Err(violation) => refusal.add_violation(violation),
        }
    }
}

/// The form of a request, which decides the required members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormKind {
    /// E-mail address, country and identifier.
    Registration,
    /// E-mail address and country; the page knows the identifier.
    Page,
    /// None.
    Change,
}

/// Reads every member; violations are added to `fields`.
pub(super) fn read(
    fields: &mut Fields<'_>,
    form: FormKind,
    client: &Client,
    now: DateTime<Utc>,
    upload: Option<&UploadedBody>,
) -> Details {
    let country = country(fields, form, client);
    let business_country =
        fields.optional("businessCountry", Code::BusinessCountryInvalid, |value| {
            value.as_str()?.parse().ok()
        });
    let personal = PersonalData {
        email: email(fields, form),
        first_name: plain(fields, "firstName", Code::FirstNameInvalid, NAME_CHARS_MAX),
        last_name: plain(fields, "lastName", Code::LastNameInvalid, NAME_CHARS_MAX),
        phone_number: fields.optional("phoneNumber", Code::PhoneNumberInvalid, |value| {
            value.as_str()?.parse().ok()
        }),
        date_of_birth: fields.optional("dateOfBirth", Code::UserUnderage, |value| {
            birth_date::parse(value.as_str()?).filter(|born| birth_date::is_adult(*born, now))
        }),
        nationality: fields.optional("nationality", Code::CountryCodeInvalid, |value| {
            let code: Country = value.as_str()?.parse().ok()?;
            let known = &client.catalogue.nationalities;
            known.iter().any(|known| known.code == code.as_str()).then_some(code)
        }),
        address: plain(fields, "address", Code::StreetInvalid, NAME_CHARS_MAX),
        address_no: plain(fields, "addressNo", Code::HouseNumberInvalid, NUMBER_CHARS_MAX),
        city: plain(fields, "city", Code::CityInvalid, NAME_CHARS_MAX),
        postal_code: plain(fields, "postalCode", Code::PostalCodeInvalid, NUMBER_CHARS_MAX),
        business_name: plain(fields, "businessName", Code::BusinessNameInvalid, NAME_CHARS_MAX),
        business_country,
        chamber_of_commerce: fields.optional(
            "chamberOfCommerce",
            Code::ChamberOfCommerceInvalid,
            |value| chamber_of_commerce::read(value.as_str()?, business_country.or(country)),
        ),
        tax_country: None,
        tax_number: None,
        share_token: plain(fields, "shareToken", Code::RequestMalformed, SHARE_TOKEN_CHARS_MAX),
        amld5_answers: fields
            .optional("amld5QuestionAnswers", Code::RequestMalformed, answers)
            .unwrap_or_default(),
    };
    // Who has a business's details is one, unless the request says otherwise.
    let describes_business = personal.business_name.is_some()
        || personal.business_country.is_some()
        || personal.chamber_of_commerce.is_some();
    let is_business = fields.optional("isBusiness", Code::RequestMalformed, flag);
    Details {
        personal,
        country,
        identifier: identifier(fields, form),
        email_code: fields.optional("emailCode", Code::EmailCodeInvalid, crate::http::fields::text),
        password: password(fields),
        old_password: match form {
            FormKind::Change => fields.optional("oldPassword", Code::PasswordMissing, |value| {
                value.as_str().filter(|text| !text.is_empty()).map(Secret::new)
            }),
            FormKind::Registration | FormKind::Page => None,
        },
        region: region(fields, form, client, country),
        is_business: is_business.or(describes_business.then_some(true)),
        privacy_agreement: fields.optional("privacyAgreement", Code::RequestMalformed, flag),
        newsletter: fields.optional("newsletterSubscription", Code::RequestMalformed, flag),
        documents: documents::read(fields, upload),
    }
}

/// The e-mail address in a registration or an update.
fn email(fields: &mut Fields<'_>, form: FormKind) -> Option<EmailAddress> {
    match form {
        FormKind::Registration | FormKind::Page => required_email(fields, "email"),
        FormKind::Change => {
            fields.value("email").is_some().then(|| required_email(fields, "email"))?
        }
    }
}

/// An e-mail address: ER003 when it is missing or empty, ER001 when it is invalid.
pub(super) fn required_email(fields: &mut Fields<'_>, name: &'static str) -> Option<EmailAddress> {
    let code = match fields.value(name) {
        None => Code::EmailMissing,
        Some(Value::String(text)) if text.is_empty() => Code::EmailMissing,
        Some(_) => Code::EmailInvalid,
    };
    fields.required(name, code, |value| value.as_str()?.parse().ok())
}

fn plain(
    fields: &mut Fields<'_>,
    name: &'static str,
    code: Code,
    chars_max: usize,
) -> Option<String> {
    fields.optional(name, code, |value| plain_text(value.as_str()?, chars_max))
}

/// ER062 when it is missing; otherwise as [`crate::tenancy::tenants::Tenant::country`].
fn country(fields: &mut Fields<'_>, form: FormKind, client: &Client) -> Option<Country> {
    if fields.value("country").is_none() && form != FormKind::Change {
        fields.refuse_member(Code::CountryMissing, "country");
    }
    client.tenant.country(fields, "country")
}

/// The region of the website. In a registration, half of one is completed by the country of residence;
/// a change of it waits for the stored one.
fn region(
    fields: &mut Fields<'_>,
    form: FormKind,
    client: &Client,
    country: Option<Country>,
) -> Option<WebsiteRegion> {
    let region = WebsiteRegion::read(fields, client)?;
    match form {
        FormKind::Change => Some(region),
        FormKind::Registration | FormKind::Page => {
            region.suggested(client, country.map(Country::as_str)).map(WebsiteRegion::Whole)
        }
    }
}

/// ER053 when it is missing or empty, ER102 when it is malformed.
fn identifier(fields: &mut Fields<'_>, form: FormKind) -> Option<UserIdentifier> {
    let code = match (fields.value("identifier"), form) {
        (None, FormKind::Change | FormKind::Page) => return None,
        (None, FormKind::Registration) => Code::UserIdentifierMissing,
        (Some(Value::String(text)), _) if text.is_empty() => Code::UserIdentifierMissing,
        (Some(_), _) => Code::UserIdentifierLengthInvalid,
    };
    fields.required("identifier", code, |value| value.as_str()?.parse().ok())
}

/// ER122 when it is too short (or no text), ER123 when it is too long.
fn password(fields: &mut Fields<'_>) -> Option<Secret> {
    let value = fields.value("password")?;
    let chars = value.as_str().map_or(0, |text| text.chars().count());
    let code =
        if chars > *PASSWORD_CHARS.end() { Code::PasswordTooLong } else { Code::PasswordTooShort };
    fields.required("password", code, |value| {
        value.as_str().filter(|_| PASSWORD_CHARS.contains(&chars)).map(Secret::new)
    })
}

/// Reads a map of question keys to answers; the text of an option is replaced by its key.
fn answers(value: &Value) -> Option<BTreeMap<String, String>> {
    let members = value.as_object().filter(|members| members.len() <= ANSWERS_MAX)?;
    members
        .iter()
        .map(|(key, answer)| {
            let topic = key.strip_prefix(QUESTION_PREFIX)?;
            let named = !topic.is_empty() && topic.len() <= ANSWER_CHARS_MAX;
            let answer = named.then(|| plain_answer(answer.as_str()?))??;
            let option = questions::find_option(key, &answer).map(str::to_owned);
            Some((key.clone(), option.unwrap_or(answer)))
        })
        .collect()
}

/// Reads an answer, which may be any text of a line, such as the range `< 10000`.
fn plain_answer(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.chars().nth(ANSWER_CHARS_MAX).is_none();
    (fits && !text.chars().any(char::is_control)).then(|| text.to_owned())
}
