//! Settings of the store of users' documents.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::platform::crypto::Secret;

/// `documents`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Documents {
    /// Folder of the local object store.
    #[schemars(extend("x-default" = "documents in the working folder, for test clients"))]
    pub folder: Option<PathBuf>,
    /// Bucket of S3, or of a store with its API, and a prefix of the objects' names, in place of the
    /// folder: `s3://bucket/prefix`.
    #[schemars(extend("x-default" = "none: documents are in documents.folder"))]
    pub s3_url: Option<String>,
    /// Base URL of the store, such as `https://s3.example.com:9000`; the bucket's name follows in the
    /// path.
    #[schemars(extend("x-default" = "Amazon's for the region"))]
    pub s3_endpoint: Option<String>,
    /// Region that requests are signed for.
    pub s3_region: String,
    /// Identifier of the access key, which may put, get, delete and list the bucket's objects.
    #[serde(skip_serializing)]
    pub s3_access_key: Option<Secret>,
    /// Secret of the access key.
    #[serde(skip_serializing)]
    pub s3_secret_key: Option<Secret>,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            folder: None,
            s3_url: None,
            s3_endpoint: None,
            s3_region: "us-east-1".to_owned(),
            s3_access_key: None,
            s3_secret_key: None,
        }
    }
}

impl Documents {
    /// True if the place of documents is set.
    pub fn is_configured(&self) -> bool {
        self.folder.is_some() || self.s3_url.is_some()
    }
}
