//! People who sign in with OpenID Connect: a server, a strict fake of a provider, and browsers without pages.

mod administration;
mod masking;
mod month;
mod refunds;
mod refusals;
mod roles;
mod sessions;

use gateway_fakes::{
    Running,
    oidc::{CLIENT_ID, CLIENT_SECRET, Oidc},
};
use reqwest::{Method, RequestBuilder, Response, header};
use tempfile::TempDir;

use crate::server::Server;

/// Groups with a role for all workspaces.
const GROUPS: [&str; 4] = ["viewers=viewer", "helpdesk=support", "accounts=finance", "owners=admin"];

/// The arguments of a server whose people sign in at a provider, and the directory of its client's secret.
fn arguments(provider: &Running<Oidc>, groups: &[&str]) -> (Vec<String>, TempDir) {
    let directory = TempDir::new().unwrap();
    let secret = directory.path().join("client-secret");
    std::fs::write(&secret, format!("{CLIENT_SECRET}\n")).unwrap();
    let mut arguments = vec!["--oidc-issuer".to_owned(), provider.url(), "--oidc-client-id".into(), CLIENT_ID.into()];
    arguments.extend(["--oidc-client-secret-file".into(), secret.to_str().unwrap().into()]);
    arguments.extend(groups.iter().flat_map(|group| ["--oidc-roles".to_owned(), (*group).to_owned()]));
    (arguments, directory)
}

fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

struct People {
    server: Server,
    provider: Running<Oidc>,
    arguments: Vec<String>,
    _secret: TempDir,
}

impl People {
    async fn start() -> Self {
        Self::start_with(&GROUPS, &[]).await
    }

    async fn start_with(groups: &[&str], more: &[&str]) -> Self {
        let provider = Running::start(Oidc::new(), "127.0.0.1:0").await.unwrap();
        let (arguments, secret) = arguments(&provider, groups);
        let arguments: Vec<String> = arguments.into_iter().chain(more.iter().map(ToString::to_string)).collect();
        Self { server: Server::start_with(&texts(&arguments)), provider, arguments, _secret: secret }
    }

    /// Kills the server and starts it with one more group.
    fn restart_with_group(&mut self, group: &str) {
        self.server.kill();
        self.arguments.extend(["--oidc-roles".to_owned(), group.to_owned()]);
        self.server.restart_with(&texts(&self.arguments));
    }

    /// Signs in a person of a group, and returns the session's cookie.
    async fn sign_in(&self, group: &str) -> String {
        self.provider.program().be(group, &[group]);
        sign_in(&self.server).await
    }

    /// The id of a new workspace, and a test key of it.
    fn workspace(&self, name: &str) -> (String, String) {
        let id = self.server.run_for_line(&["workspaces", "create", "--name", name]);
        let create = ["keys", "create", "--workspace", &id, "--environment", "test"];
        (id.clone(), self.server.run_for_line(&create))
    }
}

async fn sign_in(server: &Server) -> String {
    let back = come_back(server).await;
    assert_eq!(location(&back), "/dashboard");
    cookie(&back, "session").expect("a session")
}

/// Goes to the provider and comes back. Returns the server's answer.
async fn come_back(server: &Server) -> Response {
    let (callback, cookie) = at_provider(server).await;
    call_back(server, &callback, &cookie).await
}

/// Goes to the provider. Returns the path to which it sends the browser back, and the cookie of this sign-in.
async fn at_provider(server: &Server) -> (String, String) {
    let begun = server.keyless(Method::GET, "/dashboard/sign-in").send().await.unwrap();
    assert_eq!(begun.status(), 303);
    let cookie = cookie(&begun, "sign-in").unwrap();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
    let sent_back = client.get(location(&begun)).send().await.unwrap();
    assert_eq!(sent_back.status(), 303, "{}", sent_back.text().await.unwrap());
    (location(&sent_back).strip_prefix(&server.url).unwrap().to_owned(), cookie)
}

async fn call_back(server: &Server, callback: &str, cookie: &str) -> Response {
    let request = server.keyless(Method::GET, callback).header(header::COOKIE, cookie);
    let back = request.send().await.unwrap();
    assert_eq!(back.status(), 303);
    back
}

fn location(response: &Response) -> &str {
    response.headers()[header::LOCATION].to_str().unwrap()
}

/// The pair of a cookie that the response sets and does not remove.
fn cookie(response: &Response, name: &str) -> Option<String> {
    let set = response.headers().get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap());
    let mut pairs =
        set.filter(|text| !text.contains("Max-Age=0")).map(|text| text.split(';').next().unwrap().to_owned());
    pairs.find(|pair| pair.starts_with(&format!("{name}=")))
}

/// A request of the console's page.
fn as_person(request: RequestBuilder, session: &str, workspace: &str, environment: &str) -> RequestBuilder {
    let request = request.header(header::COOKIE, session).header("x-csrf", "1");
    request.header("x-workspace", workspace).header("x-environment", environment)
}
