//! Secrets from a file or the environment.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// A secret. It is not printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The place of a secret in a configuration: `{file = "/etc/…"}` or `{environment = "NAME"}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Place")]
pub enum SecretSource {
    /// A file that holds nothing else. A newline at its end does not count.
    File(PathBuf),
    /// A variable of the environment.
    Environment(String),
}

/// As it is written. Untagged, because what is there instead may be the secret, which no error shows.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a secret's place is { file = \"…\" } or { environment = \"NAME\" }"
)]
enum Place {
    File { file: PathBuf },
    Environment { environment: String },
}

impl From<Place> for SecretSource {
    fn from(place: Place) -> Self {
        match place {
            Place::File { file } => Self::File(file),
            Place::Environment { environment } => Self::Environment(environment),
        }
    }
}

/// A secret that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The environment lacks it.
    #[error("the environment has no variable {0}")]
    Environment(String),
    /// There is nothing in it.
    #[error("{0} is empty")]
    Empty(String),
}

impl SecretSource {
    /// Reads the secret, without the white space around it.
    ///
    /// # Errors
    /// When it is not there, or empty.
    pub fn read(&self) -> Result<Secret, SecretError> {
        let (text, place) = match self {
            Self::File(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| SecretError::File { path: path.clone(), source })?;
                (text, path.display().to_string())
            }
            Self::Environment(name) => (variable(name)?, name.clone()),
        };
        match text.trim() {
            "" => Err(SecretError::Empty(place)),
            secret => Ok(Secret(secret.to_owned())),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the configuration names the variable")]
fn variable(name: &str) -> Result<String, SecretError> {
    std::env::var(name).map_err(|_| SecretError::Environment(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_without_its_newline_and_never_printed() {
        let path = std::env::temp_dir().join(format!("rampart-secret-{}", std::process::id()));
        std::fs::write(&path, "rcn_abc\n").unwrap();
        let secret = SecretSource::File(path.clone()).read().unwrap();
        assert_eq!((secret.expose(), format!("{secret:?}")), ("rcn_abc", "***".to_owned()));
        std::fs::write(&path, " \n").unwrap();
        assert!(matches!(SecretSource::File(path.clone()).read(), Err(SecretError::Empty(_))));
        std::fs::remove_file(&path).unwrap();
        assert!(SecretSource::File(path).read().is_err());
        let missing = SecretSource::Environment("RAMPART_NO_SUCH_VARIABLE".to_owned());
        assert!(matches!(missing.read(), Err(SecretError::Environment(_))));
    }
}
