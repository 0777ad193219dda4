//! Keys of single tenants (envelope encryption): each seals its tenant's values, and is stored wrapped
//! by the master key. A rotation of the master key wraps it again, one row per tenant; destroying it
//! makes every value of the tenant unreadable, in every copy.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use rampart_types::ClientId;
use ring::hmac;

use super::{DataKey, MasterKey};
use crate::platform::clock::Clock;
use crate::platform::error::{Error, Result};

/// Beginning of a value that a tenant's key has sealed; the id of that key follows.
pub(crate) const TENANT_MARK: &[u8; 3] = b"RT\x01";
/// Beginning of a value that a tenant's key has sealed, and the master key that once more.
const TWICE_MARK: &[u8; 3] = b"RL\x01";
/// Bytes of a key's id.
const ID_BYTES: usize = 4;
/// Bytes of mark and id.
const PREFIX_BYTES: usize = TENANT_MARK.len() + ID_BYTES;

/// The key of one tenant.
pub(crate) struct TenantKey {
    key: DataKey,
    prefix: [u8; PREFIX_BYTES],
    /// It opens values at once, and seals them from then on, when every edge has loaded it; `None`
    /// for the key that its tenant was created with.
    usable_from: Option<DateTime<Utc>>,
}

rampart_types::opaque_debug!(TenantKey);

impl TenantKey {
    /// Generates the key of a tenant.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn generate(clock: &Clock) -> Result<Self> {
        Ok(Self::new(DataKey::random(clock)?, None))
    }

    /// Opens a stored key.
    ///
    /// # Errors
    /// When it belongs to another tenant or was wrapped by another master key.
    pub(crate) fn from_wrapped(
        master: &MasterKey,
        client: ClientId,
        wrapped: &[u8],
        usable_from: Option<DateTime<Utc>>,
    ) -> Result<Self> {
        let key = DataKey::from_wrapped(master, &tenant_key_context(client), wrapped)?;
        Ok(Self::new(key, usable_from))
    }

    /// The key in its stored form, wrapped by the master key.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn wrapped(
        &self,
        master: &MasterKey,
        clock: &Clock,
        client: ClientId,
    ) -> Result<Vec<u8>> {
        self.key.wrap(master, clock, &tenant_key_context(client))
    }

    fn new(key: DataKey, usable_from: Option<DateTime<Utc>>) -> Self {
        let digest = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), b"rampart tenant key");
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..TENANT_MARK.len()].copy_from_slice(TENANT_MARK);
        prefix[TENANT_MARK.len()..].copy_from_slice(&digest.as_ref()[..ID_BYTES]);
        Self { key, prefix, usable_from }
    }
}

/// The context that a tenant's key is wrapped for.
pub fn tenant_key_context(client: ClientId) -> String {
    format!("tenant_key/{client}")
}

/// The context that the master key seals for what a tenant's key has sealed for this one.
fn outer_context(context: &str) -> String {
    format!("twice/{context}")
}

/// True if a tenant's key has sealed this value.
pub(crate) fn is_of_tenant_key(sealed: &[u8]) -> bool {
    sealed.starts_with(TENANT_MARK)
}

/// The keys of all tenants that have one, in memory: no statement is needed to seal or open.
#[derive(Debug, Default)]
pub(crate) struct TenantKeys(ArcSwap<HashMap<ClientId, Arc<TenantKey>>>);

impl TenantKeys {
    /// Replaces the keys of these tenants: one without a new key has none any more. Callers take turns.
    pub(crate) fn replace(&self, clients: &[ClientId], keys: HashMap<ClientId, TenantKey>) {
        let mut next = HashMap::clone(&self.0.load());
        for client in clients {
            next.remove(client);
        }
        next.extend(keys.into_iter().map(|(client, key)| (client, Arc::new(key))));
        self.0.store(Arc::new(next));
    }

    /// The key of a tenant, if it has one.
    pub(crate) fn get(&self, client: ClientId) -> Option<Arc<TenantKey>> {
        self.0.load().get(&client).map(Arc::clone)
    }
}

/// Seals and opens the values of one tenant: under the tenant's key, or under the master key for a
/// tenant without one. Values say which, so that both forms open.
#[derive(Debug)]
pub struct TenantCipher<'a> {
    master: &'a MasterKey,
    clock: &'a Clock,
    key: Option<Arc<TenantKey>>,
}

impl<'a> TenantCipher<'a> {
    /// The cipher of a tenant with this key.
    pub(crate) const fn new(
        master: &'a MasterKey,
        clock: &'a Clock,
        key: Option<Arc<TenantKey>>,
    ) -> Self {
        Self { master, clock, key }
    }

    /// Seals a value as [`DataKey::seal`] does, behind the id of its key.
    ///
    /// # Errors
    /// Without entropy for the nonce.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let Some(usable) = self.usable() else {
            return self.master.seal(self.clock, context, plain);
        };
        let sealed = usable.key.seal(self.clock, context, plain)?;
        Ok([&usable.prefix[..], &sealed].concat())
    }

    /// Seals a value as [`TenantCipher::seal`] does, and what a tenant's key has sealed under the master
    /// key once more: a copy is unreadable once either is gone.
    ///
    /// # Errors
    /// As [`TenantCipher::seal`].
    pub fn seal_twice(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let once = self.seal(context, plain)?;
        if !is_of_tenant_key(&once) {
            return Ok(once);
        }
        let twice = self.master.seal(self.clock, &outer_context(context), &once)?;
        Ok([&TWICE_MARK[..], &twice].concat())
    }

    /// Opens a value that [`TenantCipher::seal`] or [`TenantCipher::seal_twice`] sealed for the same
    /// context, or the master key before the tenant had one.
    ///
    /// # Errors
    /// When it was sealed under another tenant's key, a key that is gone or another master key, for
    /// another row, or was altered.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let twice = sealed.strip_prefix(TWICE_MARK);
        // Values from before they carried the id of their key begin with any bytes, these too.
        match twice.and_then(|twice| self.master.open(&outer_context(context), twice).ok()) {
            Some(once) => self.open_once(context, &once),
            None => self.open_once(context, sealed),
        }
    }

    fn open_once(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        if let Some(key) = &self.key
            && let Some(value) = sealed.strip_prefix(&key.prefix)
        {
            return key.key.open(context, value);
        }
        self.master.open(context, sealed).map_err(|error| match is_of_tenant_key(sealed) {
            true => Error::invariant("open a sealed secret (another key of its tenant?)"),
            false => error,
        })
    }

    /// Seals the key of a row, as [`TenantCipher::seal`] does.
    ///
    /// # Errors
    /// As [`TenantCipher::seal`].
    pub(crate) fn wrap(&self, context: &str, key: &DataKey) -> Result<Vec<u8>> {
        self.seal(context, &key.0)
    }

    /// Seals the key of a user, as [`TenantCipher::seal_twice`] does.
    ///
    /// # Errors
    /// As [`TenantCipher::seal`].
    pub(crate) fn wrap_twice(&self, context: &str, key: &DataKey) -> Result<Vec<u8>> {
        self.seal_twice(context, &key.0)
    }

    /// Opens a key that [`TenantCipher::wrap`] or [`TenantCipher::wrap_twice`] sealed for the same
    /// context.
    ///
    /// # Errors
    /// As [`TenantCipher::open`].
    pub(crate) fn unwrap_key(&self, context: &str, wrapped: &[u8]) -> Result<DataKey> {
        DataKey::from_bytes(self.open(context, wrapped)?)
    }

    /// True if a value is sealed under the key that seals new ones.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        match self.usable() {
            Some(usable) => sealed.starts_with(&usable.prefix),
            None => self.master.is_current(sealed),
        }
    }

    /// True if a value is sealed as [`TenantCipher::seal_twice`] seals new ones.
    pub fn is_current_twice(&self, sealed: &[u8]) -> bool {
        match self.usable() {
            Some(_) => {
                let twice = sealed.strip_prefix(TWICE_MARK);
                twice.is_some_and(|twice| self.master.is_current(twice))
            }
            None => self.master.is_current(sealed),
        }
    }

    /// The tenant's key, once it seals values.
    fn usable(&self) -> Option<&TenantKey> {
        let key = self.key.as_deref()?;
        key.usable_from.is_none_or(|from| from <= self.clock.now()).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    fn acme() -> ClientId {
        Uuid::from_u128(1).into()
    }

    fn other() -> ClientId {
        Uuid::from_u128(2).into()
    }

    /// A master key, a clock, and keys of two tenants.
    fn keys() -> (MasterKey, Clock, TenantKeys) {
        let (master, clock, keys) =
            (MasterKey::from_bytes(&[7; 32]), Clock::system(), TenantKeys::default());
        let generated = || TenantKey::generate(&clock).unwrap();
        keys.replace(&[acme(), other()], [(acme(), generated()), (other(), generated())].into());
        (master, clock, keys)
    }

    #[test]
    fn a_tenants_key_opens_no_other_tenants_values() {
        let (master, clock, keys) = keys();
        let cipher = |client| TenantCipher::new(&master, &clock, keys.get(client));
        let sealed = cipher(acme()).seal("a", b"x").unwrap();
        assert!(is_of_tenant_key(&sealed) && cipher(acme()).is_current(&sealed));
        assert_eq!(cipher(acme()).open("a", &sealed).unwrap(), b"x");
        assert!(cipher(acme()).open("b", &sealed).is_err());
        assert!(cipher(other()).open("a", &sealed).is_err());
        assert!(master.open("a", &sealed).is_err());
        // Not even with the other's mark.
        let others = cipher(other()).seal("a", b"y").unwrap();
        let marked = [&others[..PREFIX_BYTES], &sealed[PREFIX_BYTES..]].concat();
        assert!(cipher(other()).open("a", &marked).is_err());
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(cipher(acme()).open("a", &altered).is_err(), "altered at {at}");
        }
    }

    #[test]
    fn values_of_the_master_key_open_beside_those_of_the_tenants() {
        let (master, clock, keys) = keys();
        let by_master = TenantCipher::new(&master, &clock, None).seal("a", b"x").unwrap();
        assert!(!is_of_tenant_key(&by_master));
        let cipher = TenantCipher::new(&master, &clock, keys.get(acme()));
        assert_eq!(cipher.open("a", &by_master).unwrap(), b"x");
        assert!(!cipher.is_current(&by_master));
    }

    #[test]
    fn what_is_sealed_twice_takes_both_keys_to_open() {
        let (master, clock, keys) = keys();
        let cipher = TenantCipher::new(&master, &clock, keys.get(acme()));
        let sealed = cipher.seal_twice("a", b"x").unwrap();
        assert!(cipher.is_current_twice(&sealed) && !is_of_tenant_key(&sealed));
        assert_eq!(cipher.open("a", &sealed).unwrap(), b"x");
        assert!(cipher.open("b", &sealed).is_err());
        for key in [None, keys.get(other())] {
            assert!(TenantCipher::new(&master, &clock, key).open("a", &sealed).is_err());
        }
        let next = MasterKey::from_bytes(&[8; 32]);
        let rotated = TenantCipher::new(&next, &clock, keys.get(acme()));
        assert!(rotated.open("a", &sealed).is_err() && !rotated.is_current_twice(&sealed));
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(cipher.open("a", &altered).is_err(), "altered at {at}");
        }
        assert!(!cipher.is_current_twice(&cipher.seal("a", b"x").unwrap()));
        // Without a key of the tenant the master key seals alone.
        let without = TenantCipher::new(&master, &clock, None);
        let by_master = without.seal_twice("a", b"x").unwrap();
        assert!(without.is_current_twice(&by_master) && master.is_current(&by_master));
        assert!(!cipher.is_current_twice(&by_master));
        assert_eq!(cipher.open("a", &by_master).unwrap(), b"x");
    }

    #[test]
    fn a_wrapped_key_is_its_tenants_and_seals_when_every_edge_has_it() {
        let (master, clock, keys) = keys();
        let wrapped = keys.get(acme()).unwrap().wrapped(&master, &clock, acme()).unwrap();
        assert!(TenantKey::from_wrapped(&master, other(), &wrapped, None).is_err());
        let by_another = MasterKey::from_bytes(&[8; 32]);
        assert!(TenantKey::from_wrapped(&by_another, acme(), &wrapped, None).is_err());
        let before = TenantCipher::new(&master, &clock, keys.get(acme())).seal("a", b"x").unwrap();
        let from = Some(clock.now() + TimeDelta::minutes(1));
        let again = TenantKey::from_wrapped(&master, acme(), &wrapped, from).unwrap();
        let cipher = TenantCipher::new(&master, &clock, Some(Arc::new(again)));
        assert_eq!(cipher.open("a", &before).unwrap(), b"x");
        let sealed = cipher.seal("a", b"y").unwrap();
        assert!(master.is_current(&sealed) && cipher.is_current(&sealed));
        clock.advance(TimeDelta::minutes(2));
        assert!(is_of_tenant_key(&cipher.seal("a", b"y").unwrap()) && !cipher.is_current(&sealed));
    }

    #[test]
    fn a_destroyed_key_takes_its_tenants_values_with_it() {
        let (master, clock, keys) = keys();
        let cipher = |client| TenantCipher::new(&master, &clock, keys.get(client));
        let [of_acme, of_other] =
            [acme(), other()].map(|client| cipher(client).seal("a", b"x").unwrap());
        keys.replace(&[acme()], HashMap::new());
        let error = cipher(acme()).open("a", &of_acme).unwrap_err();
        assert!(format!("{error:?}").contains("another key of its tenant"), "{error:?}");
        assert_eq!(cipher(other()).open("a", &of_other).unwrap(), b"x");
    }
}
