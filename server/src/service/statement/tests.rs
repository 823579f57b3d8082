use super::*;

/// Reads a file with this text.
fn read(columns: &str, text: impl AsRef<[u8]>) -> Result<Vec<StatementRow>, String> {
    let file = Cursor::new(text.as_ref().to_vec());
    Statement::read(file, StatementColumns::named(columns).unwrap())?.next_rows(9)
}

const HEADER: &str = "id,kind,reference,gross,fee,net,currency,date\n";

fn plain_rows(rows: &str) -> Result<Vec<StatementRow>, String> {
    read("plain", format!("{HEADER}{rows}"))
}

#[test]
fn a_plain_statement_is_read_with_or_without_a_byte_order_mark() {
    let rows =
        "r1,payment,pay_1,\"1,250.50\",15.5,1235,BDT,2026-03-01\nr2, Refund ,TX 2,-40,,-40.00,usd,2026-03-02 10:00\n";
    let found = plain_rows(rows).unwrap();
    assert_eq!(read("plain", format!("\u{feff}{HEADER}{rows}")).unwrap(), found);
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.gross, first.fee, first.net, first.kind), (125_050, 1_550, 123_500, RowKind::Payment));
    assert_eq!((first.references.as_slice(), first.date.to_string()), (&["pay_1".to_owned()][..], "2026-03-01".into()));
    assert_eq!((second.gross, second.fee, second.net, second.kind), (-4_000, 0, -4_000, RowKind::Refund));
    assert_eq!(second.currency, Currency::Usd);
}

#[test]
fn the_files_of_gateways_are_read_by_the_names_of_their_columns() {
    let bkash = "Transaction ID,Type,Merchant Invoice,Transaction Amount,Charge,Net Amount,Transaction Date\n\
        TX1,Payment,pay_1-a,100.00,1.50,98.50,2026-03-01T10:00:00\nTX2,Refund,,40,,,2026-03-02\n\
        TX3,Cash out,,-9,0,-9,2026-03-02\n";
    let rows = read("bkash", bkash).unwrap();
    let parts: Vec<_> = rows.iter().map(|it| (it.kind, it.gross, it.fee, it.net, it.references.join(" "))).collect();
    let expected = [
        (RowKind::Payment, 10_000, 150, 9_850, "pay_1-a TX1".to_owned()),
        (RowKind::Refund, -4_000, 0, -4_000, "TX2".to_owned()),
        (RowKind::Other, -900, 0, -900, "TX3".to_owned()),
    ];
    assert_eq!(parts, expected);
    let sslcommerz = "val_id,tran_id,bank_tran_id,amount,store_amount,currency,tran_date\n\
        v1,pay_1,B1,100.00,97.50,BDT,2026-03-01 10:00:00\n";
    let rows = read("sslcommerz", sslcommerz).unwrap();
    assert_eq!((rows[0].fee, rows[0].net, rows[0].references.join(" ")), (250, 9_750, "pay_1 B1".to_owned()));
    let error = read("bkash", sslcommerz).unwrap_err();
    assert_eq!(error, "the file has no column \"trxID\"; its columns are those of --columns sslcommerz");
}

#[test]
fn bad_input_is_refused_by_a_sentence_that_names_row_and_column() {
    for (rows, says) in [
        (
            "r1,payment,p,10.005,0,10,BDT,2026-03-01",
            "line 2, column \"gross\": \"10.005\" is no amount with at most two decimals, such as 1250.50",
        ),
        (
            "r1,payment,p,10,0,10,BDT,2026-03-01\nr2,payment,p,10,1,8,BDT,2026-03-01",
            "line 3, column \"net\": \"8\" is not",
        ),
        ("r1,payment,p,10,0,10,BDT,2026-03-0", "line 2, column \"date\": \"2026-03-0\" must begin with a date"),
        ("r1,payment,p,10,0,10,BDT,2026-02-30", "column \"date\""),
        ("r1,payment,p,10,0,10,EUR,2026-03-01", "line 2, column \"currency\": \"EUR\" is a currency that"),
        (
            "r1,gift,p,10,0,10,BDT,2026-03-01",
            "column \"kind\": \"gift\" must be one of payment, refund, dispute, fee, other",
        ),
        (",payment,p,10,0,10,BDT,2026-03-01", "column \"id\": \"\" must be 1 to 100"),
        ("r1,payment,p,10,0", "line 2 has 5 columns, and the header has 8"),
        ("r1,payment,\"a\nb\",10,0,10,BDT,2026-03-01", "column \"reference\""),
    ] {
        let error = plain_rows(rows).unwrap_err();
        assert!(error.contains(says), "{rows}: {error}");
    }
    for amount in ["", "ten", "1 000", "12,50", "1,0000", "--1", "+1", "1.", "9999999999999999", "0x1", "1e3", "১০"]
    {
        let rows = format!("r1,payment,p,\"{amount}\",0,,BDT,2026-03-01");
        let is_read = plain_rows(&rows).is_ok();
        assert_eq!(is_read, amount == "1.", "{amount}");
    }
    assert_eq!(minor_of("1,00,000.10"), Some(10_000_010));
    let utf_16: Vec<u8> = [0xff, 0xfe].into_iter().chain(HEADER.bytes().flat_map(|byte| [byte, 0])).collect();
    for (text, says) in [
        (utf_16, "the file is UTF-16; save it as CSV in UTF-8"),
        (
            b"id,kind,reference,gross,fee,net,currency,date\nr\xff,payment,p,1,0,1,BDT,2026-03-01".to_vec(),
            "line 2 is not UTF-8",
        ),
        (b"id,kind,reference,gross,fee,net,date\n".to_vec(), "the file has no column \"currency\"; it has id, kind"),
        (Vec::new(), "the file has no column \"id\"; it has "),
    ] {
        let error = read("plain", text).unwrap_err();
        assert!(error.starts_with(says), "{error}");
    }
}
