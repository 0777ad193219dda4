//! The members of a registration and of an update, for the OpenAPI document.

use super::details::FormKind;
use crate::endpoint::openapi::doc::{Kind, Member, optional, required};

/// Number of members of a registration.
const COUNT: usize = 25;

/// Members of `POST /api/v2/user`.
pub(super) static REGISTRATION: [Member; COUNT] = members(FormKind::Registration);
/// Members of `PATCH /api/v2/user`.
pub(super) static CHANGE: [Member; COUNT] = members(FormKind::Change);
/// Members of `PATCH /api/v2/user` alone.
pub(super) const CHANGE_ALONE: &[Member] = &[optional(
    "oldPassword",
    Kind::Text,
    "The password until now: for a new `password` or `email`, unless `emailCode` proves the address \
     known.",
)];

/// A valid registration.
pub(super) const REQUEST: &str = r#"{
    "email": "ada@example.com", "country": "NL",
    "identifier": "5f2b0c8a9d7e4f61a3b2c1d0e9f8a7b65f2b0c8a", "password": "correct horse",
    "firstName": "Ada", "lastName": "Lovelace", "dateOfBirth": "1990-12-10",
    "phoneNumber": "+31612345678", "address": "Keizersgracht", "addressNo": "7-II",
    "postalCode": "1015 CJ", "city": "Amsterdam", "websiteLanguage": "nl",
    "websiteCountry": "NL", "privacyAgreement": true
}"#;

/// The response to both.
pub(super) const ANSWER: &str = r#"{
    "email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace",
    "phoneNumber": "+31612345678", "country": "NL", "isBusiness": false,
    "registrationDate": "2026-11-20T10:00:00Z", "activationDate": null
}"#;

/// A name or a line of an address.
const LINE: Kind = Kind::Sized(1, 100);
/// A house number or a postal code.
const NUMBER: Kind = Kind::Sized(1, 20);
const COUNTRY: Kind = Kind::Matching("^[A-Za-z]{2}$");
const SIDE: Kind = Kind::Matching("^[A-Za-z0-9_-]{1,32}$");

static SIDES: Kind = Kind::Object(&[
    optional("documentType", SIDE, "Such as `passport`. Required, in one of its two spellings."),
    optional("documentSide", SIDE, "Such as `front`. Required likewise."),
    optional("data", Kind::Text, "A JPEG, PNG or PDF in base64."),
    optional("document_type", SIDE, "Another spelling of `documentType`."),
    optional("document_side", SIDE, "Another spelling of `documentSide`."),
]);

/// A member that is required in a registration.
const fn needed(form: FormKind, name: &'static str, kind: Kind, about: &'static str) -> Member {
    match form {
        FormKind::Registration => required(name, kind, about),
        FormKind::Page | FormKind::Change => optional(name, kind, about),
    }
}

const fn members(form: FormKind) -> [Member; COUNT] {
    [
        needed(form, "email", Kind::Format("email"), "Unique for the client, in either case."),
        needed(form, "country", COUNTRY, "ISO 3166-1 alpha-2."),
        needed(form, "identifier", Kind::Matching("^[A-Za-z0-9]{36,255}$"), "Linked to the user."),
        optional("emailCode", Kind::Text, "The code that was mailed last."),
        optional("chamberOfCommerce", Kind::Text, "In the form of the business's country."),
        optional("businessName", LINE, "Without emoji, `<` and `>`."),
        optional("nationality", COUNTRY, "A code of `nationalities` (system info)."),
        optional("businessCountry", COUNTRY, "ISO 3166-1 alpha-2."),
        optional(
            "amld5QuestionAnswers",
            Kind::Map(&Kind::Sized(1, 255)),
            "By question key; at most 32, and 64 of one user.",
        ),
        optional("phoneNumber", Kind::Matching("^\\+[1-9][0-9]{6,14}$"), "E.164."),
        optional("dateOfBirth", Kind::Format("date"), "18 or older, by the date in Amsterdam."),
        optional("firstName", LINE, "Without emoji, `<` and `>`."),
        optional("lastName", LINE, "Without emoji, `<` and `>`."),
        optional("address", LINE, "The street."),
        optional("addressNo", NUMBER, "The house number."),
        optional("postalCode", NUMBER, "The postal code."),
        optional("city", LINE, "The city."),
        optional(
            "websiteCountry",
            COUNTRY,
            "With `websiteLanguage`, one of `supportedRegions`; either alone is completed.",
        ),
        optional("websiteLanguage", Kind::Matching("^[A-Za-z]{2}$"), "With `websiteCountry`."),
        optional("isBusiness", Kind::Flag, "`true` for a business."),
        optional("privacyAgreement", Kind::Flag, "`true` if the user has agreed."),
        optional("newsletterSubscription", Kind::Flag, "`true` if the user wants the newsletter."),
        optional("password", Kind::Sized(8, 64), "Without one the user cannot log in."),
        optional(
            "shareToken",
            Kind::Sized(1, 1024),
            "Of an identity check elsewhere. Given once to the provider that checks the user's \
             identity, then erased; also erased with the user.",
        ),
        optional(
            "identityDocument",
            Kind::List(&SIDES),
            "At most 8 sides, each once, and 32 of one user.",
        ),
    ]
}
