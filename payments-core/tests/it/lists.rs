//! The parameters of lists.

use payments_core::{EventQuery, LoggedRequest, PageRequest, RequestQuery};

#[test]
fn a_page_is_the_first_of_20_items_unless_asked_otherwise() {
    let first = PageRequest::from_query(None, None).unwrap();
    assert_eq!((first.page(), first.limit(), first.skipped()), (1, 20, 0));
    assert_eq!(PageRequest::default(), first);
    let third = PageRequest::from_query(Some("3"), Some("50")).unwrap();
    assert_eq!((third.page(), third.limit(), third.skipped()), (3, 50, 100));
}

#[test]
fn a_page_counts_from_1_and_has_at_most_100_items() {
    let last = PageRequest::from_query(Some("4294967295"), Some("100")).unwrap();
    assert_eq!(last.skipped(), 429_496_729_400);
    for (page, limit, expected) in [
        ("0", "1", vec!["page must be a whole number from 1"]),
        ("4294967296", "1", vec!["page must be a whole number from 1"]),
        ("1", "0", vec!["limit must be a whole number from 1 to 100"]),
        ("1", "101", vec!["limit must be a whole number from 1 to 100"]),
        ("+1", "1", vec!["page must be a whole number from 1"]),
        ("x", "", vec!["page must be a whole number from 1", "limit must be a whole number from 1 to 100"]),
    ] {
        let sentences = PageRequest::from_query(Some(page), Some(limit)).unwrap_err().into_sentences();
        assert_eq!(sentences, expected, "{page:?} {limit:?}");
    }
}

#[test]
fn a_list_of_events_has_a_filter_if_it_leaves_out_kinds_payments_or_times() {
    let has_filter = |name: &str, value: &str| {
        EventQuery::from_query(|asked| (asked == name).then(|| value.to_owned())).unwrap().has_filter()
    };
    assert!(!EventQuery::default().has_filter());
    for (name, value) in [("after", "evt_1"), ("limit", "5")] {
        assert!(!has_filter(name, value), "{name}");
    }
    for (name, value) in [
        ("events", "payment.created"),
        ("paymentId", "pay_1"),
        ("createdAfter", "2026-03-01T00:00:00Z"),
        ("createdBefore", "2026-03-01T00:00:00Z"),
    ] {
        assert!(has_filter(name, value), "{name}");
    }
}

#[test]
fn a_log_of_failed_requests_has_those_with_a_status_from_400() {
    let failed = RequestQuery::from_query(|name| (name == "failed").then(|| "true".to_owned())).unwrap();
    for (status, is_failed) in [(200, false), (302, false), (399, false), (400, true), (404, true), (503, true)] {
        let request: LoggedRequest = serde_json::from_str(&format!(
            r#"{{"id":"req_1","method":"GET","path":"/","status":{status},"keyLast4":"demo","durationMs":1,
                "createdAt":"2026-03-01T00:00:00Z"}}"#
        ))
        .unwrap();
        assert_eq!(failed.includes(&request), is_failed, "{status}");
        assert!(RequestQuery::default().includes(&request), "{status}");
    }
}
