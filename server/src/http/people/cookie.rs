//! The cookies of people: a session's token, and what a sign-in must remember until the browser comes back.

use warp::{
    http::{HeaderMap, HeaderValue, header},
    reply::Response,
};

/// The names and attributes of the cookies. Over https, `__Host-` binds them to this very host.
pub(super) struct Cookies {
    pub(super) session: &'static str,
    pub(super) sign_in: &'static str,
    attributes: &'static str,
}

impl Cookies {
    pub(super) fn of(base_url: &str) -> Self {
        match base_url.starts_with("https://") {
            true => Self {
                session: "__Host-session",
                sign_in: "__Host-sign-in",
                attributes: "Path=/; HttpOnly; SameSite=Lax; Secure",
            },
            // Only this machine's own addresses are served without TLS.
            false => Self { session: "session", sign_in: "sign-in", attributes: "Path=/; HttpOnly; SameSite=Lax" },
        }
    }

    /// Sets a cookie for some seconds; 0 removes it.
    pub(super) fn set(&self, response: &mut Response, name: &str, value: &str, seconds: i64) {
        let cookie = format!("{name}={value}; Max-Age={seconds}; {}", self.attributes);
        response.headers_mut().extend(HeaderValue::from_str(&cookie).ok().map(|cookie| (header::SET_COOKIE, cookie)));
    }
}

/// The value of a cookie.
pub(in crate::http) fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}
