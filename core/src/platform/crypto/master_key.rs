//! The master key, and the keys that are derived from it (HKDF-SHA256, RFC 5869).
//!
//! It is a ring: values are sealed under the key in use and carry its id, and earlier keys still open
//! what they have sealed. Keys that a rotation must not change, such as those of indexes, are derived
//! once and kept sealed ([`MasterKey::keep_lasting`]).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{hkdf, hmac};

use super::{DataKey, Secret};
use crate::platform::clock::Clock;
use crate::platform::error::{Error, Result};

/// Length in bytes of the master key and of every derived key.
pub const KEY_BYTES: usize = 32;
/// Most keys of a ring.
const KEYS_MAX: usize = 8;
/// Bytes of a key's id.
const ID_BYTES: usize = 4;
/// Beginning of a value that carries the id of its key; older values begin with their nonce.
const MARK: &[u8; 3] = b"RK\x01";
/// Bytes of mark and id.
const PREFIX_BYTES: usize = MARK.len() + ID_BYTES;

/// The purpose of a derived key. Its label is part of the derivation and never changes.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Signs client and user tokens of one day.
    Tokens {
        /// Days since 1970.
        day: i64,
    },
    /// Seals quotes of one tenant and one day.
    Quotes {
        /// Days since 1970.
        day: i64,
        /// The tenant.
        client: uuid::Uuid,
    },
    /// Signs links to pages, such as the payment page.
    SignedLinks,
    /// Authenticates native code of policies on disk.
    NativeCode,
    /// Seals secrets at rest in the database.
    Storage,
    /// Blind index: lookup of personal values by their MAC.
    BlindIndex,
    /// Seals partners' user identifiers for a URL.
    Identifiers,
    /// Derives deposit addresses of the sandbox.
    SandboxDeposits,
    /// Seals the TLS session tickets of one day.
    TlsTickets {
        /// Days since 1970.
        day: i64,
    },
    /// Chains the rows of the audit.
    Audit,
}

impl Purpose {
    /// The purposes whose keys outlive a rotation: what was written with them is looked up by them.
    pub(crate) const LASTING: [Self; 4] =
        [Self::BlindIndex, Self::Identifiers, Self::SandboxDeposits, Self::Audit];

    pub(crate) fn label(self) -> String {
        match self {
            Self::Tokens { day } => format!("rampart tokens {day}"),
            Self::Quotes { day, client } => format!("rampart quotes {day} {client}"),
            Self::SignedLinks => "rampart pages".to_owned(),
            Self::NativeCode => "rampart native code".to_owned(),
            Self::Storage => "rampart storage".to_owned(),
            Self::BlindIndex => "rampart blind index".to_owned(),
            Self::Identifiers => "rampart identifiers".to_owned(),
            Self::SandboxDeposits => "rampart sandbox deposits".to_owned(),
            Self::TlsTickets { day } => format!("rampart tls tickets {day}"),
            Self::Audit => "rampart audit".to_owned(),
        }
    }
}

/// The id of a master key, which tells nothing of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId([u8; ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One key of the ring.
#[derive(Clone)]
struct Generation {
    id: KeyId,
    prk: hkdf::Prk,
}

impl Generation {
    fn from_bytes(bytes: &[u8]) -> Self {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"rampart master key").extract(bytes);
        let mut id = [0; ID_BYTES];
        // The library refuses lengths above 8,160 bytes alone.
        let digest = expand(&prk, "rampart key id").unwrap_or_default();
        id.copy_from_slice(&digest[..ID_BYTES]);
        Self { id: KeyId(id), prk }
    }
}

/// Keys of [`Purpose::LASTING`] as they are stored, by label; `None` for one that no key of the ring
/// opens.
type LastingKeys = HashMap<String, Option<[u8; KEY_BYTES]>>;

/// The master key in use with the earlier ones of its ring.
#[derive(Clone)]
pub struct MasterKey {
    current: Generation,
    /// Newest first.
    earlier: Arc<[Generation]>,
    lasting: Arc<OnceLock<LastingKeys>>,
}

rampart_types::opaque_debug!(MasterKey);

impl MasterKey {
    /// Parses a ring: keys of 32 bytes in base64, the one in use first, with white space or commas
    /// between them. `None` if one is malformed or stands twice, or there are more than 8.
    pub fn parse(text: &Secret) -> Option<Self> {
        let words = text.expose().split(|c: char| c.is_whitespace() || c == ',');
        let decode = |word: &str| {
            let bytes = STANDARD.decode(word).ok()?;
            (bytes.len() == KEY_BYTES).then(|| Generation::from_bytes(&bytes))
        };
        let keys: Option<Vec<_>> = words.filter(|word| !word.is_empty()).map(decode).collect();
        let mut keys = keys.filter(|keys| (1..=KEYS_MAX).contains(&keys.len()))?;
        let twice = |(index, key): (usize, &Generation)| {
            keys[..index].iter().any(|before| before.id == key.id)
        };
        if keys.iter().enumerate().any(twice) {
            return None;
        }
        let earlier = keys.split_off(1).into();
        Some(Self { current: keys.pop()?, earlier, lasting: Arc::default() })
    }

    /// A master key from bytes of full entropy.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let current = Generation::from_bytes(bytes);
        Self { current, earlier: Arc::new([]), lasting: Arc::default() }
    }

    /// The id of the key in use.
    pub const fn id(&self) -> KeyId {
        self.current.id
    }

    /// The ids of the earlier keys, newest first.
    pub fn earlier_ids(&self) -> impl Iterator<Item = KeyId> {
        self.earlier.iter().map(|key| key.id)
    }

    /// Keeps the keys of [`Purpose::LASTING`] for all clones of this ring. Only the first call counts.
    pub(crate) fn keep_lasting(&self, keys: LastingKeys) {
        // A second one would hold the same keys.
        let _ = self.lasting.set(keys);
    }

    /// True if a lasting key is stored that no key of the ring opens.
    pub(crate) fn lacks_lasting(&self) -> bool {
        self.lasting.get().is_some_and(|keys| keys.values().any(Option::is_none))
    }

    /// The key for a lasting purpose as the oldest key of the ring derives it: before rings were
    /// known, that was the key in use.
    ///
    /// # Errors
    /// As [`MasterKey::derive`].
    pub(crate) fn derive_oldest(&self, purpose: Purpose) -> Result<[u8; KEY_BYTES]> {
        expand(&self.earlier.last().unwrap_or(&self.current).prk, &purpose.label())
    }

    /// The key for a purpose.
    ///
    /// # Errors
    /// When it is one that outlives rotations, and no key of the ring opens it.
    pub fn derive(&self, purpose: Purpose) -> Result<[u8; KEY_BYTES]> {
        let label = purpose.label();
        match self.lasting.get().and_then(|keys| keys.get(&label)) {
            Some(Some(key)) => Ok(*key),
            // Another one in its place would write what nobody finds or verifies again.
            Some(None) => Err(Error::invariant("open a lasting key (an earlier master key?)")),
            None => expand(&self.current.prk, &label),
        }
    }

    /// The keys for a purpose of every key of the ring, the one in use first: for what an edge may
    /// have issued before the rotation.
    pub(crate) fn derive_each(&self, purpose: Purpose) -> impl Iterator<Item = [u8; KEY_BYTES]> {
        let label = purpose.label();
        let ring = std::iter::once(&self.current).chain(&*self.earlier);
        ring.filter_map(move |key| expand(&key.prk, &label).ok())
    }

    /// HMAC-SHA256 of `message` under the key of `purpose`.
    ///
    /// # Errors
    /// As [`MasterKey::derive`].
    pub fn mac(&self, purpose: Purpose, message: &[u8]) -> Result<hmac::Tag> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.derive(purpose)?);
        Ok(hmac::sign(&key, message))
    }

    /// Seals a secret for the database with [`Purpose::Storage`], as [`DataKey::seal`] does, behind
    /// the id of the key.
    ///
    /// # Errors
    /// Without entropy for the nonce.
    pub fn seal(&self, clock: &Clock, context: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let sealed = self.sealing_key(Purpose::Storage)?.seal(clock, context, plain)?;
        Ok([&self.prefix()[..], &sealed].concat())
    }

    /// Opens a value that [`MasterKey::seal`] sealed for the same context, under any key of the ring.
    ///
    /// # Errors
    /// When it was sealed under another master key or for another row, or was altered.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let marked = sealed.strip_prefix(MARK).and_then(|rest| rest.split_at_checked(ID_BYTES));
        if let Some((id, value)) = marked {
            let mut ring = std::iter::once(&self.current).chain(&*self.earlier);
            if let Some(key) = ring.find(|key| key.id.0 == id) {
                let key = DataKey::new(expand(&key.prk, &Purpose::Storage.label())?);
                return key.open(context, value);
            }
        }
        let mut unmarked = self.derive_each(Purpose::Storage).map(DataKey::new);
        let opened = unmarked.find_map(|key| key.open(context, sealed).ok());
        opened.ok_or_else(|| Error::invariant("open a sealed secret (another master key?)"))
    }

    /// True if a value names a key that is not of the ring.
    pub(crate) fn is_of_another_key(&self, sealed: &[u8]) -> bool {
        let marked = sealed.strip_prefix(MARK).and_then(|rest| rest.split_at_checked(ID_BYTES));
        let mut ring = std::iter::once(&self.current).chain(&*self.earlier);
        marked.is_some_and(|(id, _)| ring.all(|key| key.id.0 != id))
    }

    /// True if a value is sealed under the key in use.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.prefix())
    }

    /// Beginning of what the key in use seals.
    pub(crate) fn prefix(&self) -> [u8; PREFIX_BYTES] {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..MARK.len()].copy_from_slice(MARK);
        prefix[MARK.len()..].copy_from_slice(&self.current.id.0);
        prefix
    }

    /// The key that seals values for a purpose.
    ///
    /// # Errors
    /// As [`MasterKey::derive`].
    pub fn sealing_key(&self, purpose: Purpose) -> Result<DataKey> {
        Ok(DataKey::new(self.derive(purpose)?))
    }
}

fn expand(prk: &hkdf::Prk, label: &str) -> Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    prk.expand(&[label.as_bytes()], hkdf::HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut key))
        .map_err(|_| Error::invariant("derive a key"))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(keys: &[u8]) -> MasterKey {
        let keys: Vec<_> = keys.iter().map(|key| STANDARD.encode([*key; KEY_BYTES])).collect();
        MasterKey::parse(&Secret::new(keys.join("\n"))).unwrap()
    }

    #[test]
    fn purposes_and_days_have_separate_keys() {
        let master = MasterKey::from_bytes(&[7; 32]);
        let key = |purpose| master.derive(purpose).unwrap();
        assert_ne!(key(Purpose::Tokens { day: 1 }), key(Purpose::Tokens { day: 2 }));
        assert_ne!(key(Purpose::SignedLinks), key(Purpose::Storage));
        assert_eq!(
            key(Purpose::SignedLinks),
            MasterKey::from_bytes(&[7; 32]).derive(Purpose::SignedLinks).unwrap()
        );
    }

    #[test]
    fn a_sealed_value_opens_only_in_its_context() {
        let (master, clock) = (MasterKey::from_bytes(&[7; 32]), Clock::system());
        let sealed = master.seal(&clock, "client_secret/a", b"whsec").unwrap();
        assert_eq!(master.open("client_secret/a", &sealed).unwrap(), b"whsec");
        assert!(master.open("client_secret/b", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(master.open("client_secret/a", &altered).is_err());
        }
    }

    #[test]
    fn a_ring_opens_what_its_earlier_keys_have_sealed() {
        let clock = Clock::system();
        let (old, new, both) = (ring(&[1]), ring(&[2]), ring(&[2, 1]));
        let by_old = old.seal(&clock, "a", b"x").unwrap();
        assert_eq!(both.open("a", &by_old).unwrap(), b"x");
        assert!(new.open("a", &by_old).is_err());
        assert!(new.is_of_another_key(&by_old) && !both.is_of_another_key(&by_old));
        assert!(old.is_current(&by_old) && !both.is_current(&by_old));
        let by_both = both.seal(&clock, "a", b"y").unwrap();
        assert!(both.is_current(&by_both) && new.is_current(&by_both));
        assert_eq!(new.open("a", &by_both).unwrap(), b"y");
        // As values were sealed before they carried an id.
        let unmarked = old.sealing_key(Purpose::Storage).unwrap().seal(&clock, "a", b"z").unwrap();
        assert_eq!(both.open("a", &unmarked).unwrap(), b"z");
        assert!(!old.is_current(&unmarked));
        assert_eq!(both.id(), new.id());
        assert_eq!(both.earlier_ids().collect::<Vec<_>>(), [old.id()]);
    }

    #[test]
    fn lasting_keys_outlive_the_ring_that_derived_them() {
        let (old, both) = (ring(&[1]), ring(&[2, 1]));
        let index = old.derive(Purpose::BlindIndex).unwrap();
        assert_eq!(both.derive_oldest(Purpose::BlindIndex).unwrap(), index);
        assert_ne!(both.derive(Purpose::BlindIndex).unwrap(), index);
        both.keep_lasting([(Purpose::BlindIndex.label(), Some(index))].into());
        assert_eq!(both.clone().derive(Purpose::BlindIndex).unwrap(), index);
        assert!(!both.lacks_lasting());
    }

    #[test]
    fn no_key_stands_in_for_a_lasting_one_that_does_not_open() {
        let new = ring(&[2]);
        assert!(!new.lacks_lasting() && new.derive(Purpose::BlindIndex).is_ok());
        new.keep_lasting([(Purpose::BlindIndex.label(), None)].into());
        assert!(new.lacks_lasting() && new.derive(Purpose::BlindIndex).is_err());
        assert!(new.mac(Purpose::BlindIndex, b"a").is_err());
        assert!(new.derive(Purpose::Audit).is_ok() && new.derive(Purpose::SignedLinks).is_ok());
    }

    #[test]
    fn a_ring_has_one_to_eight_different_keys() {
        let key = |byte: u8| STANDARD.encode([byte; KEY_BYTES]);
        let parse = |text: &str| MasterKey::parse(&Secret::new(text)).is_some();
        assert!(parse(&key(1)) && parse(&format!(" {},{} \n{}\n", key(1), key(2), key(3))));
        assert!(!parse("") && !parse("AAAA") && !parse(&format!("{} {}", key(1), key(1))));
        let many: Vec<_> = (0..9).map(key).collect();
        assert!(!parse(&many.join(",")) && parse(&many[..8].join(",")));
    }
}
