//! `/dashboard/sign-in`, `/dashboard/callback`, `/dashboard/sign-out`. A failed sign-in leads back to the console, which says why
//! in the visitor's language; the log has the reason.

use payments_core::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use warp::reply::Response;

use super::{People, ProviderError, cookie::cookie, provider::Begun, session::check_same_site};
use crate::{
    http::{
        reply::{self, ApiError, Outcome},
        request::Request,
    },
    sealed,
};

/// How long a visitor may stay at the provider.
const PATIENCE_SECONDS: u32 = 600;
const PURPOSE: &str = "sign-in";

/// `GET`: sends the browser to the provider.
pub(in crate::http) async fn begin(request: Request) -> Outcome {
    let people = people(&request)?;
    if request.is_ahead_of_its_user() {
        return Ok(reply::see_other("/dashboard"));
    }
    let ambient = &request.service().ambient;
    let (url, begun) = match people.provider.begin(ambient.now()).await {
        Ok(begun) => begun,
        Err(error) => return Ok(failed(people, &error)),
    };
    let text = SecretString::from(serde_json::to_string(&begun).map_err(ApiError::internal)?);
    let sealed = sealed::seal(&people.client_secret, PURPOSE, &text, &**ambient);
    let sealed = sealed.ok_or_else(|| ApiError::internal("a sign-in could not be sealed"))?;
    let mut response = reply::see_other(url.as_str());
    people.cookies.set(&mut response, people.cookies.sign_in, &hex::encode(sealed), PATIENCE_SECONDS.into());
    Ok(response)
}

/// `GET`: the browser comes back from the provider, with a code or an error.
pub(in crate::http) async fn finish(request: Request) -> Outcome {
    let people = people(&request)?;
    let token = match signed_in(people, &request).await {
        Ok(token) => token,
        Err(error) => return Ok(failed(people, &error)),
    };
    let mut response = reply::see_other("/dashboard");
    people.cookies.set(&mut response, people.cookies.sign_in, "", 0);
    let longest = crate::domain::LONGEST_SESSION_SECONDS;
    people.cookies.set(&mut response, people.cookies.session, token.expose_secret(), longest.into());
    Ok(response)
}

async fn signed_in(people: &People, request: &Request) -> Result<SecretString, ProviderError> {
    let refused = |why: &str| ProviderError::Refused(why.to_owned());
    let service = request.service();
    let now = service.ambient.now();
    let begun = begun(people, request, now).ok_or_else(|| refused("this browser began no sign-in lately"))?;
    if request.query("state").is_none_or(|state| state != begun.state) {
        return Err(refused("its state is of another sign-in"));
    }
    let code = request.query("code").ok_or_else(|| refused("it has no code"))?;
    let person = people.provider.finish(code, begun, now).await?;
    let subject = person.subject.clone();
    let token = service.directory.begin_session(person).await;
    let token = token.map_err(|error| ProviderError::Unavailable(error.to_string()))?;
    tracing::info!(subject, "a person signed in");
    Ok(token)
}

/// What the browser's cookie remembers.
fn begun(people: &People, request: &Request, now: Timestamp) -> Option<Begun> {
    let sealed = hex::decode(cookie(request.headers(), people.cookies.sign_in)?).ok()?;
    let text = sealed::open(&people.client_secret, PURPOSE, &sealed)?;
    let begun: Begun = serde_json::from_str(text.expose_secret()).ok()?;
    (begun.at.plus_seconds(PATIENCE_SECONDS) > now).then_some(begun)
}

fn failed(people: &People, error: &ProviderError) -> Response {
    tracing::warn!(%error, "a sign-in failed");
    let mut response = reply::see_other(match error {
        ProviderError::Unavailable(_) => "/dashboard?sign-in=unavailable",
        ProviderError::Refused(_) => "/dashboard?sign-in=refused",
        ProviderError::NoRole(_) => "/dashboard?sign-in=no-role",
    });
    people.cookies.set(&mut response, people.cookies.sign_in, "", 0);
    response
}

/// `POST`: ends the session.
pub(in crate::http) async fn sign_out(request: Request) -> Outcome {
    let people = people(&request)?;
    check_same_site(people, request.headers(), request.method())?;
    if let Some(token) = cookie(request.headers(), people.cookies.session) {
        request.service().directory.end_session(token).await?;
    }
    let mut response = reply::ok(&serde_json::json!({}))?;
    people.cookies.set(&mut response, people.cookies.session, "", 0);
    Ok(response)
}

fn people(request: &Request) -> Result<&People, ApiError> {
    request.server.people.as_ref().ok_or_else(ApiError::no_such_path)
}
