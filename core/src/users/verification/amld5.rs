//! `GET` and `POST /api/v1/user/verify/amld5`: the questions that anti-money-laundering law requires,
//! and their answers.

use std::collections::BTreeMap;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::questions::{self, QUESTIONS, Question};
use crate::Core;
use crate::auth::caller::{ClientAndUser, ClientMaybeUser};
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, save_answer};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Refusal, Result, Violation};
use crate::tenancy::tenants::Scope;
use crate::users::answers;
use crate::users::profile::{self, Profile};
use rampart_types::{Language, Locale};

/// Most answers in one request.
const ANSWERS_MAX: usize = 32;

/// The questions, version 1.
pub struct QuestionsV1;

impl Endpoint for QuestionsV1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/user/verify/amld5";
    const SCOPE: Option<Scope> = Some(Scope::UsersRead);
    const ERRORS: &'static [Code] = &[Code::LocaleInvalid];
    const DOC: Doc = Doc {
        summary: "List the AMLD5 questions",
        details: "With a user credential: the questions for that user, a person or a business. \
                  Without one: all of them.",
        query: &[optional(
            "locale",
            Kind::Text,
            "Language of the texts: nl, en, de, fr or es, \
                                                 with any region. English when it is absent.",
        )],
        answer: r#"{"questions": [{"key": "kyc-amld5-employment-status",
            "label": "What is your employment status?",
            "answerOptions": ["Employed", "Self-employed", "Student", "Retired", "Unemployed"]}]}"#,
        ..Doc::NONE
    };
    type Caller = ClientMaybeUser;
    type Request = Language;
    type Response = Json<Questionnaire>;

    fn read(input: &Input, _: &ClientMaybeUser) -> Result<Language> {
        let mut fields = Fields::of_query(input.head.query.as_deref());
        let locale: Option<Locale> =
            fields.optional("locale", Code::LocaleInvalid, |value| value.as_str()?.parse().ok());
        let language = locale.map_or(Language::En, |locale| locale.language());
        fields.finish(Some(language))
    }

    async fn call(
        core: &Core,
        caller: ClientMaybeUser,
        language: Language,
    ) -> Result<Json<Questionnaire>> {
        let business = match caller.user {
            Some(user) => {
                let row = sqlx::query_scalar!(
                    "select is_business from end_user where client_id = $1 and user_id = $2",
                    caller.client.id().uuid(),
                    user.uuid(),
                );
                Some(row.fetch_optional(&core.db).await?.ok_or(Code::UserNotFound)?)
            }
            None => None,
        };
        let questions =
            QUESTIONS.iter().filter(|question| business.is_none_or(|kind| question.is_for(kind)));
        Ok(Json(Questionnaire {
            questions: questions.map(|q| LocalizedQuestion::new(q, language)).collect(),
        }))
    }
}

/// Questions in one language.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Questionnaire {
    /// The questions.
    questions: Vec<LocalizedQuestion>,
}

/// A question in one language.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Amld5Question")]
#[serde(rename_all = "camelCase")]
pub(super) struct LocalizedQuestion {
    /// Key of the question, which an answer names.
    key: &'static str,
    /// Text of the question.
    label: &'static str,
    /// Texts of the answers, of which one is chosen.
    answer_options: Vec<&'static str>,
}

impl LocalizedQuestion {
    pub(super) fn new(question: &Question, language: Language) -> Self {
        Self {
            key: question.key,
            label: question.label(language),
            answer_options: question.options(language),
        }
    }
}

/// The answers, version 1.
pub struct AnswersV1;

impl Endpoint for AnswersV1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/user/verify/amld5";
    const SCOPE: Option<Scope> = Some(Scope::UsersWrite);
    const ERRORS: &'static [Code] =
        &[Code::RequestMalformed, Code::AnswersMalformed, Code::AnswerInvalid];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Answer AMLD5 questions",
        details: "An answer is the text of one of the question's options, in any of the five \
                  languages. A later answer takes the place of an earlier one; questions may be \
                  answered one at a time. Those that are all asked again are answered together.",
        body: Shape::ListOf(&[
            required("key", Kind::Text, "Key of the question."),
            required("answer", Kind::Text, "Text of one of its options."),
        ]),
        request: r#"[{"key": "kyc-amld5-employment-status", "answer": "Employed"}]"#,
        answer: profile::EXAMPLE,
        ..Doc::NONE
    };
    type Caller = ClientAndUser;
    type Request = BTreeMap<String, String>;
    type Response = Json<Profile>;

    fn read(input: &Input, _: &ClientAndUser) -> Result<BTreeMap<String, String>> {
        read_answers(&input.document)
    }

    async fn call(
        core: &Core,
        caller: ClientAndUser,
        answers: BTreeMap<String, String>,
    ) -> Result<Json<Profile>> {
        Self::call_with_key(core, caller, answers, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: ClientAndUser,
        answers: BTreeMap<String, String>,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Profile>> {
        let mut tx = core.db.begin().await?;
        let account = answers::add(&mut tx, core, &caller.client, caller.user, answers).await?;
        let profile = Profile::load(&mut tx, core, account).await?;
        save_answer(key, core, &mut tx, &profile).await?;
        tx.commit().await?;
        Ok(Json(profile))
    }
}

/// Reads option keys by question. ER100 unless it is a list of objects with two texts, each question
/// once; ER101 for an unknown question or option.
fn read_answers(document: &Value) -> Result<BTreeMap<String, String>> {
    let malformed = |detail: &'static str| {
        crate::platform::error::Error::with_detail(Code::AnswersMalformed, detail)
    };
    let items = document.as_array().ok_or_else(|| malformed("send a list"))?;
    if !(1..=ANSWERS_MAX).contains(&items.len()) {
        return Err(malformed("send 1 to 32 answers"));
    }
    let malformed_member = |name: &'static str, detail: &'static str| Violation {
        code: Code::AnswersMalformed,
        field: Some(name),
        detail: Some(detail.into()),
    };
    let (mut answers, mut refusal) = (BTreeMap::new(), Refusal::new());
    for item in items {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let (Some(key), Some(answer)) = (text("key"), text("answer")) else {
            let name = if text("key").is_none() { "key" } else { "answer" };
            let detail = "every item has the texts key and answer";
            refusal.add_violation(malformed_member(name, detail));
            continue;
        };
        let Some(option) = questions::find_option(key, answer) else {
            let is_asked = QUESTIONS.iter().any(|question| question.key == key);
            let name = if is_asked { "answer" } else { "key" };
            refusal.add_of_member(Code::AnswerInvalid, name);
            continue;
        };
        if answers.insert(key.to_owned(), option.to_owned()).is_some() {
            refusal.add_violation(malformed_member("key", "a question is answered twice"));
        }
    }
    if refusal.is_empty() { Ok(answers) } else { Err(refusal.into()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_in_any_language_are_stored_by_key() {
        let document = json!([
            {"key": "kyc-amld5-employment-status", "answer": "Angestellt"},
            {"key": "kyc-amld5-which-industry", "answer": "Autre", "more": 1},
        ]);
        let answers = read_answers(&document).unwrap();
        assert_eq!(answers["kyc-amld5-employment-status"], "employed");
        assert_eq!(answers["kyc-amld5-which-industry"], "other");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(key in ".*", answer in ".*") {
            let error = read_answers(&json!([{"key": key, "answer": answer}])).unwrap_err();
            prop_assert!(error.is(Code::AnswerInvalid));
        }
    }
}
