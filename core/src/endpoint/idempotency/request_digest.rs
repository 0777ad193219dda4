//! The digest of a request, which a repeated one must match to get the saved answer. Without it, a key
//! could show one user's answer to another.

use ring::digest::{Context, SHA256};

use crate::Core;
use crate::http::request::Input;
use crate::platform::crypto::{Purpose, sha256};
use crate::platform::error::Result;

/// The digest of path, owner of the key and body.
#[derive(Debug)]
pub(super) struct RequestDigest {
    /// Keyed, because a body that holds little more than an e-mail address or a password is easily
    /// guessed from a plain one.
    keyed: Vec<u8>,
    plain: Vec<u8>,
}

impl RequestDigest {
    /// The digest for the row of this name alone.
    ///
    /// # Errors
    /// Those of [`crate::platform::crypto::MasterKey::mac`].
    pub(super) fn new(core: &Core, row: &str, input: &Input, owner: &str) -> Result<Self> {
        let plain = plain(input, owner);
        let message = format!("{row}/{}", hex::encode(&plain));
        let keyed = core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec();
        Ok(Self { keyed, plain })
    }

    /// The digest as it is stored.
    pub(super) fn stored(&self) -> &[u8] {
        &self.keyed
    }

    /// True if this is the digest that a row has. One that an earlier version has written is plain, for
    /// as long as its answer is kept.
    pub(super) fn matches(&self, stored: &[u8]) -> bool {
        stored == self.keyed || stored == self.plain
    }
}

/// SHA-256 of path, owner of the key and body.
fn plain(input: &Input, owner: &str) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    context.update(input.head.path.as_bytes());
    // No path and no owner has a line end in it.
    context.update(b"\n");
    context.update(owner.as_bytes());
    context.update(b"\n");
    match &input.upload {
        Some(upload) => context.update(&upload.digest),
        None => context.update(&sha256(&input.body)),
    }
    context.finish().as_ref().to_vec()
}
