//! Requests without a key that lead to a call at a gateway.

use futures_util::future::join_all;
use gateway_fakes::bkash;
use reqwest::{Method, StatusCode};

use super::{approved, live};

#[tokio::test(flavor = "multi_thread")]
async fn a_head_or_a_prefetch_of_a_return_url_has_no_effect() {
    let live = live().await;
    let (bdt, back) = approved(&live, bkash::WALLET).await;
    let usd = live.create(7.0, "USD").await;
    live.pay(&usd).await;
    let back = back.strip_prefix(&live.server.url).unwrap().to_owned();
    let cancelled = format!("/gateways/stripe/return/{usd}?outcome=cancel");
    for (id, path) in [(&bdt, &back), (&usd, &cancelled)] {
        for (method, header) in [
            (Method::HEAD, None),
            (Method::GET, Some(("sec-purpose", "prefetch"))),
            (Method::GET, Some(("sec-purpose", "prefetch;prerender"))),
            (Method::GET, Some(("Sec-Purpose", "prefetch; anonymous-client-ip"))),
            (Method::GET, Some(("purpose", "Prefetch"))),
            (Method::GET, Some(("x-purpose", "preview"))),
            (Method::GET, Some(("x-moz", "prefetch"))),
        ] {
            let mut request = live.server.keyless(method, path);
            if let Some((name, value)) = header {
                request = request.header(name, value);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{header:?}");
            assert_eq!(answer.headers()["location"], format!("/checkout/{id}"), "{header:?}");
            assert_eq!(answer.headers()["cache-control"], "no-store");
        }
        assert_eq!(live.payment(id).await["rawStatus"], "processing");
    }
    let faults = live.bkash.faults();
    assert_eq!(
        (faults.calls_of("execute"), faults.calls_of("status"), live.stripe.faults().calls_of("expire")),
        (0, 0, 0)
    );
    assert!(live.come_back(&format!("{}{back}", live.server.url)).await.starts_with("https://shop.example/paid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_returns_share_a_query_and_later_ones_wait_a_second() {
    let live = live().await;
    let id = live.create(7.0, "USD").await;
    live.pay(&id).await;
    let asked = || live.stripe.faults().calls_of("retrieve");
    let return_often = async || {
        let path = format!("/gateways/stripe/return/{id}?outcome=success");
        join_all((0..20).map(|_| {
            let back = format!("{}{path}", live.server.url);
            let live = &live;
            async move { live.come_back(&back).await }
        }))
        .await
    };
    let begun = std::time::Instant::now();
    for turn in 1..=2 {
        let pages = return_often().await;
        assert!(pages.iter().all(|page| *page == format!("/checkout/{id}")), "{pages:?}");
        // Requests that arrive during the first query share its answer. Later ones share another.
        assert!(asked() <= 1 + begun.elapsed().as_secs(), "{} questions after turn {turn}", asked());
    }
    assert!(asked() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_clicks_on_pay_begin_one_attempt_at_the_gateway() {
    let live = live().await;
    for (currency, faults) in [("BDT", live.bkash.faults()), ("USD", live.stripe.faults())] {
        let id = live.create(7.0, currency).await;
        let attempts = join_all((0..10).map(|_| live.pay(&id))).await;
        assert!(attempts.iter().all(|attempt| *attempt == attempts[0]), "{attempts:?}");
        assert_eq!(faults.calls_of("create"), 1, "{currency}");
    }
}
