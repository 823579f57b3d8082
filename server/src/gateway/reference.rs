//! Our references at a gateway, in its alphabet and length.

use payments_core::PaymentId;

use crate::ambient::Ambient;

/// The form of our references at a gateway. A reference is unique there and cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceForm {
    /// The payment's id, a hyphen and 12 hex digits: 52 characters, which name the payment to a person too.
    WithPayment,
    /// So many characters of an alphabet. The store finds the payment by them.
    Of { alphabet: &'static [u8], chars: usize },
}

impl ReferenceForm {
    pub fn make(self, payment: &PaymentId, ambient: &dyn Ambient) -> String {
        self.own(ambient).unwrap_or_else(|| format!("{payment}-{}", hex::encode(ambient.random::<6>())))
    }

    /// A reference in the gateway's own form, if it has one.
    pub fn own(self, ambient: &dyn Ambient) -> Option<String> {
        let Self::Of { alphabet, chars } = self else { return None };
        let mut made = String::with_capacity(chars);
        while made.len() < chars && !alphabet.is_empty() {
            // Bytes above the last multiple of the alphabet's length would make its first letters likelier.
            let even = 256 - 256 % alphabet.len();
            let letters = ambient.random::<32>().map(usize::from).into_iter().filter(|byte| *byte < even);
            made.extend(letters.map(|byte| char::from(alphabet[byte % alphabet.len()])).take(chars - made.len()));
        }
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::OperatingSystem;

    #[test]
    fn a_reference_has_the_alphabet_and_length_of_its_gateway() {
        let payment: PaymentId = "pay_0198c0de5eed7000800000000000000100a".parse().unwrap();
        let with_payment = ReferenceForm::WithPayment.make(&payment, &OperatingSystem);
        assert!(with_payment.starts_with("pay_0198c0de5eed7000800000000000000100a-") && with_payment.len() == 52);
        for (alphabet, chars) in [("0123456789", 20), ("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 30), ("x", 3)] {
            let form = ReferenceForm::Of { alphabet: alphabet.as_bytes(), chars };
            let made = form.make(&payment, &OperatingSystem);
            assert!(made.len() == chars && made.chars().all(|char| alphabet.contains(char)), "{made}");
            assert_eq!(made == form.make(&payment, &OperatingSystem), alphabet == "x");
        }
    }
}
