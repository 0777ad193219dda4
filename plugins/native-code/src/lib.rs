//! Native code of components, as bytes that can only be the compiler's: made by it, or authenticated
//! by the key of an edge that stored what it had made. A package of its own because it holds the one
//! unsafe call of the workspace: loading native code executes it sooner or later.

use ring::hmac;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Length of the authentication tag before stored code, in bytes.
const TAG_BYTES: usize = 32;

/// Native code of one component, for an engine of the same version and settings.
pub struct NativeCode(Vec<u8>);

/// A key that authenticates stored code: HMAC-SHA256 (RFC 2104).
pub struct StorageKey(hmac::Key);

impl StorageKey {
    /// A key of these bytes.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }
}

impl NativeCode {
    /// Compiles a component.
    ///
    /// # Errors
    /// The compiler's reason.
    pub fn compile(engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(wasm).map(Self)
    }

    /// The output of a compiler that this process started from its own binary. Nothing else may be
    /// passed: it is executed.
    pub fn from_own_compiler(output: Vec<u8>) -> Self {
        Self(output)
    }

    /// Opens what [`NativeCode::seal`] sealed under this key and name; `None` for anything else. The
    /// tag is compared in constant time.
    pub fn open(key: &StorageKey, name: &str, mut stored: Vec<u8>) -> Option<Self> {
        let (tag, code) = stored.split_at_checked(TAG_BYTES)?;
        hmac::verify(&key.0, &message(name, code), tag).ok()?;
        stored.drain(..TAG_BYTES);
        Some(Self(stored))
    }

    /// The code with an authentication tag, to be stored under a name.
    pub fn seal(&self, key: &StorageKey, name: &str) -> Vec<u8> {
        let tag = hmac::sign(&key.0, &message(name, &self.0));
        [tag.as_ref(), &self.0].concat()
    }

    /// The code itself, for the process that started this one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Loads the code.
    ///
    /// # Errors
    /// When it was compiled by another version of the engine, or with other settings.
    #[expect(unsafe_code, reason = "there is no safe way to load native code")]
    pub fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes are unaltered output of `Engine::precompile_component`: the compiler made them
        // in this process or in a child of the same binary, or a tag under this edge's key, which was
        // verified, says that it did. The engine checks version and settings itself.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}

/// The authenticated message: the name, so that one component's code is not another's, and the code.
fn message(name: &str, code: &[u8]) -> Vec<u8> {
    let length = u64::try_from(name.len()).unwrap_or(u64::MAX);
    [&length.to_be_bytes(), name.as_bytes(), code].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_sealed_under_the_same_key_and_name_is_opened() {
        let (key, other) = (StorageKey::new(&[1; 32]), StorageKey::new(&[2; 32]));
        let sealed = NativeCode(b"code".to_vec()).seal(&key, "a");
        assert_eq!(
            NativeCode::open(&key, "a", sealed.clone()).map(|code| code.0).as_deref(),
            Some(&b"code"[..])
        );
        assert!(NativeCode::open(&other, "a", sealed.clone()).is_none());
        assert!(NativeCode::open(&key, "b", sealed.clone()).is_none());
        for index in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[index] ^= 1;
            assert!(NativeCode::open(&key, "a", altered).is_none(), "byte {index}");
            assert!(
                NativeCode::open(&key, "a", sealed[..index].to_vec()).is_none(),
                "cut at {index}"
            );
        }
    }
}
