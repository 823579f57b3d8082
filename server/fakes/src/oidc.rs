//! Fake of an OpenID Connect provider, after OpenID Connect Core 1.0 and RFC 7636. It signs everybody in at once, as the person of
//! `/_control/person`: `{"subject", "email", "name", "groups": […], "lifetime": seconds}`.
//!
//! `/_control/next` makes the next ID token wrong, `{"wrong": "audience"}`: see [`Wrong`]. `/_control/rotate` replaces the key.

mod token;

use std::{collections::BTreeMap, sync::Mutex};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use self::token::Wrong;
use self::token::{Key, base64url};
use crate::{Answer, Call, Form, Instead, Program, bkash::base64, control, lock, now, token as word};

/// The client's id.
pub const CLIENT_ID: &str = "payments-console";
/// The client's secret.
pub const CLIENT_SECRET: &str = "fake-oidc-client-secret";
/// The path of the only redirect URI, on any host of this machine.
const CALLBACK: &str = "/dashboard/callback";
const CODE_SECONDS: u64 = 60;

/// The fake.
#[derive(Debug)]
pub struct Oidc {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    key: Key,
    keys_made: u64,
    person: Person,
    wrong: Option<Wrong>,
    codes: BTreeMap<String, Code>,
    codes_made: u64,
    ahead: u64,
}

#[derive(Debug, Clone)]
struct Person {
    subject: String,
    email: String,
    name: String,
    groups: Vec<String>,
    lifetime: u64,
}

/// A code that the browser takes to the client.
#[derive(Debug)]
struct Code {
    redirect: String,
    challenge: String,
    nonce: String,
    ends_at: u64,
    person: Person,
}

impl Default for Oidc {
    fn default() -> Self {
        let person = Person {
            subject: "person-1".into(),
            email: "mita@platform.example".into(),
            name: "Mita".into(),
            groups: Vec::new(),
            lifetime: 3600,
        };
        let (codes, wrong) = (BTreeMap::new(), None);
        let state = State { key: Key::new(1), keys_made: 1, person, wrong, codes, codes_made: 0, ahead: 0 };
        Self { state: Mutex::new(state) }
    }
}

impl Oidc {
    /// Creates a provider with a person in no group.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Signs in a person in these groups from now on.
    pub fn be(&self, subject: &str, groups: &[&str]) {
        let person = &mut lock(&self.state).person;
        person.subject = subject.into();
        person.email = format!("{subject}@platform.example");
        person.groups = groups.iter().map(ToString::to_string).collect();
    }

    /// How many seconds ID tokens last from now on.
    pub fn set_lifetime(&self, seconds: u64) {
        lock(&self.state).person.lifetime = seconds;
    }

    /// Sets the clock of its ID tokens ahead by this many seconds.
    pub fn set_clock_ahead(&self, seconds: u64) {
        lock(&self.state).ahead = seconds;
    }

    /// Makes the next ID token wrong.
    pub fn make_wrong(&self, wrong: Wrong) {
        lock(&self.state).wrong = Some(wrong);
    }

    /// Signs with a new key from now on, and forgets the old one.
    pub fn rotate(&self) {
        let state = &mut *lock(&self.state);
        state.keys_made += 1;
        state.key = Key::new(state.keys_made);
    }

    /// Makes a code for a valid request, and sends the browser back with it.
    fn authorize(&self, query: &Form) -> Result<Answer, Answer> {
        let field = |name: &str| query.get(name).map_or("", String::as_str);
        let redirect = url::Url::parse(field("redirect_uri")).ok().filter(|url| url.path() == CALLBACK);
        let is_local = |url: &url::Url| url.host_str().is_some_and(|host| matches!(host, "127.0.0.1" | "localhost"));
        // A wrong client or redirect URI must not lead anywhere.
        let mut redirect = redirect.filter(is_local).ok_or_else(|| invalid("redirect_uri is not registered"))?;
        let problem = match () {
            () if field("client_id") != CLIENT_ID => "client_id is unknown",
            () if field("response_type") != "code" => "response_type must be code",
            () if !field("scope").split(' ').any(|scope| scope == "openid") => "scope must have openid",
            () if field("state").len() < 16 => "state is too short",
            () if field("nonce").len() < 16 => "nonce is too short",
            () if field("code_challenge_method") != "S256" => "code_challenge_method must be S256",
            () if field("code_challenge").len() != 43 => "code_challenge is no SHA-256",
            () => "",
        };
        if !problem.is_empty() {
            return Err(invalid(problem));
        }
        let state = &mut *lock(&self.state);
        state.codes_made += 1;
        let code = word("code_", state.codes_made, field("nonce"));
        let kept = Code {
            redirect: redirect.to_string(),
            challenge: field("code_challenge").into(),
            nonce: field("nonce").into(),
            ends_at: now() + CODE_SECONDS,
            person: state.person.clone(),
        };
        state.codes.insert(code.clone(), kept);
        redirect.query_pairs_mut().append_pair("code", &code).append_pair("state", field("state"));
        Ok(Answer::see_other(redirect.into()))
    }

    /// Exchanges a code, which works once.
    fn exchange(&self, call: &Call, base_url: &str) -> Result<Value, Answer> {
        let basic = format!("Basic {}", base64(format!("{CLIENT_ID}:{CLIENT_SECRET}").as_bytes()));
        let refused = |error: &str| Answer::json(StatusCode::BAD_REQUEST, &json!({"error": error}));
        if call.header("authorization") != basic {
            return Err(Answer::json(StatusCode::UNAUTHORIZED, &json!({"error": "invalid_client"})));
        }
        let form = call.form();
        let field = |name: &str| form.get(name).map_or("", String::as_str);
        if field("grant_type") != "authorization_code" {
            return Err(refused("unsupported_grant_type"));
        }
        let state = &mut *lock(&self.state);
        let code = state.codes.remove(field("code")).filter(|code| code.ends_at > now());
        let code = code.ok_or_else(|| refused("invalid_grant"))?;
        let challenge = base64url(&Sha256::digest(field("code_verifier")));
        if code.redirect != field("redirect_uri") || code.challenge != challenge {
            return Err(refused("invalid_grant"));
        }
        let Person { subject, email, name, groups, lifetime } = code.person;
        let now = now() + state.ahead;
        let claims = json!({"iss": base_url, "aud": CLIENT_ID, "sub": subject, "email": email, "name": name, "groups": groups,
            "nonce": code.nonce, "iat": now, "exp": now + lifetime});
        let token = state.key.token(claims, state.wrong.take()).ok_or_else(|| refused("server_error"))?;
        Ok(json!({"access_token": word("at_", state.codes_made, "access"), "token_type": "Bearer",
            "expires_in": lifetime, "id_token": token}))
    }

    fn control(&self, call: &Call) -> Answer {
        let order = control::Order::new(call);
        match call.path.as_str() {
            "/_control/rotate" => self.rotate(),
            "/_control/next" => match order.text("wrong").parse() {
                Ok(wrong) => self.make_wrong(wrong),
                Err(()) => return control::done(false, "wrong is unknown"),
            },
            "/_control/person" => {
                let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
                let groups = body.get("groups").and_then(Value::as_array).into_iter().flatten();
                let groups: Vec<&str> = groups.filter_map(Value::as_str).collect();
                self.be(order.text("subject"), &groups);
                let person = &mut lock(&self.state).person;
                for (name, field) in [("email", &mut person.email), ("name", &mut person.name)] {
                    if !order.text(name).is_empty() {
                        order.text(name).clone_into(field);
                    }
                }
                person.lifetime = order.number("lifetime").unwrap_or(person.lifetime);
            }
            _ => return not_found(),
        }
        control::done(true, "")
    }
}

impl Program for Oidc {
    fn answer(&self, call: &Call, base_url: &str) -> Answer {
        match (&call.method, call.path.as_str()) {
            (&Method::GET, "/.well-known/openid-configuration") => Answer::ok(&json!({
                "issuer": base_url, "authorization_endpoint": format!("{base_url}/authorize"),
                "token_endpoint": format!("{base_url}/token"), "jwks_uri": format!("{base_url}/keys"),
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                // It offers more than a client should take.
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                "code_challenge_methods_supported": ["S256"]})),
            (&Method::GET, "/keys") => Answer::ok(&json!({"keys": [lock(&self.state).key.public()]})),
            (&Method::GET, "/authorize") => self.authorize(&call.query).unwrap_or_else(|refusal| refusal),
            (&Method::POST, "/token") => Answer::of(self.exchange(call, base_url)),
            (&Method::POST, path) if path.starts_with("/_control/") => self.control(call),
            _ => not_found(),
        }
    }

    fn operation(&self, call: &Call) -> Option<&'static str> {
        match call.path.as_str() {
            "/token" => Some("token"),
            "/keys" => Some("keys"),
            _ => None,
        }
    }

    fn instead(&self, _instead: Instead) -> Answer {
        Answer::json(StatusCode::SERVICE_UNAVAILABLE, &json!({"error": "temporarily_unavailable"}))
    }

    fn settings(&self, base_url: &str) -> String {
        format!(
            "# The file has the text {CLIENT_SECRET}\noidc-issuer = \"{base_url}\"\noidc-client-id = \"{CLIENT_ID}\"\n\
             oidc-client-secret-file = \"FILE\"\noidc-roles = [\"helpdesk=support\"]\n"
        )
    }
}

fn invalid(problem: &str) -> Answer {
    Answer::json(StatusCode::BAD_REQUEST, &json!({"error": "invalid_request", "error_description": problem}))
}

fn not_found() -> Answer {
    Answer::json(StatusCode::NOT_FOUND, &json!({"error": "not_found"}))
}
