//! Personal data at rest, sealed with each user's own data key, which is wrapped by the tenant's key and
//! the master key. Deleting the data key makes them unreadable; in a copy of the database that has it,
//! once the master key that sealed it is destroyed.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, Country, EmailAddress, PhoneNumber, UserKey};

/// Personal data of a person or a business, sealed as one object; unknown members are absent.
#[derive(Clone, Default, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "PersonalData")]
#[serde(default, rename_all = "camelCase")]
pub struct PersonalData {
    /// The e-mail address.
    pub email: Option<EmailAddress>,
    /// The first name.
    pub first_name: Option<String>,
    /// The last name.
    pub last_name: Option<String>,
    /// The phone number.
    pub phone_number: Option<PhoneNumber>,
    /// The date of birth.
    pub(crate) date_of_birth: Option<NaiveDate>,
    /// The nationality, as an ISO 3166-1 alpha-2 code.
    pub(crate) nationality: Option<Country>,
    /// The street.
    pub(crate) address: Option<String>,
    /// The number of the house.
    pub(crate) address_no: Option<String>,
    /// The postal code.
    pub(crate) postal_code: Option<String>,
    /// The city.
    pub(crate) city: Option<String>,
    /// The name of the business; null for a person.
    pub business_name: Option<String>,
    /// The country of the business, as an ISO 3166-1 alpha-2 code.
    pub(crate) business_country: Option<Country>,
    /// The number in the register of businesses.
    pub(crate) chamber_of_commerce: Option<String>,
    /// The token by which a check of another provider is shared, until an identity check is given it.
    pub(crate) share_token: Option<String>,
    /// The country of tax residence, as an ISO 3166-1 alpha-2 code.
    pub(crate) tax_country: Option<Country>,
    /// The tax number there.
    pub(crate) tax_number: Option<String>,
    /// Answers by question: the option's key, or the text that was sent if it is no option.
    pub(crate) amld5_answers: BTreeMap<String, String>,
}

rampart_types::opaque_debug!(PersonalData);

impl PersonalData {
    /// Replaces the members that `change` has; the others stay.
    pub(crate) fn merge(&mut self, change: Self) {
        fn replace<T>(current: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *current = new;
            }
        }
        replace(&mut self.email, change.email);
        replace(&mut self.first_name, change.first_name);
        replace(&mut self.last_name, change.last_name);
        replace(&mut self.phone_number, change.phone_number);
        replace(&mut self.date_of_birth, change.date_of_birth);
        replace(&mut self.nationality, change.nationality);
        replace(&mut self.address, change.address);
        replace(&mut self.address_no, change.address_no);
        replace(&mut self.postal_code, change.postal_code);
        replace(&mut self.city, change.city);
        replace(&mut self.business_name, change.business_name);
        replace(&mut self.business_country, change.business_country);
        replace(&mut self.chamber_of_commerce, change.chamber_of_commerce);
        replace(&mut self.share_token, change.share_token);
        replace(&mut self.tax_country, change.tax_country);
        replace(&mut self.tax_number, change.tax_number);
        self.amld5_answers.extend(change.amld5_answers);
    }

    /// The data that law wants kept: without contact details and what another service is reached by.
    pub(crate) fn retained(self) -> Self {
        Self { email: None, phone_number: None, share_token: None, ..self }
    }

    /// The data that an identity check verifies.
    pub(crate) fn identity(&self) -> (Option<&str>, Option<&str>, Option<NaiveDate>) {
        (self.first_name.as_deref(), self.last_name.as_deref(), self.date_of_birth)
    }

    /// True if what was known of that is another one by now; what was missing contradicts nothing.
    pub(crate) fn contradicts(&self, later: &Self) -> bool {
        let (first, last, born) = self.identity();
        let (later_first, later_last, later_born) = later.identity();
        (first.is_some() && first != later_first)
            || (last.is_some() && last != later_last)
            || (born.is_some() && born != later_born)
    }

    /// The residential address, if complete.
    pub(crate) fn residence(&self) -> Option<[&str; 4]> {
        let parts = [&self.address, &self.address_no, &self.postal_code, &self.city];
        let [address, number, code, city] = parts.map(Option::as_deref);
        Some([address?, number?, code?, city?])
    }
}

/// Loads the key of a stored user. A user without personal data gets a key.
///
/// # Errors
/// ER709 when the user is erased; when the database cannot be used.
pub async fn load_key(conn: &mut Connection, core: &Core, key: UserKey) -> Result<PersonalDataKey> {
    let stored = sqlx::query_scalar!(
        "select coalesce(k.sealed, nullif(sealed_key, '')) from end_user \
         left join personal_key k using (client_id, user_id) \
         where client_id = $1 and user_id = $2",
        key.client.uuid(),
        key.user.uuid(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if let Some(sealed) = stored {
        return PersonalDataKey::open(&core.cipher(key.client), key, &sealed);
    }
    let new = PersonalDataKey::generate(&core.clock, key)?;
    store_key(conn, core, key, &new).await
}

/// Stores the key of a user who has none. Returns the key that the user has then: another
/// transaction may have been faster.
///
/// # Errors
/// ER709 when the user is erased; when the database cannot be used.
pub(super) async fn store_key(
    conn: &mut Connection,
    core: &Core,
    owner: UserKey,
    new: &PersonalDataKey,
) -> Result<PersonalDataKey> {
    // The lock makes an erasure wait, so that it finds the key.
    let sealed = sqlx::query_scalar!(
        "insert into personal_key as k (client_id, user_id, sealed) \
         select client_id, user_id, coalesce(nullif(sealed_key, ''), \
             case when exists (select from user_key_master_seal) then $4::bytea \
                 else $3::bytea end) from end_user \
         where client_id = $1 and user_id = $2 and deleted_at is null for share \
         on conflict (client_id, user_id) do update set sealed = k.sealed returning sealed",
        owner.client.uuid(),
        owner.user.uuid(),
        new.wrapped(&core.cipher(owner.client))?,
        new.wrapped_twice(&core.cipher(owner.client))?,
    )
    .fetch_optional(conn)
    .await?
    .ok_or(Code::UserNotFound)?;
    PersonalDataKey::open(&core.cipher(owner.client), owner, &sealed)
}

/// Seals a user's personal data.
///
/// # Errors
/// Those of [`PersonalDataKey::seal`].
pub(crate) fn seal(key: &PersonalDataKey, core: &Core, personal: &PersonalData) -> Result<Vec<u8>> {
    let plain =
        serde_json::to_vec(personal).map_err(|e| Error::internal("write personal values", e))?;
    key.seal(&core.clock, "end_user/personal", &plain)
}

/// Opens a user's personal data.
///
/// # Errors
/// When they belong to another user or were altered.
pub(crate) fn open(key: &PersonalDataKey, sealed: &[u8]) -> Result<PersonalData> {
    let plain = key.open_sealed("end_user/personal", sealed)?;
    serde_json::from_slice(&plain).map_err(|_| Error::invariant("read personal values"))
}

/// The columns of a user's personal data.
#[derive(Clone, Copy)]
pub struct SealedPersonalData<'a> {
    /// The user's key, wrapped.
    pub key: Option<&'a [u8]>,
    /// The data, sealed with the key.
    pub personal: Option<&'a [u8]>,
}

/// Opens the personal data of a user's columns. They are empty without a key: the user has none, or
/// they were erased.
///
/// # Errors
/// Those of [`open`].
pub fn read(core: &Core, owner: UserKey, sealed: SealedPersonalData<'_>) -> Result<PersonalData> {
    match (sealed.key, sealed.personal) {
        (Some(key), Some(personal)) => {
            open(&PersonalDataKey::open(&core.cipher(owner.client), owner, key)?, personal)
        }
        _ => Ok(PersonalData::default()),
    }
}

/// The blind index of an e-mail address: a keyed digest, scoped to the client.
///
/// # Errors
/// Those of [`crate::platform::crypto::MasterKey::mac`].
pub fn email_index(core: &Core, client: ClientId, email: &EmailAddress) -> Result<Vec<u8>> {
    let message = format!("email/{client}/{}", email.as_str());
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_absent_members() {
        let mut known = PersonalData {
            first_name: Some("Ada".to_owned()),
            city: Some("London".to_owned()),
            ..PersonalData::default()
        };
        known.amld5_answers.insert("a".to_owned(), "1".to_owned());
        let change = PersonalData {
            city: Some("Utrecht".to_owned()),
            amld5_answers: BTreeMap::from([("b".to_owned(), "2".to_owned())]),
            ..PersonalData::default()
        };
        known.merge(change);
        assert_eq!(known.first_name.as_deref(), Some("Ada"));
        assert_eq!(known.city.as_deref(), Some("Utrecht"));
        assert_eq!(known.amld5_answers.len(), 2);
        assert_eq!(known.residence(), None);
        let more = PersonalData { last_name: Some("King".to_owned()), ..known.clone() };
        assert!(!known.contradicts(&more) && more.contradicts(&known));
        assert_eq!(format!("{known:?}"), "PersonalData(…)");
    }
}
