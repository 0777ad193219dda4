//! Passwords: argon2id off the serving threads.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::secrets::Secret;

/// Memory of one hash in KiB, passes and lanes (section 2 of the contract).
const COST: (u32, u32, u32) = (19_456, 2, 1);
/// Hashes that run at once.
const RUNNING_MAX: usize = 2;

/// Hashes passwords, a few at a time.
#[derive(Debug)]
pub struct Passwords {
    clock: Clock,
    running: Semaphore,
}

impl Passwords {
    /// A pool that draws salts from `clock`.
    pub fn new(clock: Clock) -> Self {
        Self { clock, running: Semaphore::new(RUNNING_MAX) }
    }

    /// The password's argon2id hash as a PHC string.
    ///
    /// # Errors
    /// Without entropy for the salt.
    pub async fn hash(&self, password: Secret) -> Result<String> {
        let _permit = self.running.acquire().await.map_err(|e| Error::internal("wait", e))?;
        let salt: [u8; 16] = self.clock.random_bytes()?;
        let work = move || {
            let (m, t, p) = COST;
            let mut hash = [0; 32];
            Params::new(m, t, p, None)
                .and_then(|params| {
                    Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(
                        password.expose().as_bytes(),
                        &salt,
                        &mut hash,
                    )
                })
                .map_err(|_| Error::broken("hash a password"))?;
            let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
            Ok(format!("$argon2id$v=19$m={m},t={t},p={p}${salt}${hash}"))
        };
        tokio::task::spawn_blocking(work).await.map_err(|e| Error::internal("hash", e))?
    }
}
