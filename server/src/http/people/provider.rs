//! The operator's identity provider: begins sign-ins there, and checks its ID tokens (OpenID Connect Core, section
//! 3.1).

use std::{pin::Pin, time::Duration};

use openidconnect::{
    AdditionalClaims, AsyncHttpClient, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken,
    EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenFields,
    IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, StandardErrorResponse,
    StandardTokenResponse, TokenResponse,
    core::{
        CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreErrorResponseType, CoreGenderClaim,
        CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
        CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
    },
    url::Url,
};
use openidconnect::{ClaimsVerificationError, RequestTokenError, SignatureVerificationError};
use payments_core::Timestamp;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::{sync::Mutex, time::Instant};

use super::{GroupGrant, PeopleSettings};
use crate::{domain::Grant, service::SignedIn};

/// How long one request to the provider may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of one of the provider's responses.
const MAX_BYTES: usize = 1024 * 1024;
/// How long the provider's description and keys are used.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);
/// How often an unknown key makes the server fetch the keys again.
const KEYS_EVERY: Duration = Duration::from_secs(30);
/// The algorithms of signatures by keys that only the provider has. Neither `none` nor a shared secret is one.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Why a sign-in failed. No text has a token or a secret.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("the provider of identities does not answer as it should: {0}")]
    Unavailable(String),
    #[error("the provider's proof is refused: {0}")]
    Refused(String),
    #[error("{0} is in no group that has a role")]
    NoRole(String),
}

/// All claims of an ID token beside the standard ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claims {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for Claims {}

type Tokens = StandardTokenResponse<
    IdTokenFields<
        Claims,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;
type OidcClient = Client<
    Claims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

pub(super) struct Provider {
    settings: PeopleSettings,
    issuer: IssuerUrl,
    redirect: RedirectUrl,
    http: Http,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    metadata: Option<(CoreProviderMetadata, Instant)>,
    /// When an unknown key last made the server fetch the keys.
    fetched_again: Option<Instant>,
}

/// What the server must remember while the browser is at the provider.
#[derive(Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) state: String,
    nonce: String,
    verifier: String,
    pub(super) at: Timestamp,
}

impl Provider {
    pub(super) fn new(settings: PeopleSettings) -> Result<Self, ProviderError> {
        let wrong = |error: String| ProviderError::Unavailable(error);
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE).build();
        Ok(Self {
            issuer: IssuerUrl::new(settings.issuer.clone()).map_err(|error| wrong(error.to_string()))?,
            redirect: RedirectUrl::new(format!("{}/dashboard/callback", settings.base_url))
                .map_err(|error| wrong(error.to_string()))?,
            http: Http(http.map_err(|error| wrong(error.to_string()))?),
            settings,
            known: Mutex::default(),
        })
    }

    pub(super) fn host(&self) -> &str {
        self.issuer.url().host_str().unwrap_or_default()
    }

    /// Begins a sign-in. Returns where the browser goes.
    pub(super) async fn begin(&self, now: Timestamp) -> Result<(Url, Begun), ProviderError> {
        let client = self.client(self.metadata().await?);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let scopes = ["email", "profile"].map(|scope| Scope::new(scope.to_owned()));
        let (url, state, nonce) = client
            .authorize_url(flow, CsrfToken::new_random, Nonce::new_random)
            .add_scopes(scopes)
            .set_pkce_challenge(challenge)
            .url();
        let (state, nonce) = (state.into_secret(), nonce.secret().clone());
        Ok((url, Begun { state, nonce, verifier: verifier.into_secret(), at: now }))
    }

    /// Exchanges a code for the provider's proof of who the person is, and checks it.
    pub(super) async fn finish(&self, code: String, begun: Begun, now: Timestamp) -> Result<SignedIn, ProviderError> {
        let mut client = self.client(self.metadata().await?);
        let verifier = PkceCodeVerifier::new(begun.verifier);
        let request = client.exchange_code(AuthorizationCode::new(code)).map_err(|error| refused(&error))?;
        let tokens =
            request.set_pkce_verifier(verifier).request_async(&self.http).await.map_err(|error| match error {
                RequestTokenError::ServerResponse(said) => ProviderError::Refused(format!("it says {}", said.error())),
                RequestTokenError::Request(error) => error,
                // Its text may have a token.
                RequestTokenError::Parse(..) => ProviderError::Unavailable("its tokens cannot be read".into()),
                RequestTokenError::Other(error) => ProviderError::Unavailable(error),
            })?;
        let token = tokens.id_token().ok_or_else(|| ProviderError::Refused("it has no ID token".into()))?;
        let nonce = Nonce::new(begun.nonce);
        let mut fetched_again = false;
        let claims = loop {
            let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS).set_time_fn(move || now_of(now));
            let checked = token.claims(&verifier, &nonce).cloned();
            drop(verifier);
            match checked {
                Ok(claims) => break claims,
                Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey))
                    if !fetched_again =>
                {
                    fetched_again = true;
                    client = self.client(self.fetch_again().await?);
                }
                Err(error) => return Err(refused(&error)),
            }
        };
        let groups = groups(claims.additional_claims().all.get(&self.settings.group_claim));
        let its = |it: &&GroupGrant| groups.contains(&it.group.as_str());
        let grants: Vec<Grant> = self.settings.groups.iter().filter(its).map(|it| it.grant.clone()).collect();
        let subject = claims.subject().to_string();
        if grants.is_empty() {
            return Err(ProviderError::NoRole(subject));
        }
        let name = claims.name().and_then(|name| name.get(None)).map(|name| name.to_string());
        let until = Timestamp::from_millis(claims.expiration().timestamp_millis()).map_err(|error| refused(&error))?;
        Ok(SignedIn { subject, email: claims.email().map(|email| email.to_string()), name, grants, until })
    }

    fn client(&self, metadata: CoreProviderMetadata) -> OidcClient {
        let secret = ClientSecret::new(self.settings.client_secret.expose_secret().to_owned());
        let id = ClientId::new(self.settings.client_id.clone());
        Client::from_provider_metadata(metadata, id, Some(secret)).set_redirect_uri(self.redirect.clone())
    }

    async fn metadata(&self) -> Result<CoreProviderMetadata, ProviderError> {
        let mut known = self.known.lock().await;
        match &known.metadata {
            Some((metadata, at)) if at.elapsed() < KNOWN_FOR => Ok(metadata.clone()),
            _ => self.discover(&mut known).await,
        }
    }

    /// Fetches the keys again, but not too often, because anybody can send a token.
    async fn fetch_again(&self) -> Result<CoreProviderMetadata, ProviderError> {
        let mut known = self.known.lock().await;
        if known.fetched_again.is_some_and(|at| at.elapsed() < KEYS_EVERY) {
            return Err(ProviderError::Refused("it is signed with an unknown key".into()));
        }
        known.fetched_again = Some(Instant::now());
        self.discover(&mut known).await
    }

    async fn discover(&self, known: &mut Known) -> Result<CoreProviderMetadata, ProviderError> {
        let found = CoreProviderMetadata::discover_async(self.issuer.clone(), &self.http).await;
        let metadata = found.map_err(|error| ProviderError::Unavailable(error.to_string()))?;
        known.metadata = Some((metadata.clone(), Instant::now()));
        Ok(metadata)
    }
}

/// The way to the provider: requests with a limit of time, and responses with a limit of length.
struct Http(reqwest::Client);

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = ProviderError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, ProviderError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

impl Http {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ProviderError> {
        let unavailable = |error: reqwest::Error| ProviderError::Unavailable(error.without_url().to_string());
        let request = reqwest::Request::try_from(request).map_err(unavailable)?;
        let mut response = self.0.execute(request).await.map_err(unavailable)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err(ProviderError::Unavailable("its response is too long".into()));
            }
            body.extend_from_slice(&chunk);
        }
        let mut whole = HttpResponse::new(body);
        (*whole.status_mut(), *whole.headers_mut()) = (response.status(), std::mem::take(response.headers_mut()));
        Ok(whole)
    }
}

fn refused(error: &impl std::error::Error) -> ProviderError {
    ProviderError::Refused(match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

/// The time for the library, which has a type of its own.
fn now_of<T: From<std::time::SystemTime>>(now: Timestamp) -> T {
    let since = Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or_default());
    (std::time::UNIX_EPOCH + since).into()
}

/// The groups in a claim: a list of texts, or one text.
fn groups(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
