//! Orders at an authority that speaks ACME (RFC 8555).

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType,
    Error, HttpClient, Identifier, NewAccount, NewOrder, OrderStatus, RetryPolicy,
};

use super::{Certificate, store};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::http_client;
use crate::platform::settings;

/// Timeout of a request to the authority.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Time in which every edge has read a challenge: it looks every second.
const CHALLENGE_SPREAD: Duration = Duration::from_secs(3);
/// Longest time for which the authority is asked whether it has looked.
const POLLING_MAX: Duration = Duration::from_secs(90);

/// The authority of `acme.directory_url`.
#[derive(Debug)]
pub(super) struct Authority {
    directory_url: String,
    /// Names of the certificate, with commas between them.
    domains: String,
    contacts: Vec<String>,
    http: Http,
}

/// Why there is no certificate; one sentence for the log.
#[derive(Debug)]
pub(super) struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // A reqwest error names the cause in its sources only.
        let mut sentence = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            sentence = format!("{sentence}: {cause}");
            source = cause.source();
        }
        Self(sentence)
    }
}

impl From<crate::platform::error::Error> for Failure {
    fn from(error: crate::platform::error::Error) -> Self {
        Self(error.to_string())
    }
}

impl Authority {
    /// The configured one, if there is one.
    ///
    /// # Errors
    /// One sentence: `acme.ca` cannot be used.
    pub(super) fn new(settings: &settings::Acme) -> Result<Option<Self>, String> {
        let Some(directory_url) =
            settings.directory_url.clone().filter(|_| settings.is_configured())
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            directory_url,
            domains: settings.domains.0.join(","),
            contacts: settings.contacts.0.clone(),
            http: Http::new(settings)?,
        }))
    }

    /// Names of the certificate, with commas between them.
    pub(super) fn domains(&self) -> &str {
        &self.domains
    }

    /// Orders a certificate; challenges are stored for every edge.
    pub(super) async fn issue(&self, core: &Core) -> Result<Certificate, Failure> {
        let account = self.account(core).await?;
        let names: Vec<_> =
            self.domains.split(',').map(|name| Identifier::Dns(name.to_owned())).collect();
        let mut order = account.new_order(&NewOrder::new(&names)).await?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let challenge = authorization.challenge(ChallengeType::TlsAlpn01);
            let challenge = challenge
                .ok_or_else(|| Failure("the authority offers no tls-alpn-01 challenge".into()))?;
            let domain = challenge.identifier().to_string();
            let digest = challenge.key_authorization().digest();
            store::challenge(&core.db, &domain, digest.as_ref()).await?;
        }
        #[expect(clippy::disallowed_methods, reason = "other edges read within a named time")]
        tokio::time::sleep(CHALLENGE_SPREAD).await;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            if let Some(mut challenge) = authorization.challenge(ChallengeType::TlsAlpn01) {
                challenge.set_ready().await?;
            }
        }
        let polling = RetryPolicy::new().timeout(POLLING_MAX);
        let status = order.poll_ready(&polling).await?;
        if status != OrderStatus::Ready {
            return Err(Failure(format!("the order is {status:?}: the authority did not see us")));
        }
        let key = Secret::new(order.finalize().await?);
        Ok(Certificate { chain: order.poll_certificate(&polling).await?, key })
    }

    /// The account of all edges at the authority, made if there is none.
    async fn account(&self, core: &Core) -> Result<Account, Failure> {
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        if let Some(stored) = store::account(core, &self.directory_url).await? {
            let credentials: AccountCredentials =
                serde_json::from_slice(&stored).map_err(Error::from)?;
            return Ok(builder.from_credentials(credentials).await?);
        }
        let contacts: Vec<_> = self.contacts.iter().map(String::as_str).collect();
        let new = NewAccount {
            contact: &contacts,
            // The settings are refused without.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = builder.create(&new, self.directory_url.clone(), None).await?;
        let plain = serde_json::to_vec(&credentials).map_err(Error::from)?;
        store::keep_account(core, &self.directory_url, &plain).await?;
        Ok(account)
    }
}

/// The HTTP client of every other call, for the library.
#[derive(Clone, Debug)]
struct Http(reqwest::Client);

impl Http {
    fn new(settings: &settings::Acme) -> Result<Self, String> {
        let mut builder = http_client::builder().https_only(true).timeout(REQUEST_TIMEOUT);
        if let Some(path) = &settings.ca {
            let wrong = |why: &dyn fmt::Display| {
                format!("'acme.ca': '{}' cannot be used: {why}", path.display())
            };
            let pem = std::fs::read(path).map_err(|e| wrong(&e))?;
            let trusted = reqwest::Certificate::from_pem_bundle(&pem).map_err(|e| wrong(&e))?;
            builder = builder.tls_certs_only(trusted);
        }
        let client = builder.build();
        Ok(Self(client.map_err(|e| format!("the client for 'acme' cannot be made: {e}"))?))
    }

    async fn send(self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let other = |error: reqwest::Error| Error::Other(Box::new(error));
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await;
        let request = Request::from_parts(parts, body.to_bytes()).try_into().map_err(other)?;
        let mut answer = self.0.execute(request).await.map_err(other)?;
        let mut read = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(other)? {
            if read.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(Error::Str("an answer within 1 MiB"));
            }
            read.extend_from_slice(&chunk);
        }
        let (mut parts, ()) = Response::new(()).into_parts();
        (parts.status, parts.headers) = (answer.status(), answer.headers().clone());
        Ok(BytesResponse { parts, body: Box::new(Bytes::from(read)) })
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(self.clone().send(request))
    }
}
