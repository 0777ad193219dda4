//! Personal values at rest: sealed under a data key of each user's own, which is itself sealed by
//! the master key. Deleting that key makes all of them unreadable, in every copy.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, Country, EmailAddress, PhoneNumber, UserId};

/// What is known of a person or a business. Sealed as one object; a member that is not known is
/// absent.
#[derive(Clone, Default, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "PersonalData")]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Personal {
    pub(crate) email: Option<EmailAddress>,
    pub(crate) first_name: Option<String>,
    pub(crate) last_name: Option<String>,
    pub(crate) phone_number: Option<PhoneNumber>,
    pub(crate) date_of_birth: Option<NaiveDate>,
    pub(crate) nationality: Option<Country>,
    pub(crate) address: Option<String>,
    pub(crate) address_no: Option<String>,
    pub(crate) postal_code: Option<String>,
    pub(crate) city: Option<String>,
    pub(crate) business_name: Option<String>,
    pub(crate) business_country: Option<Country>,
    pub(crate) chamber_of_commerce: Option<String>,
    pub(crate) share_token: Option<String>,
    /// Answers by question: the option's key, or what was sent where it is no option's text.
    pub(crate) amld5_answers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Personal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Personal(…)")
    }
}

impl Personal {
    /// Takes over what `change` names; the rest stays.
    pub(crate) fn merge(&mut self, change: Self) {
        fn put<T>(kept: &mut Option<T>, named: Option<T>) {
            if named.is_some() {
                *kept = named;
            }
        }
        put(&mut self.email, change.email);
        put(&mut self.first_name, change.first_name);
        put(&mut self.last_name, change.last_name);
        put(&mut self.phone_number, change.phone_number);
        put(&mut self.date_of_birth, change.date_of_birth);
        put(&mut self.nationality, change.nationality);
        put(&mut self.address, change.address);
        put(&mut self.address_no, change.address_no);
        put(&mut self.postal_code, change.postal_code);
        put(&mut self.city, change.city);
        put(&mut self.business_name, change.business_name);
        put(&mut self.business_country, change.business_country);
        put(&mut self.chamber_of_commerce, change.chamber_of_commerce);
        put(&mut self.share_token, change.share_token);
        self.amld5_answers.extend(change.amld5_answers);
    }

    /// Who the identity check was about.
    pub(crate) fn identity(&self) -> (Option<&str>, Option<&str>, Option<NaiveDate>) {
        (self.first_name.as_deref(), self.last_name.as_deref(), self.date_of_birth)
    }

    /// Where the person lives, once all of it is known.
    pub(crate) fn residence(&self) -> Option<[&str; 4]> {
        let parts = [&self.address, &self.address_no, &self.postal_code, &self.city];
        let [address, number, code, city] = parts.map(Option::as_deref);
        Some([address?, number?, code?, city?])
    }
}

/// The personal-data key of a stored user. One that came without personal values gets a key now.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn key_of(
    conn: &mut PgConnection,
    core: &Core,
    client: ClientId,
    user: UserId,
) -> Result<PersonalDataKey> {
    let stored = sqlx::query_scalar!(
        "select sealed_key from end_user where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if let Some(sealed) = stored {
        return PersonalDataKey::open(&core.keys, client, user, &sealed);
    }
    let new = PersonalDataKey::generate(&core.clock, client, user)?;
    let sealed = sqlx::query_scalar!(
        r#"
            update end_user set sealed_key = coalesce(sealed_key, $3)
            where client_id = $1 and user_id = $2 and deleted_at is null
            returning sealed_key as "sealed_key!"
            "#,
        client.uuid(),
        user.uuid(),
        new.wrapped(&core.keys, &core.clock)?,
    )
    .fetch_one(conn)
    .await?;
    PersonalDataKey::open(&core.keys, client, user, &sealed)
}

/// Seals a user's personal values.
///
/// # Errors
/// As [`PersonalDataKey::seal`].
pub(crate) fn seal(key: &PersonalDataKey, core: &Core, personal: &Personal) -> Result<Vec<u8>> {
    let plain =
        serde_json::to_vec(personal).map_err(|e| Error::internal("write personal values", e))?;
    key.seal(&core.clock, "end_user/personal", &plain)
}

/// Opens a user's personal values.
///
/// # Errors
/// When they are another user's, or were altered.
pub(crate) fn open(key: &PersonalDataKey, sealed: &[u8]) -> Result<Personal> {
    let plain = key.open_sealed("end_user/personal", sealed)?;
    serde_json::from_slice(&plain).map_err(|_| Error::broken("read personal values"))
}

/// What is known of a user whose columns are these. Nothing, where there is no key: the user came
/// without personal values, or they are erased.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(
    core: &Core,
    client: ClientId,
    user: UserId,
    (sealed_key, personal): (Option<&[u8]>, Option<&[u8]>),
) -> Result<Personal> {
    match (sealed_key, personal) {
        (Some(key), Some(personal)) => {
            open(&PersonalDataKey::open(&core.keys, client, user, key)?, personal)
        }
        _ => Ok(Personal::default()),
    }
}

/// By what an e-mail address is found: a keyed digest, of this client's alone.
///
/// # Errors
/// As [`crate::platform::crypto::MasterKey::mac`].
pub(crate) fn email_index(core: &Core, client: ClientId, email: &EmailAddress) -> Result<Vec<u8>> {
    let message = format!("email/{client}/{}", email.as_str());
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let mut known = Personal {
            first_name: Some("Ada".to_owned()),
            city: Some("London".to_owned()),
            ..Personal::default()
        };
        known.amld5_answers.insert("a".to_owned(), "1".to_owned());
        let change = Personal {
            city: Some("Utrecht".to_owned()),
            amld5_answers: BTreeMap::from([("b".to_owned(), "2".to_owned())]),
            ..Personal::default()
        };
        known.merge(change);
        assert_eq!(known.first_name.as_deref(), Some("Ada"));
        assert_eq!(known.city.as_deref(), Some("Utrecht"));
        assert_eq!(known.amld5_answers.len(), 2);
        assert_eq!(known.residence(), None);
        assert_eq!(format!("{known:?}"), "Personal(…)");
    }
}
