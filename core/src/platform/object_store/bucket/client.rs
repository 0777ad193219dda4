//! Calls of S3, or of a store with its API. The store's answers appear in no error and no log.

use std::error::Error as StdError;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, Limited};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, GetOptions, ObjectStore as _, ObjectStoreExt as _,
    PutPayload, RetryConfig,
};
use url::Url;

use super::super::format::SEALED_BYTES_MAX;
use crate::platform::http_client;
use crate::platform::settings;

/// Time for a call without its bytes. With those of the largest object it is less than what
/// Postgres lets a transaction wait.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes of an object for which a call has a second more.
const BYTES_PER_SECOND: usize = 16 * 1024 * 1024;
/// Time to connect, from the name lookup to the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of an answer that is no object.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of a bucket's name.
const BUCKET_BYTES_MAX: usize = 63;
/// Most bytes of a prefix.
const PREFIX_BYTES_MAX: usize = 512;
/// Attempts after the first of a call: a store closes connections that are idle.
const RETRIES: usize = 1;
/// Pause before such an attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The reason a call came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Away,
    Slow,
    Refused,
    NoBucket,
    Failing,
    Wrong,
}

impl Failure {
    /// Label of metrics.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Slow => "slow",
            Self::Refused => "refused",
            Self::NoBucket => "no_bucket",
            Self::Failing => "failing",
            Self::Wrong => "wrong",
        }
    }

    /// The end of a sentence about `documents.s3_url`.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Away => "the store cannot be reached",
            Self::Slow => "the store does not answer in time",
            Self::Refused => {
                "the store refuses the access key, or its right to put, get, delete or list"
            }
            Self::NoBucket => "there is no such bucket",
            Self::Failing => "the store reports an error of its own",
            Self::Wrong => "the store gives no usable answer",
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => return Self::Refused,
            Error::NotFound { .. } => return Self::NoBucket,
            _ => {}
        }
        let mut source: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(cause) = source {
            if let Some(http) = cause.downcast_ref::<HttpError>() {
                return match http.kind() {
                    HttpErrorKind::Timeout => Self::Slow,
                    HttpErrorKind::Decode => Self::Wrong,
                    _ => Self::Away,
                };
            }
            source = cause.source();
        }
        // The library names the status in words only.
        if error.to_string().contains("status code: 5") { Self::Failing } else { Self::Wrong }
    }
}

/// A bucket, and the prefix of the objects' names.
pub(super) struct Client {
    store: AmazonS3,
    prefix: Path,
}

impl Client {
    /// The client of the bucket that is configured, if one is.
    ///
    /// # Errors
    /// One sentence that names the setting, without its value.
    pub(super) fn new(settings: &settings::Documents) -> Result<Option<Self>, &'static str> {
        let keys = (&settings.s3_access_key, &settings.s3_secret_key);
        let Some(url) = &settings.s3_url else {
            let is_lonely = settings.s3_endpoint.is_some() || keys != (&None, &None);
            return match is_lonely {
                true => Err("documents.s3_endpoint and its keys want documents.s3_url"),
                false => Ok(None),
            };
        };
        let (bucket, prefix) =
            parse(url).ok_or("documents.s3_url is not a URL such as s3://bucket/prefix")?;
        let (Some(access_key), Some(secret_key)) = keys else {
            return Err("documents.s3_url wants documents.s3_access_key and s3_secret_key");
        };
        let failed = "the client for documents.s3_url cannot be made";
        let http =
            http_client::builder().connect_timeout(CONNECT_TIMEOUT).build().map_err(|_| failed)?;
        let backoff = BackoffConfig { init_backoff: RETRY_PAUSE, ..BackoffConfig::default() };
        let mut store = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&settings.s3_region)
            .with_access_key_id(access_key.expose())
            .with_secret_access_key(secret_key.expose())
            .with_disable_bulk_delete(true)
            .with_http_connector(BoundedClient(http))
            .with_retry(RetryConfig {
                backoff,
                max_retries: RETRIES,
                retry_timeout: time_for(SEALED_BYTES_MAX),
            });
        if let Some(endpoint) = &settings.s3_endpoint {
            let wrong = "documents.s3_endpoint is not a URL such as https://s3.example.com:9000";
            store = store.with_endpoint(parse_endpoint(endpoint).ok_or(wrong)?);
        }
        Ok(Some(Self { store: store.build().map_err(|_| failed)?, prefix }))
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    /// Puts an object, in place of the one of that name if there is one.
    pub(super) async fn put(&self, name: &str, object: Bytes) -> Result<(), Failure> {
        let put = self.store.put(&self.path(name), PutPayload::from_bytes(object)).await;
        put.map(drop).map_err(|error| Failure::of(&error))
    }

    /// An object, or this range of it; `None` if there is no such object.
    pub(super) async fn get(
        &self,
        name: &str,
        range: Option<Range<u64>>,
    ) -> Result<Option<Bytes>, Failure> {
        let most = range.as_ref().map_or(SEALED_BYTES_MAX as u64, |range| range.end - range.start);
        let options = GetOptions { range: range.map(Into::into), ..GetOptions::default() };
        let got = match self.store.get_opts(&self.path(name), options).await {
            // What has no bucket is not lost.
            Err(Error::NotFound { source, .. }) => {
                let has_bucket = !source.to_string().contains("NoSuchBucket");
                return if has_bucket { Ok(None) } else { Err(Failure::NoBucket) };
            }
            got => got.map_err(|error| Failure::of(&error))?,
        };
        let length = got.range.end.saturating_sub(got.range.start);
        if length > most {
            return Err(Failure::Wrong);
        }
        let mut object = BytesMut::with_capacity(usize::try_from(length).unwrap_or_default());
        let mut chunks = got.into_stream();
        while let Some(chunk) = chunks.next().await {
            object.extend_from_slice(&chunk.map_err(|error| Failure::of(&error))?);
        }
        match u64::try_from(object.len()) == Ok(length) {
            true => Ok(Some(object.freeze())),
            false => Err(Failure::Wrong),
        }
    }

    /// Deletes an object if it exists.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Failure> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) => Ok(()),
            Err(Error::NotFound { source, .. }) if !source.to_string().contains("NoSuchBucket") => {
                Ok(())
            }
            Err(error) => Err(Failure::of(&error)),
        }
    }
}

/// Bucket and prefix of a URL; `None` when it is none.
fn parse(url: &str) -> Option<(&str, Path)> {
    let rest = url.strip_prefix("s3://")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_bucket = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
    };
    let named = (3..=BUCKET_BYTES_MAX).contains(&bucket.len()) && bucket.bytes().all(is_bucket);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let prefix = prefix.trim_end_matches('/');
    let fits = prefix.len() <= PREFIX_BYTES_MAX && prefix.bytes().all(is_name);
    let prefix = Path::parse(prefix).ok()?;
    (named && fits).then_some((bucket, prefix))
}

/// A base URL without user, query and fragment; `None` when it is none.
fn parse_endpoint(text: &str) -> Option<&str> {
    let url: Url = text.parse().ok()?;
    let is_base = ["http", "https"].contains(&url.scheme())
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    is_base.then(|| text.trim_end_matches('/'))
}

/// Time for a call that transfers this many bytes.
pub(super) fn time_for(bytes: usize) -> Duration {
    let seconds = bytes.div_ceil(BYTES_PER_SECOND);
    CALL_TIMEOUT + Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX))
}

/// An HTTP client that reads no longer answer than an object can be.
#[derive(Clone, Debug)]
struct BoundedClient(reqwest::Client);

impl HttpConnector for BoundedClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for BoundedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = HttpService::call(&self.0, request).await?.into_parts();
        let most = if head.status.is_success() { SEALED_BYTES_MAX } else { ANSWER_BYTES_MAX };
        let body = Limited::new(body, most)
            .map_err(|error| HttpError::new_boxed(HttpErrorKind::Decode, error));
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

#[cfg(test)]
mod tests;
