//! The Rust examples of the reference: one function for each operation, whose body the page shows. "ID" becomes the example's
//! id. Tests compile them.

use payments_client::Client;

type Done = Result<(), Box<dyn std::error::Error>>;

pub async fn create_payment(client: &Client) -> Done {
    use payments_client::{CreatePayment, Metadata, Money};

    let params = CreatePayment::of(Money::taka(750))
        .success_url("https://shop.example/paid")
        .cancel_url("https://shop.example/cart")
        .description("Rahim’s Tea, two cups")
        .merchant_transaction_id("order-1017")
        .metadata(Metadata::of(serde_json::json!({ "table": "7" }))?);
    let payment = client.payments().create(params).idempotency_key("order-1017").await?;
    println!("redirect the customer to {}", payment.checkout_url);
    Ok(())
}

pub async fn list_payments(client: &Client) -> Done {
    use payments_client::Status;

    let page = client.payments().list().status(Status::Completed).limit(1).await?;
    for payment in &page.items {
        println!("{} {}", payment.id, payment.money());
    }
    Ok(())
}

pub async fn retrieve_payment(client: &Client) -> Done {
    let payment = client.payments().retrieve(&"ID".parse()?).await?;
    println!("{}", payment.status);
    Ok(())
}

pub async fn retrieve_timeline(client: &Client) -> Done {
    for entry in client.payments().timeline(&"ID".parse()?).await?.items {
        println!("{} {}", entry.created_at, entry.description);
    }
    Ok(())
}

pub async fn refund_payment(client: &Client) -> Done {
    use payments_client::Amount;

    let (part, reason) = (Amount::from_major(250), Some("A cup was broken"));
    let payment = client.payments().refund_part(&"ID".parse()?, part, reason, "return-1017-cup").await?;
    println!("{} of {} is refunded", payment.amount_refunded(), payment.amount);
    Ok(())
}

pub async fn simulate_payment(client: &Client) -> Done {
    use payments_client::{SimulatePayment, SimulatedEvent};

    let disputed = SimulatePayment::event(SimulatedEvent::Disputed);
    let payment = client.payments().simulate(&"ID".parse()?, &disputed).await?;
    println!("{:?}", payment.dispute());
    Ok(())
}

pub async fn retrieve_account(client: &Client) -> Done {
    let account = client.account().retrieve().await?;
    println!("{}: {} payments", account.workspace.name, account.volume.total_payments);
    Ok(())
}

pub async fn retrieve_balance(client: &Client) -> Done {
    println!("৳{}", client.account().balance().await?.bdt_balance);
    Ok(())
}

pub async fn retrieve_activity(client: &Client) -> Done {
    for day in client.account().activity().days(1).await?.days {
        println!("{}: {} of {} paid, ৳{}", day.date, day.bdt.paid, day.bdt.created, day.bdt.volume);
    }
    Ok(())
}

pub async fn draw_activity(client: &Client) -> Done {
    use payments_client::Method;

    let request = client.request(Method::GET, "/api/v1/account/activity.svg");
    let chart = request.query("days", 1).query("currency", "BDT").await?;
    std::fs::write("activity.svg", &chart.body)?;
    Ok(())
}

pub async fn list_apps(client: &Client) -> Done {
    for app in client.account().apps().await? {
        println!("{} {}", app.id, app.name);
    }
    Ok(())
}

pub async fn list_notices(client: &Client) -> Done {
    for notice in client.account().notices().await? {
        println!("{} {} since {}", notice.kind, notice.subject, notice.since);
    }
    Ok(())
}

pub async fn list_keys(client: &Client) -> Done {
    for key in client.account().keys().await? {
        println!("…{} was last used {:?}", key.last4, key.last_used_at);
    }
    Ok(())
}

pub async fn list_audit(client: &Client) -> Done {
    for entry in client.account().audit().limit(100).await?.items {
        println!("{} {} by {}", entry.created_at, entry.action, entry.actor.id);
    }
    Ok(())
}

pub async fn list_transactions(client: &Client) -> Done {
    use payments_client::Currency;

    let page = client.account().transactions().currency(Currency::Bdt).limit(2).await?;
    for it in page.items {
        println!("{} {} ৳{} -> ৳{}", it.created_at, it.kind, it.amount, it.balance);
    }
    Ok(())
}

pub async fn download_transactions(client: &Client) -> Done {
    use payments_client::Method;

    let request = client.request(Method::GET, "/api/v1/account/transactions.csv");
    let table = request.query("currency", "BDT").query("limit", 2).await?;
    std::fs::write("transactions.csv", &table.body)?;
    Ok(())
}

pub async fn list_payouts(client: &Client) -> Done {
    for payout in client.payouts().list().limit(1).await?.items {
        println!("{} {} {}", payout.id, payout.amount, payout.status);
    }
    Ok(())
}

pub async fn create_payout(client: &Client) -> Done {
    use payments_client::{Amount, CreatePayout, Currency};

    let params = CreatePayout::of(Amount::from_major(500), Currency::Bdt);
    let payout = client.payouts().create(params).idempotency_key("payout-2026-11-27").await?;
    println!("{} is {}", payout.id, payout.status);
    Ok(())
}

pub async fn list_payout_destinations(client: &Client) -> Done {
    for account in client.payouts().destinations().await? {
        println!("{} goes to …{}", account.currency, account.destination.last4);
    }
    Ok(())
}

pub async fn set_payout_destination(client: &Client) -> Done {
    use payments_client::{BankAccount, Currency, SetDestination};

    let (holder, bank, number) = ("Karim Stores".into(), "010271234".into(), "1234567890123".into());
    let destination = SetDestination::bank_account(Currency::Bdt, BankAccount { holder, bank, number });
    client.payouts().set_destination(&destination).await?;
    Ok(())
}

pub async fn set_payout_schedule(client: &Client) -> Done {
    use payments_client::{Currency, PayoutInterval, SetPayoutSchedule};

    let weekly = SetPayoutSchedule::new(Currency::Bdt, PayoutInterval::Weekly);
    println!("{:?}", client.payouts().set_schedule(&weekly).await?.schedule.next_at);
    Ok(())
}

pub async fn retrieve_payout(client: &Client) -> Done {
    let payout = client.payouts().retrieve(&"ID".parse()?).await?;
    println!("{}", payout.status);
    Ok(())
}

pub async fn cancel_payout(client: &Client) -> Done {
    let payout = client.payouts().cancel(&"ID".parse()?).await?;
    println!("{}", payout.status);
    Ok(())
}

pub async fn retrieve_payout_statement(client: &Client) -> Done {
    use payments_client::Method;

    let page = client.request(Method::GET, "/api/v1/payouts/ID/statement").query("language", "en").await?;
    std::fs::write("statement.html", &page.body)?;
    Ok(())
}

pub async fn list_payout_transactions(client: &Client) -> Done {
    for it in client.payouts().transactions(&"ID".parse()?).limit(2).await?.items {
        println!("{} {} ৳{} -> ৳{}", it.created_at, it.kind, it.amount, it.balance);
    }
    Ok(())
}

pub async fn download_payout_transactions(client: &Client) -> Done {
    use payments_client::Method;

    let table = client.request(Method::GET, "/api/v1/payouts/ID/transactions.csv").await?;
    std::fs::write("transactions.csv", &table.body)?;
    Ok(())
}

pub async fn list_events(client: &Client) -> Done {
    use payments_client::EventKind;

    let page = client.events().list().events([&EventKind::PaymentCompleted]).limit(1).await?;
    for event in page.items {
        println!("{} {}", event.id(), event.kind());
    }
    Ok(())
}

pub async fn retrieve_event(client: &Client) -> Done {
    let event = client.events().retrieve(&"ID".parse()?).await?;
    println!("{}", event.kind());
    Ok(())
}

pub async fn list_requests(client: &Client) -> Done {
    for request in client.request_log().list().failed().limit(1).await?.items {
        println!("{} {} {}", request.method, request.path, request.status);
    }
    Ok(())
}

pub async fn create_webhook(client: &Client) -> Done {
    use payments_client::{CreateWebhook, EventKind, Subscription};

    let events = Subscription::Only(vec![EventKind::PaymentCompleted, EventKind::PaymentRefunded]);
    let params = CreateWebhook::new("https://shop.example/hooks", events);
    let endpoint = client.webhooks().create(params).idempotency_key("shop-hook").await?;
    // Give the secret to the receiver. Do not print it.
    std::fs::write("webhook.secret", endpoint.secret.reveal())?;
    Ok(())
}

pub async fn list_webhooks(client: &Client) -> Done {
    for endpoint in client.webhooks().list().await? {
        println!("{} {}", endpoint.id, endpoint.url);
    }
    Ok(())
}

pub async fn update_webhook(client: &Client) -> Done {
    use payments_client::{Retries, Subscription, UpdateWebhook};

    let changes =
        UpdateWebhook::default().events(Subscription::All).description("the shop’s backend").retries(Retries::Standard);
    client.webhooks().update(&"ID".parse()?, changes).await?;
    Ok(())
}

pub async fn remove_webhook(client: &Client) -> Done {
    client.webhooks().delete(&"ID".parse()?).await?;
    Ok(())
}

pub async fn rotate_webhook_secret(client: &Client) -> Done {
    use payments_client::RotateSecret;

    let params = RotateSecret::default().overlap_seconds(3600);
    let endpoint = client.webhooks().rotate_secret(&"ID".parse()?, params).await?;
    // Give the secret to the receiver within the hour. Do not print it.
    std::fs::write("webhook.secret", endpoint.secret.reveal())?;
    Ok(())
}

pub async fn recover_webhook(client: &Client) -> Done {
    use payments_client::RecoverWebhook;

    let mut params = RecoverWebhook::since("2026-03-01T00:00:00Z".parse()?);
    while let Some(next) = client.webhooks().recover(&"ID".parse()?, &params).await?.next {
        params = params.after(next);
    }
    Ok(())
}

pub async fn test_webhook(client: &Client) -> Done {
    use payments_client::EventKind;

    let delivery = client.webhooks().test_event(&"ID".parse()?, EventKind::PaymentRefunded).await?;
    println!("{:?}", delivery.and_then(|delivery| delivery.response_status));
    Ok(())
}

pub async fn list_deliveries(client: &Client) -> Done {
    for delivery in client.webhooks().deliveries().limit(1).await?.items {
        println!("{} {:?}", delivery.id, delivery.response_status);
    }
    Ok(())
}

pub async fn resend_delivery(client: &Client) -> Done {
    let delivery = client.webhooks().resend(&"ID".parse()?).await?;
    println!("{} is pending", delivery.id);
    Ok(())
}

pub async fn verify_signature(client: &Client) -> Done {
    use payments_client::VerifySignature;

    // For a comparison only. A receiver verifies with `webhook-verify`, and its secret stays with it.
    let (body, header) = (std::fs::read_to_string("body.json")?, std::fs::read_to_string("signature")?);
    let secret = std::fs::read_to_string("webhook.secret")?;
    let verdict = client.webhooks().verify(VerifySignature::new(body, header.trim_end(), secret).tolerance(0)).await?;
    println!("{verdict:?}");
    Ok(())
}

pub async fn advance_sandbox(client: &Client) -> Done {
    let moved = client.sandbox().advance(3600).await?;
    println!("{} payments expired", moved.expired);
    Ok(())
}

pub async fn reset_sandbox(client: &Client) -> Done {
    client.sandbox().reset().await?;
    Ok(())
}

pub async fn create_demo_session(client: &Client) -> Done {
    use payments_client::{CreateDemoSession, Money};

    let params = CreateDemoSession::of(Money::taka(250)).description("A cup of tea");
    println!("open {}", client.checkout().demo_session(params).await?.checkout_url);
    Ok(())
}

pub async fn retrieve_checkout(client: &Client) -> Done {
    println!("{}", client.checkout().retrieve(&"ID".parse()?).await?.expires_at);
    Ok(())
}

pub async fn simulate_checkout(client: &Client) -> Done {
    use payments_client::SimulateOutcome;

    let ended = client.checkout().simulate(&"ID".parse()?, SimulateOutcome::Completed).await?;
    println!("{}", ended.status);
    Ok(())
}

pub async fn pay_checkout(client: &Client) -> Done {
    use payments_client::{Pay, PayResult, PaymentMethod};

    let params =
        Pay { payment_method: Some(PaymentMethod::Mfs), phone_number: Some("01712345678".into()), ..Pay::default() };
    match client.checkout().pay(&"ID".parse()?, params).await? {
        PayResult::Redirect(to) => println!("redirect to the gateway: {}", to.redirect_url),
        PayResult::Simulated(ended) => println!("a test session, {}", ended.status),
        _ => {}
    }
    Ok(())
}

pub async fn retrieve_description(client: &Client) -> Done {
    use payments_client::Method;

    let document = client.request(Method::GET, "/api/v1/openapi.json").await?;
    std::fs::write("openapi.json", &document.body)?;
    Ok(())
}
