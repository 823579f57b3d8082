//! Payments and refunds through SSLCommerz.

mod payments;
mod refunds;
mod troubles;

use gateway_fakes::{
    Back, Does, Fake, Running,
    sslcommerz::{STORE_PASSWORD, SslCommerz},
};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::live::Live;

/// A server that has SSLCommerz too.
struct Shop {
    live: Live,
    fake: Running<SslCommerz>,
}

impl Shop {
    async fn open() -> Self {
        Self::open_with("").await
    }

    async fn open_with(settings: &str) -> Self {
        let fake = Running::start(SslCommerz::new(), "127.0.0.1:0").await.unwrap();
        let live = Live::start(&format!("gateway-timeout = 1\n{settings}\n{}", fake.settings())).await;
        Self { live, fake }
    }

    fn program(&self) -> &SslCommerz {
        self.fake.program()
    }

    /// Asks to pay as this customer.
    async fn ask(&self, id: &str, customer: &Value) -> Response {
        let pay = self.live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay"));
        pay.json(customer).send().await.unwrap()
    }

    /// Begins an attempt. Returns the address of its page and its session.
    async fn pay(&self, id: &str) -> (String, String) {
        let customer = json!({"paymentMethod": "sslcommerz", "customerName": "করিম", "customerEmail": "karim@example.com",
            "phoneNumber": "01712345678"});
        let answer = self.ask(id, &customer).await;
        assert_eq!(answer.status(), 200);
        let url = answer.json::<Value>().await.unwrap()["redirectUrl"].as_str().unwrap().to_owned();
        let session = url.split("SESSIONKEY=").nth(1).unwrap().to_owned();
        (url, session)
    }

    /// Creates a payment of 100 taka and begins an attempt. Returns its id, and the address of its page and its session.
    async fn begun(&self) -> (String, String, String) {
        let id = self.live.create(100.0, "BDT").await;
        let (url, session) = self.pay(&id).await;
        (id, url, session)
    }

    /// What a customer does on the page. Returns when the server has got the notice.
    async fn visit(&self, url: &str, does: Does) -> Back {
        let back = self.program().visit(url, does).unwrap();
        self.program().notices_sent().await;
        back
    }

    /// The browser goes back, by POST from another site. Returns where it goes then.
    async fn come_back(&self, back: &Back) -> String {
        assert_eq!(back.method, "POST");
        let path = back.url.strip_prefix(&self.live.server.url).unwrap();
        let request = self.live.server.keyless(Method::POST, path).header("origin", "https://securepay.sslcommerz.com");
        let answer = request.header("sec-fetch-site", "cross-site").body(encoded(back)).header(KIND.0, KIND.1).send();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 303);
        answer.headers()["location"].to_str().unwrap().to_owned()
    }

    /// Sends a notice. Returns the status and the text of the answer.
    async fn notify(&self, body: String) -> (u16, String) {
        let request = self.live.server.keyless(Method::POST, "/gateways/sslcommerz/webhook");
        let answer = request.header(KIND.0, KIND.1).body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// A payment of 100 taka that is paid.
    async fn paid(&self) -> (String, String) {
        let (id, url, session) = self.begun().await;
        self.visit(&url, Does::Pays).await;
        self.live.becomes(&id, "paid").await;
        (id, session)
    }

    fn taken(&self, session: &str) -> u32 {
        self.program().books().into_iter().find(|entry| entry.id == session).unwrap().taken
    }

    /// The sum of the postings to an account, in minor units.
    fn sum(&self, account: &str) -> i64 {
        let exported = self.live.server.run(&["export", "postings"]);
        let postings = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        postings.filter(|it| it["account"] == account).map(|it| it["minor"].as_i64().unwrap()).sum()
    }

    fn assert_no_secret_is_logged(&self) {
        let log = self.live.server.log();
        for secret in [STORE_PASSWORD, "testbox%40ssl", "store_passwd", "val_id="] {
            let line = log.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret}");
        }
    }
}

const KIND: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn encoded(back: &Back) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(back.form.iter()).finish()
}
