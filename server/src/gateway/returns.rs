//! What a customer's return from a gateway says. It is a hint: the gateway's own answer decides.

/// Where a return says what the customer did, and from which attempt: in the query, or in the form of a `POST`.
pub struct Returns {
    /// The parameter with the customer's outcome, and its words.
    pub outcome: &'static str,
    pub words: &'static [(&'static str, Hint)],
    /// The parameter that names the attempt.
    pub attempt: &'static str,
}

/// A customer's return from the gateway. Only the gateway's own answer changes the payment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Return {
    pub hint: Hint,
    /// The attempt from which the customer returns, if the return names one.
    pub attempt: Option<String>,
}

/// What a customer's return says about its attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hint {
    #[default]
    None,
    Approved,
    CouldNotPay,
    Cancelled,
}

/// Maximum length of an attempt's name at a gateway; a longer one names none.
const MAX_NAME_BYTES: usize = 255;

impl Returns {
    /// Reads a return. `find` gives the value of a parameter.
    pub fn read(&self, find: impl Fn(&str) -> Option<String>) -> Return {
        let outcome = find(self.outcome);
        let known = self.words.iter().find(|(word, _)| outcome.as_deref() == Some(*word));
        let attempt = find(self.attempt).filter(|name| name.len() <= MAX_NAME_BYTES);
        Return { hint: known.map_or(Hint::None, |(_, hint)| *hint), attempt }
    }
}
