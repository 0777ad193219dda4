//! Personal values at rest: sealed under a data key of each user's own, which is itself sealed by
//! the master key. Deleting that key makes all of them unreadable, in every copy.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::Core;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::secrets::{DataKey, Purpose};
use crate::types::{ClientId, Country, EmailAddress, PhoneNumber, UserId};

/// What is known of a person or a business. Sealed as one object; a member that is not known is
/// absent.
#[derive(Clone, Default, Serialize, Deserialize)]
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

/// Opens and seals the personal values of one user.
#[derive(Debug)]
pub(crate) struct Vault {
    key: DataKey,
    client: ClientId,
    user: UserId,
}

impl Vault {
    /// The vault of a new user.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn make(core: &Core, client: ClientId, user: UserId) -> Result<Self> {
        Ok(Self { key: DataKey::random(&core.clock)?, client, user })
    }

    /// The vault whose key is stored as `sealed_key`.
    ///
    /// # Errors
    /// When it is another user's, or was sealed by another master key.
    pub(crate) fn open(
        core: &Core,
        client: ClientId,
        user: UserId,
        sealed_key: &[u8],
    ) -> Result<Self> {
        let key = DataKey::from_wrapped(&core.keys, &key_context(client, user), sealed_key)?;
        Ok(Self { key, client, user })
    }

    /// The vault of a stored user. One that came without personal values gets a key now.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(crate) async fn of(
        conn: &mut PgConnection,
        core: &Core,
        client: ClientId,
        user: UserId,
    ) -> Result<Self> {
        let stored = sqlx::query_scalar!(
            "select sealed_key from end_user where client_id = $1 and user_id = $2",
            client.uuid(),
            user.uuid(),
        )
        .fetch_one(&mut *conn)
        .await?;
        if let Some(sealed) = stored {
            return Self::open(core, client, user, &sealed);
        }
        let made = Self::make(core, client, user)?;
        let kept = sqlx::query_scalar!(
            r#"
            update end_user set sealed_key = coalesce(sealed_key, $3)
            where client_id = $1 and user_id = $2 and deleted_at is null
            returning sealed_key as "sealed_key!"
            "#,
            client.uuid(),
            user.uuid(),
            made.sealed_key(core)?,
        )
        .fetch_one(conn)
        .await?;
        Self::open(core, client, user, &kept)
    }

    /// A vault with this key.
    #[cfg(test)]
    pub(crate) fn with_key(key: DataKey, client: ClientId, user: UserId) -> Self {
        Self { key, client, user }
    }

    /// The key as it is stored.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn sealed_key(&self, core: &Core) -> Result<Vec<u8>> {
        self.key.wrap(&core.keys, &core.clock, &key_context(self.client, self.user))
    }

    /// Seals a value of the column or row that `place` names.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal(&self, clock: &Clock, place: &str, plain: &[u8]) -> Result<Vec<u8>> {
        self.key.seal(clock, &self.context(place), plain)
    }

    /// Opens what [`Vault::seal`] sealed for the same place.
    ///
    /// # Errors
    /// When it is another user's or another place's, or was altered.
    pub(crate) fn open_sealed(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        self.key.open(&self.context(place), sealed)
    }

    /// Seals the key of an object of its own, which `place` names.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal_key(&self, clock: &Clock, place: &str, key: &DataKey) -> Result<Vec<u8>> {
        self.key.seal_key(clock, &self.context(place), key)
    }

    /// The key that [`Vault::seal_key`] sealed for the same place.
    ///
    /// # Errors
    /// As [`Vault::open_sealed`].
    pub(crate) fn open_key(&self, place: &str, sealed: &[u8]) -> Result<DataKey> {
        self.key.open_key(&self.context(place), sealed)
    }

    /// Seals what is known of the user.
    ///
    /// # Errors
    /// As [`Vault::seal`].
    pub(crate) fn seal_personal(&self, core: &Core, personal: &Personal) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(personal)
            .map_err(|e| Error::internal("write personal values", e))?;
        self.seal(&core.clock, "end_user/personal", &plain)
    }

    /// What is known of the user.
    ///
    /// # Errors
    /// When it is another user's, or was altered.
    pub(crate) fn open_personal(&self, sealed: &[u8]) -> Result<Personal> {
        let plain = self.open_sealed("end_user/personal", sealed)?;
        serde_json::from_slice(&plain).map_err(|_| Error::broken("read personal values"))
    }

    fn context(&self, place: &str) -> String {
        format!("{place}/{}/{}", self.client, self.user)
    }
}

fn key_context(client: ClientId, user: UserId) -> String {
    format!("end_user/key/{client}/{user}")
}

/// What is known of a user whose columns are these. Nothing, where there is no key: the user came
/// without personal values, or they are erased.
///
/// # Errors
/// As [`Vault::open_personal`].
pub(crate) fn read(
    core: &Core,
    client: ClientId,
    user: UserId,
    (sealed_key, personal): (Option<&[u8]>, Option<&[u8]>),
) -> Result<Personal> {
    match (sealed_key, personal) {
        (Some(key), Some(personal)) => {
            Vault::open(core, client, user, key)?.open_personal(personal)
        }
        _ => Ok(Personal::default()),
    }
}

/// By what an e-mail address is found: a keyed digest, of this client's alone.
///
/// # Errors
/// As [`crate::secrets::MasterKey::mac`].
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
