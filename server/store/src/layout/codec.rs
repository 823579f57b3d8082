//! Encodes entries: numbers in few bytes, and values with their lengths.

/// Writes a number in as few bytes as it needs.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Writes a number that may be negative.
pub(super) fn push_signed(out: &mut Vec<u8>, number: i128) {
    push_number(out, ((number << 1) ^ (number >> 127)).cast_unsigned());
}

pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_number(out, bytes.len() as u128);
    out.extend_from_slice(bytes);
}

/// Reads encoded values. Each method returns `None` if the bytes do not fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn number(&mut self) -> Option<u128> {
        let mut number = 0_u128;
        for shift in (0..128).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u128::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn short<N: TryFrom<u128>>(&mut self) -> Option<N> {
        self.number()?.try_into().ok()
    }

    pub(super) fn signed(&mut self) -> Option<i128> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(super) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.short()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'b str> {
        str::from_utf8(self.bytes()?).ok()
    }
}

pub(super) fn items(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let mut reader = Reader(bytes);
        let item = reader.bytes()?;
        bytes = reader.0;
        Some(item)
    })
}

/// The byte before a UUID that ends in its developer's slot.
const SHORT: u8 = 0;
/// The same, for an id that begins with `test_`.
const SHORT_TEST: u8 = 1;
/// The byte before the text of any other id.
const LONG: u8 = 2;
/// The hex digits of a UUID and of a slot.
const DIGITS: usize = 35;

/// Writes an id in few bytes: the prefix of its kind is not written.
pub(super) fn pack(prefix: &str, id: &str) -> Vec<u8> {
    let short = || {
        let (mark, digits) = match id.strip_prefix("test_") {
            Some(rest) => (SHORT_TEST, rest.strip_prefix(prefix)?),
            None => (SHORT, id.strip_prefix(prefix)?),
        };
        let is_short = digits.len() == DIGITS && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        let mut even = [b'0'; DIGITS + 1];
        even[..DIGITS].copy_from_slice(is_short.then_some(digits)?.as_bytes());
        let mut packed = vec![mark; 1 + even.len() / 2];
        hex::decode_to_slice(even, &mut packed[1..]).ok()?;
        Some(packed)
    };
    short().unwrap_or_else(|| [&[LONG], id.as_bytes()].concat())
}

pub(super) fn unpack<I: std::str::FromStr>(prefix: &str, packed: &[u8]) -> Option<I> {
    let (mark, rest) = packed.split_first()?;
    if *mark == LONG {
        return str::from_utf8(rest).ok()?.parse().ok();
    }
    let mut digits = [0; DIGITS + 1];
    hex::encode_to_slice(rest, &mut digits).ok()?;
    let mut id = String::with_capacity(prefix.len() + DIGITS + 5);
    if *mark == SHORT_TEST {
        id.push_str("test_");
    }
    id.push_str(prefix);
    id.push_str(str::from_utf8(&digits[..DIGITS]).ok()?);
    id.parse().ok()
}

#[cfg(test)]
mod tests {
    use payments_core::PaymentId;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_decoded_as_encoded(numbers in prop::collection::vec(any::<i128>(), 0..8), bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            for number in &numbers {
                push_signed(&mut out, *number);
                push_number(&mut out, number.cast_unsigned());
            }
            push_bytes(&mut out, &bytes);
            let mut reader = Reader(&out);
            for number in numbers {
                prop_assert_eq!(reader.signed(), Some(number));
                prop_assert_eq!(reader.number(), Some(number.cast_unsigned()));
            }
            prop_assert_eq!(reader.bytes(), Some(&*bytes));
            prop_assert!(reader.0.is_empty());
        }

        #[test]
        fn decoding_damaged_bytes_does_not_panic(bytes in any::<Vec<u8>>()) {
            let mut reader = Reader(&bytes);
            while reader.signed().is_some() && reader.bytes().is_some() && reader.text().is_some() {}
            items(&bytes).for_each(|item| drop(unpack::<PaymentId>("pay_", item)));
        }

        #[test]
        fn an_id_is_unpacked_as_it_was_packed(id in "(test_)?pay_([0-9a-f]{35}|[0-9A-Za-z_-]{1,40})") {
            let packed = pack("pay_", &id);
            let unpacked: PaymentId = unpack("pay_", &packed).unwrap();
            prop_assert_eq!(unpacked.as_str(), id);
        }
    }

    #[test]
    fn an_id_of_ours_takes_nineteen_bytes() {
        for id in ["pay_018bcfe568007bababababababababab3ff", "test_pay_018bcfe568007bababababababababab000"] {
            assert_eq!(pack("pay_", id).len(), 19, "{id}");
        }
    }
}
