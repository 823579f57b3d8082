//! `/api/v1/payouts/{id}/statement`: what a payout pays, as a page to print, in English or Bangla.

use askama::Template;
use payments_core::{
    Balance, DestinationKind, Environment, Payout, PayoutStatus, Transaction, TransactionKind, TransactionQuery,
};
use warp::http::StatusCode;

use super::{
    assets,
    home::POLICY,
    language::{Language, Text},
    page::{digits, minute, moment, signed, zone},
    reply::{self, ApiError, Outcome},
    request::Request,
    transactions::ALSO_NEEDED,
};
use crate::service::Caller;

/// How many transactions the page lists. All of them count in its sums.
const MAX_LISTED: usize = 10_000;

#[derive(Template)]
#[template(path = "statement.html")]
struct Page<'p> {
    payout: &'p Payout,
    workspace: &'p str,
    base_url: &'p str,
    sums: Sums,
    language: Language,
}

impl Page<'_> {
    fn money(&self, balance: &Balance) -> String {
        signed(*balance, self.payout.currency, self.language)
    }

    /// The bank, or the wallet's provider by its name.
    fn institution(&self) -> &str {
        let institution = &self.payout.destination.institution;
        payments_core::provider_title(institution).map_or(institution, |title| self.language.say(title))
    }
}

pub(super) async fn show(caller: Caller, request: Request) -> Outcome {
    ApiError::unless_permitted(&caller, ALSO_NEEDED)?;
    let language = Language::of(request.query("language").as_deref(), request.headers());
    let service = request.service();
    let payout = service.payout(&caller, request.id()).await?;
    let mut sums = Sums::down_from(payout.statement.closing_balance);
    let mut query = TransactionQuery::of_table(|_| None)?;
    loop {
        let page = service.payout_transactions(&caller, request.id(), query.clone()).await?;
        page.items.into_iter().try_for_each(|it| sums.add(it)).map_err(ApiError::internal)?;
        if !page.has_more {
            break;
        }
        query.after = page.next;
    }
    sums.close(&payout).map_err(ApiError::internal)?;
    let workspace = service.account(&caller).await?.workspace.name;
    let base_url = &service.settings.base_url;
    let page = Page { payout: &payout, workspace: &workspace, base_url, sums, language };
    let html = page.render().map_err(ApiError::internal)?;
    Ok(reply::page(StatusCode::OK, language, "no-store", POLICY, html))
}

/// Sums of a statement's transactions, which are added from the newest, the payout's own, to the oldest.
struct Sums {
    /// The balance after the next transaction. At the end it is the opening balance.
    balance: Balance,
    /// By kind, without the payout's own: how many transactions, and their sum.
    kinds: Vec<(TransactionKind, usize, Balance)>,
    own: Option<Transaction>,
    /// The newest of the others, newest first.
    listed: Vec<Transaction>,
    count: usize,
}

impl Sums {
    fn down_from(balance: Balance) -> Self {
        Self { balance, kinds: Vec::new(), own: None, listed: Vec::new(), count: 0 }
    }

    /// Adds the next older transaction.
    fn add(&mut self, it: Transaction) -> Result<(), String> {
        if it.balance != self.balance {
            return Err(format!("{} leaves {}, and the statement has {} there", it.id, it.balance, self.balance));
        }
        self.balance = Balance::from_minor(self.balance.as_minor() - it.amount.as_minor());
        if self.own.is_none() {
            self.own = Some(it);
            return Ok(());
        }
        let nth = self.kinds.iter().position(|(kind, ..)| *kind == it.kind).unwrap_or(self.kinds.len());
        if nth == self.kinds.len() {
            self.kinds.push((it.kind.clone(), 0, Balance::default()));
        }
        if let Some((_, count, sum)) = self.kinds.get_mut(nth) {
            *count += 1;
            *sum = Balance::from_minor(sum.as_minor() + it.amount.as_minor());
        }
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(it);
        }
        Ok(())
    }

    /// Checks that the transactions lead from the opening to the closing balance, and that the last one is the payout's.
    fn close(&mut self, payout: &Payout) -> Result<(), String> {
        let taken = Balance::from_minor(-i128::from(payout.amount.as_minor()));
        let is_own = |it: &Transaction| {
            it.kind == TransactionKind::Payout && it.payout_id.as_ref() == Some(&payout.id) && it.amount == taken
        };
        if !self.own.as_ref().is_some_and(is_own) {
            return Err(format!("the statement of {} does not end with it", payout.id));
        }
        if self.balance != payout.statement.opening_balance {
            let (found, opening) = (self.balance, payout.statement.opening_balance);
            return Err(format!("the statement of {} opens with {opening}, its transactions with {found}", payout.id));
        }
        self.kinds.sort_by_key(|(kind, ..)| TransactionKind::KNOWN.iter().position(|known| known == kind));
        Ok(())
    }
}

fn kind(kind: &TransactionKind) -> Text {
    match kind {
        TransactionKind::Payment => ["Payment", "পেমেন্ট"],
        TransactionKind::Fee => ["Fee", "ফি"],
        TransactionKind::Refund => ["Refund", "ফেরত"],
        TransactionKind::FeeReturned => ["Fee returned", "ফি ফেরত"],
        TransactionKind::RefundFailed => ["Refund failed", "ফেরত ব্যর্থ"],
        TransactionKind::GatewayCost => ["Gateway cost", "গেটওয়ের খরচ"],
        TransactionKind::Dispute => ["Dispute", "বিরোধ"],
        TransactionKind::DisputeReversed => ["Dispute reversed", "বিরোধের টাকা ফেরত"],
        TransactionKind::Payout => ["Payout", "উত্তোলন"],
        TransactionKind::PayoutReversed => ["Payout reversed", "উত্তোলনের টাকা ফেরত"],
        _ => OTHER,
    }
}

fn status(status: &PayoutStatus) -> Text {
    match status {
        PayoutStatus::Requested => ["Requested", "অনুরোধ করা হয়েছে"],
        PayoutStatus::Approved => ["Approved", "অনুমোদিত"],
        PayoutStatus::Sending => ["Being sent", "পাঠানো হচ্ছে"],
        PayoutStatus::Unknown => ["Outcome unknown", "ফলাফল অজানা"],
        PayoutStatus::Paid => ["Paid", "পরিশোধিত"],
        PayoutStatus::Failed => ["Failed", "ব্যর্থ"],
        PayoutStatus::Cancelled => ["Cancelled", "বাতিল"],
        PayoutStatus::Returned => ["Returned by the bank", "ব্যাংক ফেরত দিয়েছে"],
        _ => OTHER,
    }
}

const OTHER: Text = ["Other", "অন্যান্য"];

#[cfg(test)]
mod tests {
    use payments_core::{Amount, Currency, NewPayout, PayoutDestination, PayoutId, RANDOM_BYTES, Slot, UnknownFields};

    use super::*;

    const NOW: &str = "2026-03-01T10:00:00Z";

    /// A payout of 900.00 out of 950.00, 20.00 of which were there before.
    fn payout() -> Payout {
        let now = NOW.parse().unwrap();
        let new = NewPayout {
            id: PayoutId::new(Slot::FIRST, now, [1; RANDOM_BYTES]),
            environment: Environment::Live,
            currency: Currency::Bdt,
            destination: PayoutDestination {
                kind: DestinationKind::BankAccount,
                holder: "<b>Karim & Sons".to_owned(),
                institution: "010271234".to_owned(),
                last4: "6789".to_owned(),
                created_at: now,
                unknown: UnknownFields::new(),
            },
            opening_balance: Balance::from_minor(2_000),
            balance: Balance::from_minor(95_000),
            now,
        };
        payments_core::request_payout(None, Amount::from_minor(90_000), new).unwrap().payout
    }

    /// Its transactions, newest first.
    fn rows() -> Vec<Transaction> {
        let row = |kind: TransactionKind, amount, balance| Transaction {
            id: format!("txn_{kind}").parse().unwrap(),
            created_at: NOW.parse().unwrap(),
            payment_id: (kind != TransactionKind::Payout).then(|| "pay_1".parse().unwrap()),
            payout_id: (kind == TransactionKind::Payout).then(|| payout().id),
            kind,
            amount: Balance::from_minor(amount),
            currency: Currency::Bdt,
            balance: Balance::from_minor(balance),
            unknown: UnknownFields::new(),
        };
        vec![
            row(TransactionKind::Payout, -90_000, 5_000),
            row(TransactionKind::Fee, -7_000, 95_000),
            row(TransactionKind::Payment, 70_000, 102_000),
            row(TransactionKind::Payment, 30_000, 32_000),
        ]
    }

    fn sums(rows: Vec<Transaction>, payout: &Payout) -> Result<Sums, String> {
        let mut sums = Sums::down_from(payout.statement.closing_balance);
        rows.into_iter().try_for_each(|it| sums.add(it))?;
        sums.close(payout).map(|()| sums)
    }

    #[test]
    fn the_transactions_lead_from_the_opening_to_the_closing_balance() {
        let Sums { kinds, count, listed, .. } = sums(rows(), &payout()).unwrap();
        let minor: Vec<_> = kinds.iter().map(|(kind, count, sum)| (kind.as_str(), *count, sum.as_minor())).collect();
        assert_eq!(minor, [("payment", 2, 100_000), ("fee", 1, -7_000)]);
        assert_eq!((count, listed.len()), (3, 3));
    }

    #[test]
    fn a_statement_that_does_not_add_up_is_refused() {
        for spoil in [
            |rows: &mut Vec<Transaction>| rows[1].amount = Balance::from_minor(-7_001),
            |rows: &mut Vec<Transaction>| rows[3].amount = Balance::from_minor(30_001),
            |rows: &mut Vec<Transaction>| rows[0].balance = Balance::from_minor(5_001),
            |rows: &mut Vec<Transaction>| drop(rows.remove(0)),
            |rows: &mut Vec<Transaction>| drop(rows.pop()),
            |rows: &mut Vec<Transaction>| rows[0].payout_id = None,
            Vec::clear,
        ] {
            let mut rows = rows();
            spoil(&mut rows);
            assert!(sums(rows.clone(), &payout()).is_err(), "{rows:?}");
        }
    }

    #[test]
    fn the_page_escapes_text_from_outside_and_has_every_word_in_both_languages() {
        let payout = payout();
        for (language, amount) in [(Language::English, "−৳900.00"), (Language::Bangla, "−৳৯০০.০০")] {
            let sums = sums(rows(), &payout).unwrap();
            let page =
                Page { payout: &payout, workspace: "\"><script>", base_url: "https://pay.example", sums, language };
            let html = page.render().unwrap();
            assert!(html.contains(amount), "{html}");
            assert!(!html.contains("<b>") && !html.contains("<script"), "{html}");
            // The heads, two kinds, the payout's sum and four transactions.
            assert_eq!(html.matches("<tr>").count(), 2 + 2 + 1 + 4, "{html}");
        }
        assert!(TransactionKind::KNOWN.iter().all(|it| kind(it) != OTHER));
        assert!(PayoutStatus::KNOWN.iter().all(|it| status(it) != OTHER));
    }

    #[test]
    fn a_long_statement_lists_its_newest_transactions_and_sums_all() {
        let mut sums = Sums::down_from(Balance::from_minor(0));
        for nth in 0..=MAX_LISTED + 1 {
            let balance = Balance::from_minor(-i128::try_from(nth).unwrap());
            sums.add(Transaction { amount: Balance::from_minor(1), balance, ..rows()[2].clone() }).unwrap();
        }
        let payout = payout();
        assert_eq!((sums.count, sums.listed.len(), sums.kinds[0].1), (MAX_LISTED + 1, MAX_LISTED, MAX_LISTED + 1));
        let page = Page { payout: &payout, workspace: "", base_url: "", sums, language: Language::English };
        let html = page.render().unwrap();
        assert!(html.contains("the newest 10000 of 10001") && html.contains(".csv"), "{}", &html[..3_000]);
    }
}
