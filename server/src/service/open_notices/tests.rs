use serde_json::{Value, json};

use super::*;
use crate::domain::new_session;

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((1_700_000_000 + seconds) * 1000).unwrap()
}

fn endpoint(id: &str, failing_since: Option<i64>, disabled: Option<i64>) -> Endpoint {
    serde_json::from_value(json!({"environment": "test", "failing_since": failing_since.map(at), "endpoint": {
        "id": id, "developerId": "dev_1", "url": "https://a.example/", "secret": "whsec_1", "events": ["*"],
        "isActive": disabled.is_none(), "disabledReason": disabled.map(|_| "gone"), "retries": "standard",
        "createdAt": at(0), "updatedAt": at(disabled.unwrap_or(0))}}))
    .unwrap()
}

fn session(fields: Value) -> Session {
    let mut session = new_session();
    let mut payment = serde_json::to_value(&session.payment).unwrap();
    fields.as_object().unwrap().iter().for_each(|(name, value)| payment[name] = value.clone());
    session.payment = serde_json::from_value(payment).unwrap();
    session
}

fn refund(created: i64) -> Session {
    session(json!({"refunds": [{"id": "ref_1", "amount": 5, "currency": "BDT", "reason": null, "status":
        "pending_settlement", "requiresManualSettlement": true, "createdAt": at(created), "settledAt": null}]}))
}

fn dispute(status: &str, due: Option<i64>) -> Session {
    session(json!({"disputes": [{"id": "dsp_1", "amount": 5, "currency": "BDT", "status": status, "reason": null,
        "evidenceDueBy": due.map(at), "openedAt": at(0), "amountWithdrawn": 0, "amountReinstated": 0}]}))
}

fn payout(environment: &str, status: &str, created: i64) -> PayoutRecord {
    serde_json::from_value(json!({"scope": {"developer_id": "dev_1", "environment": environment}, "sealed_number": "",
        "requested_by": "platform", "destination_by": "platform", "from": 0, "payout": {"id": "po_1", "environment":
        environment, "amount": 5, "currency": "BDT", "status": status, "destination": {"kind": "wallet", "holder": "A",
        "institution": "bkash", "last4": "5678", "createdAt": at(0)}, "statement": {"openingBalance": 0,
        "closingBalance": 0}, "reference": null, "reason": null, "createdAt": at(created), "approvedAt": null,
        "sentAt": null, "paidAt": null, "endedAt": null, "updatedAt": at(created)}}))
    .unwrap()
}

fn cover(bank: i64) -> BTreeMap<Currency, Cover> {
    BTreeMap::from([(Currency::Bdt, Cover { owed_to_merchants: 100, bank, ..Cover::default() })])
}

#[test]
fn each_state_has_a_notice_from_its_moment_on() {
    use NoticeKind::{
        BackupOld, DisputeDue, EndpointDisabled, EndpointFailing, GatewayDown, NotCovered, PayoutWaiting, RefundDue,
    };
    let hourly = Duration::from_secs(3600);
    let of = |change: &dyn Fn(&mut Facts)| {
        let mut facts = Facts { refund_days: 3, ..Facts::default() };
        change(&mut facts);
        facts
    };
    type Open = Option<(NoticeKind, &'static str)>;
    let cases: Vec<(Facts, i64, Open)> = vec![
        (of(&|it| it.endpoints = vec![endpoint("wh_1", Some(0), None)]), HOUR - 1, None),
        (of(&|it| it.endpoints = vec![endpoint("wh_1", Some(0), None)]), HOUR, Some((EndpointFailing, "wh_1"))),
        (of(&|it| it.endpoints = vec![endpoint("wh_1", None, Some(5))]), 5, Some((EndpointDisabled, "wh_1"))),
        (of(&|it| it.gateways_down = vec![GatewayName::of("wallet")]), 0, Some((GatewayDown, "wallet"))),
        (of(&|it| it.refunds = vec![refund(0)]), 2 * DAY - 1, None),
        (of(&|it| it.refunds = vec![refund(0)]), 2 * DAY, Some((RefundDue, "ref_1"))),
        (of(&|it| it.disputes = vec![dispute("needs_response", Some(9 * DAY))]), 6 * DAY - 1, None),
        (of(&|it| it.disputes = vec![dispute("needs_response", Some(9 * DAY))]), 6 * DAY, Some((DisputeDue, "dsp_1"))),
        (of(&|it| it.disputes = vec![dispute("needs_response", None)]), 99 * DAY, None),
        (of(&|it| it.disputes = vec![dispute("won", Some(9 * DAY))]), 9 * DAY, None),
        (of(&|it| it.payouts = vec![payout("live", "requested", 0)]), DAY - 1, None),
        (of(&|it| it.payouts = vec![payout("live", "requested", 0)]), DAY, Some((PayoutWaiting, "po_1"))),
        (of(&|it| it.payouts = vec![payout("live", "approved", 0)]), 9 * DAY, None),
        (of(&|it| it.payouts = vec![payout("test", "requested", 0)]), 9 * DAY, None),
        (of(&|it| it.covers = cover(100)), 0, None),
        (of(&|it| it.covers = cover(99)), 0, Some((NotCovered, "BDT"))),
        (of(&|it| it.backup = Some((at(0), hourly))), 2 * HOUR - 1, None),
        (of(&|it| it.backup = Some((at(0), hourly))), 2 * HOUR, Some((BackupOld, "backup"))),
    ];
    for (facts, seconds, expected) in cases {
        let found = facts.notices(at(seconds));
        let shown: Vec<_> = found.iter().map(|it| (it.notice.kind.clone(), it.notice.subject.as_str())).collect();
        assert_eq!(shown, Vec::from_iter(expected), "{seconds}");
        for KnownNotice { notice, .. } in &found {
            assert!(sentence(notice).contains(&notice.subject), "{}", sentence(notice));
        }
    }
}

#[test]
fn a_storm_of_one_kind_is_a_bounded_number_of_notices_and_one_that_counts_the_rest() {
    let storm = (0..500).map(|nth| endpoint(&format!("wh_{nth}"), None, Some(nth))).collect();
    let facts = Facts { endpoints: storm, payouts: vec![payout("live", "requested", 0)], ..Facts::default() };
    let found = facts.notices(at(9 * DAY));
    assert_eq!(found.len(), MAX_OF_KIND + 2);
    let more: Vec<_> = found.iter().filter_map(|it| it.notice.more).collect();
    assert_eq!((more, found[0].notice.subject.as_str()), (vec![480], "wh_0"), "the oldest are shown");
    let again = Notices::default().after(&found, at(9 * DAY), || None);
    assert_eq!(again.after(&facts.notices(at(10 * DAY)), at(10 * DAY), || None), again);
}

#[test]
fn a_server_that_never_made_a_backup_has_one_interval_for_the_first() {
    let every = Duration::from_secs(3600);
    let last = LastBackup::due_now(every, at(0));
    let notices = |seconds| Facts { backup: Some((last.at(), every)), ..Facts::default() }.notices(at(seconds)).len();
    assert_eq!((notices(HOUR - 1), notices(HOUR)), (0, 1));
    last.made_before(Duration::ZERO, at(HOUR));
    assert_eq!((notices(3 * HOUR - 1), notices(3 * HOUR)), (0, 1));
}
