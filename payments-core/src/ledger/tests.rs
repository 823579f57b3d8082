use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{BookingKind::*, LedgerAccount::*, *};

/// The chart by hand: for each kind of booking what it posts to each account, of an amount of 100 with a fee of 5.
const CHART: [(BookingKind, &[(LedgerAccount, i64)]); 19] = [
    (Paid, &[(GatewayClearing, -100), (Merchant, 95), (PlatformFee, 5)]),
    (Refunded, &[(GatewayClearing, 100), (Merchant, -95), (PlatformFee, -5)]),
    (RefundSent, &[(GatewayClearing, -100), (Bank, 100)]),
    (RefundFailed, &[(GatewayClearing, -100), (Merchant, 95), (PlatformFee, 5)]),
    (DisputeWithdrawn, &[(GatewayClearing, 100), (Merchant, -95), (PlatformFee, -5)]),
    (DisputeReinstated, &[(GatewayClearing, -100), (Merchant, 95), (PlatformFee, 5)]),
    (BookingKind::GatewayCost, &[(LedgerAccount::GatewayCost, -100), (GatewayClearing, 100)]),
    (MerchantCost, &[(Merchant, -100), (GatewayClearing, 100)]),
    (RowSettled, &[(GatewayClearing, 100), (Bank, -100)]),
    (RowUnmatched, &[(Suspense, 100), (Bank, -100)]),
    (RowResolved, &[(Suspense, -100), (GatewayClearing, 100)]),
    (FeesTaken, &[(PlatformFee, -100), (Bank, 100)]),
    (OwnerPaidIn, &[(Bank, -100), (Owner, 100)]),
    (BankCharged, &[(LedgerAccount::GatewayCost, -100), (Bank, 100)]),
    (PayoutRequested, &[(Merchant, -100), (PayoutsInTransit, 100)]),
    (PayoutPaid, &[(PayoutsInTransit, -100), (Bank, 100)]),
    (PayoutFailed, &[(PayoutsInTransit, -100), (Merchant, 100)]),
    (PayoutPaidLate, &[(Merchant, -100), (Bank, 100)]),
    (PayoutReturned, &[(Bank, -100), (Merchant, 100)]),
];

fn postings(booking: Booking) -> Vec<(LedgerAccount, i64)> {
    booking.postings().map(|posting| (posting.account, posting.minor)).collect()
}

#[test]
fn each_kind_of_booking_posts_what_the_chart_says() {
    for (kind, expected) in CHART {
        assert_eq!(postings(Booking { kind, minor: 100, fee_minor: 5 }), expected, "{kind:?}");
    }
}

#[test]
fn a_booking_without_a_fee_has_no_posting_of_zero() {
    let paid = Booking::new(Paid, Amount::from_minor(100), Amount::ZERO);
    assert_eq!(postings(paid), [(GatewayClearing, -100), (Merchant, 100)]);
    assert_eq!(serde_json::to_string(&paid).unwrap(), r#"{"kind":"paid","minor":100}"#);
}

#[test]
fn only_bookings_with_a_posting_to_the_merchant_change_its_balance() {
    for (kind, row) in CHART {
        let is_of_a_merchant = row.iter().any(|(account, _)| *account == Merchant);
        assert_eq!(kind.is_of_a_merchant(), is_of_a_merchant, "{kind:?}");
    }
}

/// A payment of 1000 with a fee of 5 %, refunded by 300. The rest is disputed and lost. The gateway keeps 30 and 15, and
/// settles 970, -300 and -715.
#[test]
fn the_books_of_a_refunded_and_disputed_payment_close() {
    let mut accounts = BTreeMap::new();
    for (kind, minor, fee_minor, expected) in [
        (Paid, 1000, 50, [(GatewayClearing, -1000), (Merchant, 950), (PlatformFee, 50)]),
        (Refunded, 300, 15, [(GatewayClearing, -700), (Merchant, 665), (PlatformFee, 35)]),
        (DisputeWithdrawn, 700, 0, [(GatewayClearing, 0), (Merchant, -35), (PlatformFee, 35)]),
        (BookingKind::GatewayCost, 30, 0, [(GatewayClearing, 30), (LedgerAccount::GatewayCost, -30), (Bank, 0)]),
        (BookingKind::GatewayCost, 15, 0, [(GatewayClearing, 45), (LedgerAccount::GatewayCost, -45), (Bank, 0)]),
        (RowSettled, 970, 0, [(GatewayClearing, 1015), (Bank, -970), (Suspense, 0)]),
        (RowSettled, -300, 0, [(GatewayClearing, 715), (Bank, -670), (Suspense, 0)]),
        (RowSettled, -715, 0, [(GatewayClearing, 0), (Bank, 45), (Suspense, 0)]),
    ] {
        for Posting { account, minor } in (Booking { kind, minor, fee_minor }).postings() {
            *accounts.entry(account).or_default() += minor;
        }
        for (account, sum) in expected {
            assert_eq!(accounts.get(&account).copied().unwrap_or(0), sum, "{} after {kind:?}", account.as_str());
        }
    }
}

proptest! {
    #[test]
    fn any_history_sums_to_zero_and_each_account_follows_from_the_chart(
        history in prop::collection::vec((0..CHART.len(), -1_000_000..1_000_000_i64, 0..=100_i64), 0..40),
    ) {
        let (mut accounts, mut expected) = (BTreeMap::new(), BTreeMap::new());
        for (row, hundreds, percent) in history {
            let (kind, chart) = CHART[row];
            // Only the first rows of the chart have a fee.
            let has_fee = chart.iter().any(|(_, minor)| minor.abs() == 5);
            let fee_minor = if has_fee { hundreds * percent } else { 0 };
            for Posting { account, minor } in (Booking { kind, minor: hundreds * 100, fee_minor }).postings() {
                *accounts.entry(account).or_insert(0) += minor;
            }
            for (account, minor) in chart {
                *expected.entry(*account).or_insert(0) += match minor.abs() {
                    5 => minor.signum() * fee_minor,
                    95 => minor.signum() * (hundreds * 100 - fee_minor),
                    _ => minor.signum() * hundreds * 100,
                };
            }
        }
        prop_assert_eq!(accounts.values().sum::<i64>(), 0);
        for account in LedgerAccount::ALL {
            let of = |sums: &BTreeMap<_, i64>| sums.get(&account).copied().unwrap_or_default();
            prop_assert_eq!(of(&accounts), of(&expected), "{}", account.as_str());
        }
    }
}
