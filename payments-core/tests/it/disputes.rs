//! Disputes of a payment mixed with refunds, against a model of the gateway.

use payments_core::{
    Amount, Booking, Cause, CreateRefund, DisputeReport, DisputeStatus, Environment, LedgerAccount, Money, NewRefund,
    Payment, RANDOM_BYTES, RefundId, Slot, decide, decide_dispute,
};
use proptest::prelude::*;

use crate::{now, payment};

const AMOUNT: u64 = 1_000;

/// The gateway: what it says of each dispute now, and what it said before.
#[derive(Default)]
struct Gateway {
    disputes: Vec<(DisputeReport, Vec<DisputeReport>)>,
    refunded: u64,
}

impl Gateway {
    fn taken(report: &DisputeReport) -> u64 {
        report.withdrawn.as_minor() - report.reinstated.as_minor()
    }

    /// What is not refunded and not withdrawn.
    fn has(&self) -> u64 {
        AMOUNT - self.refunded - self.disputes.iter().map(|(it, _)| Self::taken(it)).sum::<u64>()
    }

    /// What it refunds at most: a gateway refunds no disputed money.
    fn refundable(&self) -> u64 {
        let may_take = self.disputes.iter().map(|(it, _)| match it.status {
            DisputeStatus::NeedsResponse | DisputeStatus::UnderReview => it.amount.as_minor() - Self::taken(it),
            _ => 0,
        });
        self.has().saturating_sub(may_take.sum::<u64>())
    }

    fn open(&mut self, minor: u64, returns_fee: bool) {
        let amount = minor.min(self.has());
        if amount == 0 || self.disputes.len() >= 3 {
            return;
        }
        let report = DisputeReport {
            id: format!("dsp_{}", self.disputes.len()).parse().unwrap(),
            amount: Amount::from_minor(amount),
            reason: None,
            status: if minor.is_multiple_of(2) { DisputeStatus::Warning } else { DisputeStatus::NeedsResponse },
            evidence_due_by: None,
            withdrawn: Amount::ZERO,
            reinstated: Amount::ZERO,
            returns_fee,
        };
        self.disputes.push((report, Vec::new()));
    }

    fn change(&mut self, which: usize, action: u8, minor: u64) {
        let has = self.has();
        let Some((it, past)) = self.disputes.get_mut(which) else { return };
        past.push(it.clone());
        let taken = Self::taken(it);
        match (action, it.status.clone()) {
            (1, DisputeStatus::Warning) => it.status = DisputeStatus::NeedsResponse,
            (1, DisputeStatus::NeedsResponse) => it.status = DisputeStatus::UnderReview,
            (2, status) if status != DisputeStatus::Warning => {
                let more = it.amount.as_minor() - taken;
                if more > 0 && more <= has {
                    it.withdrawn = Amount::from_minor(it.withdrawn.as_minor() + more);
                    it.status = if status.is_closed() { DisputeStatus::Lost } else { status };
                }
            }
            (3, status) => {
                let back = taken.min(minor);
                it.reinstated = Amount::from_minor(it.reinstated.as_minor() + back);
                let is_all = back > 0 && back == taken;
                it.status = if status.is_closed() && is_all { DisputeStatus::Won } else { status };
            }
            (4, status) if !status.is_closed() => it.status = DisputeStatus::Won,
            (5, status) if !status.is_closed() => it.status = DisputeStatus::Lost,
            _ => {}
        }
    }
}

/// The payment as the server has it, and the sums of its accounts.
struct Server {
    payment: Payment,
    accounts: [i64; 8],
}

impl Server {
    fn book(&mut self, booking: Option<Booking>) {
        for (sum, account) in self.accounts.iter_mut().zip(LedgerAccount::ALL) {
            *sum += booking.map_or(0, |booking| booking.change_of(account));
        }
    }

    fn hear(&mut self, report: &DisputeReport) {
        for step in 0.. {
            assert!(step < 5, "a report ends");
            let Some(decision) = decide_dispute(&self.payment, report, now()).unwrap() else { break };
            self.book(decision.booking);
            self.payment = decision.payment;
        }
    }

    fn refund(&mut self, minor: u64, gateway: &mut Gateway) {
        let left = self.payment.amount_left();
        let nth = u8::try_from(self.payment.refunds.len()).unwrap();
        let new = NewRefund::made(RefundId::new(Slot::FIRST, now(), [nth; RANDOM_BYTES]));
        let Ok(cause) = CreateRefund::part(Amount::from_minor(minor)).cause(&self.payment, new) else { return };
        if minor > gateway.refundable() {
            return;
        }
        assert!(Amount::from_minor(minor) <= left);
        let decision = decide(&self.payment, cause, now()).unwrap();
        self.book(decision.booking);
        self.payment = decision.payment;
        gateway.refunded += minor;
    }

    /// The accounts are what the payment, its refunds and its disputes say.
    fn closes(&self) -> Result<(), TestCaseError> {
        let minor = |amount: Amount| i64::try_from(amount.as_minor()).unwrap();
        let Payment { platform_fee_amount, refunds, disputes, .. } = &self.payment;
        let back: i64 = refunds.iter().map(|it| minor(it.amount)).sum();
        let taken: i64 = disputes.iter().map(|it| minor(it.withdrawn) - minor(it.reinstated)).sum();
        let fees = refunds.iter().map(|it| it.fee_returned).chain(disputes.iter().map(|it| it.fee_returned));
        let fee = minor(*platform_fee_amount) - fees.map(|it| minor(it.unwrap_or_default())).sum::<i64>();
        let clearing = back + taken - minor(self.payment.amount);
        for (account, sum) in LedgerAccount::ALL.into_iter().zip(self.accounts) {
            let expected = match account {
                LedgerAccount::GatewayClearing => clearing,
                LedgerAccount::PlatformFee => fee,
                LedgerAccount::Merchant => -clearing - fee,
                _ => 0,
            };
            prop_assert_eq!(sum, expected, "{}", account.as_str());
        }
        prop_assert!(fee >= 0 && fee <= minor(*platform_fee_amount), "a fee of {fee}");
        for dispute in disputes.iter().filter(|it| it.amount_taken() == Amount::ZERO) {
            prop_assert_eq!(dispute.fee_returned.unwrap_or_default(), Amount::ZERO);
        }
        Ok(())
    }
}

proptest! {
    /// Some changes of a dispute are not reported, some reports come late, and the last ones come in the end.
    #[test]
    fn whatever_order_reports_come_in_no_more_than_the_amount_leaves_and_the_books_close(
        steps in prop::collection::vec((0..8_u8, 0..3_usize, 1..800_u64, any::<bool>()), 1..40),
    ) {
        let mut server = Server { payment: payment(Environment::Live, Money::paisa(AMOUNT)), accounts: [0; 8] };
        let paid = decide(&server.payment, Cause::GatewayConfirmed, now()).unwrap();
        server.book(paid.booking);
        server.payment = paid.payment;
        let mut gateway = Gateway::default();
        for (action, which, minor, flag) in steps {
            match action {
                0 => gateway.open(minor, flag),
                6 => server.refund(minor, &mut gateway),
                7 => {
                    let past = gateway.disputes.get(which).map_or(&[][..], |(_, past)| past);
                    let late = past.get(usize::try_from(minor).unwrap() % past.len().max(1));
                    late.into_iter().for_each(|report| server.hear(report));
                }
                _ => {
                    gateway.change(which, action, minor);
                    let present = gateway.disputes.get(which).filter(|_| flag);
                    present.into_iter().for_each(|(report, _)| server.hear(report));
                }
            }
            server.closes()?;
        }
        for (report, past) in &gateway.disputes {
            server.hear(report);
            past.iter().for_each(|late| server.hear(late));
            let known = server.payment.disputes.iter().find(|it| it.id == report.id).unwrap();
            prop_assert_eq!(&DisputeReport::of(known), report);
        }
        server.closes()?;
        let left = server.payment.disputes.iter().fold(server.payment.amount_refunded().as_minor(), |sum, it| {
            sum + it.amount_taken().as_minor()
        });
        prop_assert!(left <= AMOUNT, "{left} left");
    }
}
