//! `/api/v1/account/transactions`: the changes of the balance, as JSON or as a CSV table.

use payments_core::{ErrorCode, Invalid, PaymentId, PayoutId, Transaction, TransactionPage, TransactionQuery};
use warp::http::{HeaderName, HeaderValue, StatusCode, header};

use super::{
    reply::{self, ApiError, Outcome},
    request::Request,
};
use crate::{domain::Permission, service::Caller};

/// The bytes by which spreadsheets recognise UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const COLUMNS: [&str; 8] = ["id", "createdAt", "paymentId", "kind", "amount", "currency", "balance", "payoutId"];
/// The cursor of the next table, if there is one.
const NEXT: HeaderName = HeaderName::from_static("x-next-after");

pub(super) async fn list(caller: Caller, request: Request) -> Outcome {
    ApiError::unless_permitted(&caller, ALSO_NEEDED)?;
    let query = TransactionQuery::from_query(|name| request.query(name))?;
    reply::ok(&request.service().transactions(&caller, &query).await?)
}

pub(super) async fn table(caller: Caller, request: Request) -> Outcome {
    ApiError::unless_permitted(&caller, ALSO_NEEDED)?;
    let (query, mark) = table_query(|name| request.query(name))?;
    table_of(&request.service().transactions(&caller, &query).await?, mark)
}

/// What a table is asked to have, and the bytes before it.
pub(super) fn table_query(
    parameter: impl Fn(&str) -> Option<String>,
) -> Result<(TransactionQuery, &'static [u8]), Invalid> {
    let query = TransactionQuery::of_table(&parameter)?;
    let mark = match parameter("bom").as_deref() {
        None | Some("false") => b"",
        Some("true") => BYTE_ORDER_MARK,
        Some(_) => return Err(Invalid::field("bom", ErrorCode::FieldInvalid, "must be true or false")),
    };
    Ok((query, mark))
}

pub(super) fn table_of(page: &TransactionPage, mark: &[u8]) -> Outcome {
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"transactions.csv\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let table = csv(&page.items, mark)?;
    let mut response = reply::response(StatusCode::OK, table, headers);
    if let Some(next) = page.next.as_ref().filter(|_| page.has_more) {
        response.headers_mut().extend(HeaderValue::from_str(next.as_str()).ok().map(|next| (NEXT, next)));
    }
    Ok(response)
}

/// A key needs this scope besides the account's: transactions name payments, and anybody with a payment's id can open its
/// checkout without a key.
pub(super) const ALSO_NEEDED: Permission = Permission::PaymentsRead;

/// The rows below their columns. No cell contains a merchant's or customer's text, so none can be a formula.
fn csv(transactions: &[Transaction], mark: &[u8]) -> Result<Vec<u8>, ApiError> {
    let mut table = csv::Writer::from_writer(mark.to_vec());
    table.write_record(COLUMNS).map_err(ApiError::internal)?;
    for it in transactions {
        let (created_at, amount, balance) = (it.created_at.to_string(), it.amount.to_string(), it.balance.to_string());
        let (id, payment) = (it.id.as_str(), it.payment_id.as_ref().map_or("", PaymentId::as_str));
        let payout = it.payout_id.as_ref().map_or("", PayoutId::as_str);
        let row = [id, &created_at, payment, it.kind.as_str(), &amount, it.currency.code(), &balance, payout];
        table.write_record(row).map_err(ApiError::internal)?;
    }
    table.into_inner().map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use payments_core::{Balance, Currency, TransactionKind, UnknownFields};

    use super::*;

    #[test]
    fn a_table_has_exact_amounts_below_its_columns() {
        let fee = Transaction {
            id: "txn_fee_1".parse().unwrap(),
            created_at: "2026-03-01T00:00:00Z".parse().unwrap(),
            payment_id: "pay_1".parse().ok(),
            payout_id: None,
            kind: TransactionKind::Fee,
            amount: Balance::from_minor(-250),
            currency: Currency::Bdt,
            balance: Balance::from_minor(9_750),
            unknown: UnknownFields::new(),
        };
        let table = String::from_utf8(csv(&[fee], b"").unwrap()).unwrap();
        assert_eq!(
            table,
            "id,createdAt,paymentId,kind,amount,currency,balance,payoutId\n\
             txn_fee_1,2026-03-01T00:00:00.000Z,pay_1,fee,-2.5,BDT,97.5,\n"
        );
    }
}
