//! Parts of the list of payments, from a payment or a time on.

use payments_core::{PaymentId, RANDOM_BYTES, Slot, Timestamp};
use tokio_postgres::Row;

use super::{PostgresStore, load::payment_body, names, payment_list::json_of, read::field};
use crate::{
    domain::Scope,
    store::{PaymentJson, PaymentSource, PaymentsFrom, Result},
};

/// The payments with ids in ranges, from the lower end of each on, below the upper one. What they are chosen by is an index with
/// the ids at its end.
macro_rules! part {
    ($id:literal, $table:literal, $condition:literal) => {
        concat!(
            "SELECT p.id, p.body FROM (SELECT k.id FROM unnest($3::text[], $4::text[]) r (first, up_to) \
             CROSS JOIN LATERAL (SELECT ",
            $id,
            " AS id FROM ",
            $table,
            " WHERE developer = $1 AND environment = $2",
            $condition,
            " AND ",
            $id,
            " >= r.first AND ",
            $id,
            " < r.up_to ORDER BY ",
            $id,
            " DESC LIMIT $5) k ORDER BY k.id DESC LIMIT $5) l JOIN payment p USING (id) ORDER BY p.id DESC"
        )
    };
}
const ALL: &str = part!("id", "payment", "");
const BY_STATUS: &str = part!("id", "payment", " AND status = $6");
const FOUND: &str = part!("payment", "payment_lookup", " AND kind = $6 AND value = $7");

/// Every id of payments has one of these before its time.
const PREFIXES: [&str; 2] = ["", "test_"];
/// More than every id.
const END: &str = "~";

/// The ranges of ids that a part has: the first id of each, and what comes after its last one.
fn ranges(from: &PaymentsFrom) -> (Vec<String>, Vec<String>) {
    let up_to = from.after.as_ref().map_or(END, |after| after.as_str());
    if from.created_after.is_none() && from.created_before.is_none() {
        return (vec![String::new()], vec![up_to.to_owned()]);
    }
    let first_of =
        |prefix: &str, time: Timestamp| format!("{prefix}{}", PaymentId::new(Slot::FIRST, time, [0; RANDOM_BYTES]));
    let ranges = PREFIXES.map(|prefix| {
        let all = format!("{prefix}{}", PaymentId::PREFIX);
        let first = from.created_after.map_or_else(|| all.clone(), |time| first_of(prefix, time));
        let end = from.created_before.map_or_else(|| all + END, |time| first_of(prefix, time));
        (first, end.min(up_to.to_owned()))
    });
    ranges.into_iter().unzip()
}

fn entry(row: &Row) -> Result<(PaymentId, PaymentJson)> {
    let (id, body): (&str, &str) = (field(row, 0)?, field(row, 1)?);
    let payment = payment_body(id, body)?.0.payment;
    let json = json_of(&payment)?;
    Ok((payment.id, json))
}

impl PostgresStore {
    pub(super) async fn part_of_payments(
        &self,
        scope: &Scope,
        source: &PaymentSource,
        from: &PaymentsFrom,
        at_most: usize,
    ) -> Result<Vec<(PaymentId, PaymentJson)>> {
        let (developer, environment) = names::scope(scope);
        let (first, up_to) = ranges(from);
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let rows = match source {
            PaymentSource::All => self.readers.query(ALL, &[&developer, &environment, &first, &up_to, &limit]).await?,
            PaymentSource::Status(status) => {
                let status = status.as_str();
                self.readers.query(BY_STATUS, &[&developer, &environment, &first, &up_to, &limit, &status]).await?
            }
            PaymentSource::Lookup(lookup) => {
                let (kind, value) = (lookup.kind.as_str(), &lookup.value);
                self.readers.query(FOUND, &[&developer, &environment, &first, &up_to, &limit, &kind, value]).await?
            }
        };
        rows.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_ranges_of_ids_of_both_prefixes_before_the_cursor() {
        let at = |millis| Timestamp::from_millis(millis).unwrap();
        let id = |millis| PaymentId::new(Slot::FIRST, at(millis), [7; RANDOM_BYTES]);
        let demo = |millis| format!("test_{}", id(millis)).parse::<PaymentId>().unwrap();
        let within = |from: &PaymentsFrom, id: &PaymentId| {
            let (first, up_to) = ranges(from);
            first.iter().zip(&up_to).any(|(first, up_to)| (first.as_str()..up_to).contains(&id.as_str()))
        };
        let times = PaymentsFrom { created_after: Some(at(1_000)), created_before: Some(at(2_000)), after: None };
        for (millis, is_within) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
            assert_eq!([within(&times, &id(millis)), within(&times, &demo(millis))], [is_within; 2], "{millis}");
        }
        let after = PaymentsFrom { after: Some(id(1_500)), ..times };
        assert!(within(&after, &id(1_499)) && !within(&after, &id(1_500)) && !within(&after, &demo(1_100)));
        let after = PaymentsFrom { after: Some(demo(1_500)), ..after };
        assert!(within(&after, &id(1_999)) && within(&after, &demo(1_100)) && !within(&after, &demo(1_501)));
        assert!(within(&PaymentsFrom::default(), &demo(1)) && within(&PaymentsFrom::default(), &id(1)));
    }
}
