//! The SSLCommerz fake over HTTP.

use gateway_fakes::sslcommerz::{STORE_ID, STORE_PASSWORD, SslCommerz};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_independent_client_of_sslcommerz_works_with_the_fake() {
    let fake = Running::start(SslCommerz::new(), "127.0.0.1:0").await.unwrap();
    let arguments = vec![fake.url(), STORE_ID.into(), STORE_PASSWORD.into()];
    python("sslcommerz-client", &["jukto==0.1.0a1"], "sslcommerz_client.py", arguments).await;
    let books: Vec<_> = fake.program().books().iter().map(|entry| (entry.taken, entry.refunded_minor)).collect();
    assert_eq!(books, [(1, 4_550), (0, 0), (0, 0), (1, 0)]);
}

/// A merchant of the fake.
struct Shop {
    http: reqwest::Client,
    base: String,
}

impl Shop {
    fn new(fake: &Running<SslCommerz>) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(500)).build().unwrap();
        Self { http, base: fake.url() }
    }

    async fn begin(&self, tran_id: &str) -> Option<Value> {
        let body = format!(
            "store_id={STORE_ID}&store_passwd={STORE_PASSWORD}&total_amount=150&currency=BDT&tran_id={tran_id}\
             &product_category=Cups&success_url=https://shop.example/&fail_url=https://shop.example/\
             &cancel_url=https://shop.example/&cus_name=Rahim&cus_email=rahim@shop.example&cus_add1=Road&cus_city=Dhaka\
             &cus_country=Bangladesh&cus_phone=01711111111&shipping_method=NO&num_of_item=1&product_name=Cup\
             &product_profile=general"
        );
        let request = self.http.post(format!("{}/gwprocess/v4/api.php", self.base)).body(body);
        read(request.header("content-type", "application/x-www-form-urlencoded")).await
    }

    async fn get(&self, file: &str, query: &str) -> Option<Value> {
        let credentials = format!("store_id={STORE_ID}&store_passwd={STORE_PASSWORD}&format=json");
        read(self.http.get(format!("{}/validator/api/{file}?{credentials}&{query}", self.base))).await
    }

    async fn transaction(&self, query: &str) -> Option<Value> {
        self.get("merchantTransIDvalidationAPI.php", query).await
    }
}

fn has_effect(fault: Fault) -> bool {
    !matches!(fault, Fault::HangBefore | Fault::DropBefore | Fault::ErrorBefore | Fault::Before(_))
}

#[tokio::test]
async fn each_fault_loses_the_answer_and_refunds_money_only_when_it_comes_after_the_effect() {
    let fake = Running::start(SslCommerz::new(), "127.0.0.1:0").await.unwrap();
    let shop = Shop::new(&fake);
    for (number, (name, fault)) in Fault::ALL.into_iter().enumerate() {
        let session = shop.begin(&format!("order-{number}")).await.unwrap()["sessionkey"].as_str().unwrap().to_owned();
        let bank = fake.program().pay(&session).unwrap().form["bank_tran_id"].clone();
        fake.faults().next("refund", fault);
        let refund =
            format!("bank_tran_id={bank}&refund_trans_id=ref_{number}&refund_amount=150.00&refund_remarks=damaged");
        let answer = shop.transaction(&refund).await;
        assert!(answer.is_none_or(|answer| answer.get("refund_ref_id").is_none()), "{name}");
        let entry = fake.program().books().into_iter().find(|entry| entry.id == session).unwrap();
        assert_eq!(entry.refunded == 1, has_effect(fault), "{name}");
        let again = shop.transaction(&refund).await.unwrap();
        assert_eq!(again["status"], if has_effect(fault) { "failed" } else { "success" }, "{name}");
    }
    assert!(fake.program().books().iter().all(|entry| (entry.taken, entry.refunded_minor) == (1, 15_000)));
}

#[tokio::test]
async fn each_fault_loses_the_answer_and_begins_or_validates_only_when_it_comes_after_the_effect() {
    let fake = Running::start(SslCommerz::new(), "127.0.0.1:0").await.unwrap();
    let shop = Shop::new(&fake);
    for (number, (name, fault)) in Fault::ALL.into_iter().enumerate() {
        let tran_id = format!("order-{number}");
        fake.faults().next("session", fault);
        let lost = shop.begin(&tran_id).await;
        assert!(lost.is_none_or(|answer| answer["status"] != "SUCCESS"), "{name}");
        let begun = fake.program().books().iter().any(|entry| entry.reference == tran_id);
        assert_eq!(begun, has_effect(fault), "{name}");

        let session = shop.begin(&tran_id).await.unwrap()["sessionkey"].as_str().unwrap().to_owned();
        let val_id = fake.program().pay(&session).unwrap().form["val_id"].clone();
        let validate = format!("val_id={val_id}");
        for (operation, file, query) in [
            ("validate", "validationserverAPI.php", validate.clone()),
            ("query", "merchantTransIDvalidationAPI.php", format!("tran_id={tran_id}")),
            ("refund_query", "merchantTransIDvalidationAPI.php", "refund_ref_id=unknown".into()),
        ] {
            fake.faults().next(operation, fault);
            let answer = shop.get(file, &query).await;
            let tells = |answer: &Value| answer.get("val_id").or(answer.get("element")).is_some();
            assert!(answer.is_none_or(|answer| !tells(&answer)), "{operation} {name}");
        }
        let word = if has_effect(fault) { "VALIDATED" } else { "VALID" };
        assert_eq!(shop.get("validationserverAPI.php", &validate).await.unwrap()["status"], word, "{name}");
    }
    assert_eq!(fake.faults().calls().1, 4 * Fault::ALL.len() as u64);
}
