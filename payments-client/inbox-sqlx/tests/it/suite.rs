//! What holds for each store.

/// The tests of a store. `pool` opens a new empty database, `again` another pool of the same one.
macro_rules! suite {
    ($store:ident, $tx:ident, $shop:ty) => {
        use std::time::Duration;

        use payments_client::{
            Event, Timestamp,
            inbox::{BoxError, Inbox, InboxError, Start},
        };
        use payments_inbox_sqlx::{$store, $tx};
        use sqlx::{query, query_as, query_scalar};

        use crate::{create, server};

        async fn note(tx: &mut $tx, event: &Event) -> Result<(), sqlx::Error> {
            let insert = query("INSERT INTO effects (event, payment) VALUES ($1, $2)").bind(event.id().as_str());
            insert.bind(event.payment().unwrap().id.as_str()).execute(&mut **tx).await?;
            Ok(())
        }

        /// The payments of the applied events, in their order.
        async fn noted(shop: &$shop) -> Vec<String> {
            query_scalar("SELECT payment FROM effects ORDER BY number").fetch_all(&shop.pool).await.unwrap()
        }

        fn inbox(client: &payments_client::Client, shop: &$shop) -> Inbox<$store> {
            Inbox::new(client.clone(), $store::new(shop.pool.clone())).name("orders").start(Start::Beginning)
        }

        fn text(ids: &[payments_client::PaymentId]) -> Vec<String> {
            ids.iter().map(ToString::to_string).collect()
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn each_event_is_applied_once_in_its_order() {
            let (server, shop) = (server().await, <$shop>::new().await);
            let created = create(server.client(), 105).await;
            for batch in [1, 40] {
                let inbox = inbox(server.client(), &shop).name(format!("by {batch}")).batch(batch);
                assert_eq!(inbox.run_once(note).await.unwrap(), 105);
                assert_eq!(inbox.run_once(note).await.unwrap(), 0);
                assert_eq!(noted(&shop).await, text(&created), "batches of {batch}");
                query("DELETE FROM effects").execute(&shop.pool).await.unwrap();
            }
            let later = create(server.client(), 1).await;
            // Another process goes on.
            let again = shop.again().await;
            let inbox = inbox(server.client(), &again).name("by 1");
            assert_eq!(inbox.run_once(async |tx, event| note(tx, event).await).await.unwrap(), 1);
            assert_eq!(noted(&shop).await, text(&later));
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn an_inbox_starts_now_at_a_time_or_at_the_beginning() {
            let (server, shop) = (server().await, <$shop>::new().await);
            let client = server.client();
            let start = |name: &str, at| inbox(client, &shop).name(name).start(at);
            let now = start("now", Start::Now);
            assert_eq!(now.run_once(note).await.unwrap(), 0, "the list is empty");
            let first = create(client, 1).await;
            assert_eq!(now.run_once(note).await.unwrap(), 1);
            let time: Timestamp = client.events().list().await.unwrap().items[0].created_at();
            let later = start("later", Start::Now);
            assert_eq!(later.run_once(note).await.unwrap(), 0);
            let second = create(client, 1).await;
            assert_eq!(later.run_once(note).await.unwrap(), 1);
            assert_eq!(start("time", Start::Since(time)).run_once(note).await.unwrap(), 2);
            assert_eq!(start("late", Start::Since(time.plus_seconds(3600))).run_once(note).await.unwrap(), 0);
            later.restart(Start::Beginning).await.unwrap();
            assert_eq!(later.run_once(note).await.unwrap(), 2);
            let both = text(&[first, second].concat());
            assert_eq!(noted(&shop).await, [both.clone(), both.clone(), both].concat());
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn an_inbox_that_is_dropped_at_any_await_goes_on() {
            let (server, shop) = (server().await, <$shop>::new().await);
            let inbox = inbox(server.client(), &shop);
            let mut created = create(server.client(), 1).await;
            for polls in 1..40 {
                created.extend(create(server.client(), 1).await);
                let mut left = polls;
                let mut run = std::pin::pin!(inbox.run_once(note));
                std::future::poll_fn(|context| {
                    left -= 1;
                    let is_over = run.as_mut().poll(context).is_ready() || left == 0;
                    if is_over { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
                })
                .await;
            }
            inbox.run_once(note).await.unwrap();
            assert_eq!(noted(&shop).await, text(&created));
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn an_error_stops_at_its_event_is_visible_and_can_be_skipped() {
            let (server, shop) = (server().await, <$shop>::new().await);
            let created = create(server.client(), 5).await;
            let fails = async |tx: &mut $tx, event: &Event| -> Result<(), BoxError> {
                note(tx, event).await?;
                if event.payment()?.id == created[2] { Err("no more cups".into()) } else { Ok(()) }
            };
            let inbox = inbox(server.client(), &shop).batch(4);
            for failures in 1..=2 {
                let error = inbox.run_once(fails).await.unwrap_err();
                let InboxError::Event { event, .. } = &error else { panic!("{error:?}") };
                assert!(error.is_retryable() && error.to_string().ends_with("no more cups"), "{error}");
                assert_eq!(noted(&shop).await, text(&created[..2]));
                let lag = inbox.lag().await.unwrap();
                assert_eq!((lag.events, lag.is_more, lag.failures), (3, false, failures));
                assert_eq!((lag.next.unwrap().0, lag.error.unwrap()), (event.clone(), "no more cups".into()));
            }
            let events = server.client().events().list().await.unwrap().items;
            assert!(!inbox.skip(events[3].id()).await.unwrap(), "it is not the next one");
            assert!(inbox.skip(events[2].id()).await.unwrap());
            assert_eq!(inbox.lag().await.unwrap().error, None);
            assert_eq!(inbox.run_once(fails).await.unwrap(), 2);
            assert_eq!(noted(&shop).await, text(&[&created[..2], &created[3..]].concat()));
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn of_several_processes_one_applies_each_event() {
            let (server, shop) = (server().await, <$shop>::new().await);
            let created = create(server.client(), 40).await;
            let mut processes = Vec::new();
            for batch in [1, 1, 3] {
                let inbox =
                    inbox(server.client(), &shop.again().await).batch(batch).poll_every(Duration::from_millis(20));
                processes.push(tokio::spawn(async move { inbox.run(async |tx, event| note(tx, event).await).await }));
            }
            while noted(&shop).await.len() < created.len() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            for process in processes {
                process.abort();
                assert!(process.await.unwrap_err().is_cancelled());
            }
            assert_eq!(noted(&shop).await, text(&created));
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn a_handler_that_ends_its_transaction_is_noticed() {
            let (server, shop) = (server().await, <$shop>::new().await);
            create(server.client(), 1).await;
            let inbox = inbox(server.client(), &shop);
            // More often than a pool has connections.
            for failures in (1..=24).step_by(2) {
                let ends = async |tx: &mut $tx, event: &Event| -> Result<(), sqlx::Error> {
                    note(tx, event).await?;
                    query("ROLLBACK").execute(&mut **tx).await.map(drop)
                };
                let error = inbox.run_once(ends).await.unwrap_err();
                assert!(error.to_string().contains("the handler ended it"), "{error}");
                assert_eq!((noted(&shop).await.len(), inbox.lag().await.unwrap().failures), (0, failures));
                let fails_too = async |tx: &mut $tx, event: &Event| {
                    ends(tx, event).await?;
                    Err::<(), _>(sqlx::Error::RowNotFound)
                };
                let error = inbox.run_once(fails_too).await.unwrap_err();
                assert!(matches!(error, InboxError::Event { .. }), "{error}");
            }
            assert_eq!(inbox.run_once(note).await.unwrap(), 1);
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn a_webhook_wakes_the_inbox() {
            let (server, shop) = (server().await, <$shop>::new().await);
            let inbox = inbox(server.client(), &shop).poll_every(Duration::from_secs(3600));
            let running = inbox.clone();
            let running = tokio::spawn(async move { running.run(note).await });
            let first = create(server.client(), 1).await;
            // The first read of the list may have been before.
            while noted(&shop).await.is_empty() {
                crate::suite::wake(&inbox);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            let later = create(server.client(), 2).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(noted(&shop).await, text(&first), "it waits");
            crate::suite::wake(&inbox);
            while noted(&shop).await.len() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(noted(&shop).await, text(&[first, later].concat()));
            running.abort();
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn the_inbox_of_an_emptied_sandbox_begins_anew() {
            let (server, shop) = (server().await, <$shop>::new().await);
            create(server.client(), 2).await;
            let inbox = inbox(server.client(), &shop);
            assert_eq!(inbox.run_once(note).await.unwrap(), 2);
            server.client().sandbox().reset().await.unwrap();
            create(server.client(), 1).await;
            assert_eq!(inbox.run_once(note).await.unwrap(), 1);
            assert_eq!(noted(&shop).await.len(), 3);
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn tables_of_a_later_version_are_left_alone() {
            let (server, shop) = (server().await, <$shop>::new().await);
            assert_eq!(inbox(server.client(), &shop).run_once(note).await.unwrap(), 0);
            query("UPDATE payments_inbox_version SET version = 2").execute(&shop.pool).await.unwrap();
            let error = inbox(server.client(), &shop).run(note).await.unwrap_err();
            assert!(matches!(error, InboxError::TooNew), "{error}");
            let rows: Vec<(String, String)> =
                query_as("SELECT name, environment FROM payments_inbox").fetch_all(&shop.pool).await.unwrap();
            assert_eq!(rows, [("orders".to_owned(), "test".to_owned())]);
        }
    };
}

/// Wakes an inbox by a verified webhook.
pub(crate) fn wake<S: payments_client::inbox::Store>(inbox: &payments_client::inbox::Inbox<S>) {
    use payments_client::webhook::{Secret, Signer, Verifier};

    let secret = || Secret::new("whsec_8f2d1a").unwrap();
    inbox.wake(&Verifier::new(secret()).verify(Signer::new(secret()).sign_now(b"{}"), b"{}").unwrap());
}
