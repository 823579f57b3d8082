//! A history in words.

use std::fmt;

use super::history::{Fault, History, Sent, Step, What, number};

impl History {
    /// Each step in words.
    pub(super) fn words(&self) -> Vec<String> {
        self.steps.iter().map(|step| self.step(step)).collect()
    }

    fn step(&self, step: &Step) -> String {
        let order = number(step.order);
        let mut words = if step.overlap.is_some() { "Before the shop is done: " } else { "" }.to_owned();
        words += &match &step.what {
            What::Minutes(minutes) if *minutes < 120 => format!("{minutes} minutes pass."),
            What::Minutes(minutes) => format!("{} hours pass.", minutes / 60),
            What::Moved(by) => format!("{order}: {by}."),
            What::Tick => "The shop's background task runs.".into(),
            What::Ordered => format!("A customer orders {order} for {}.", self.orders[step.order]),
            What::Returned { lies: false } => format!("{order}: the browser returns to the shop."),
            What::Returned { lies: true } => format!("{order}: the browser returns to the shop and says completed."),
            What::Webhook { event, sent, .. } => match sent {
                Sent::AsItIs => format!("{order}: the webhook {event} arrives."),
                Sent::Forged => format!("{order}: a forged webhook payment.completed arrives."),
                Sent::ADayOld => format!("{order}: the webhook {event} arrives with a signature that is a day old."),
                Sent::WithAnotherHeader => {
                    format!("{order}: the webhook {event} arrives with payment.completed in its header.")
                }
            },
        };
        if !step.faults.is_empty() {
            let faults: Vec<_> = step.faults.iter().map(ToString::to_string).collect();
            words += &format!(" The API's next answers: {}.", faults.join(", "));
        }
        if let Some(polls) = step.cut {
            words += &format!(" The shop is cut off at await {polls}.");
        }
        words
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "no connection",
            Self::Limited => "429",
            Self::Unavailable => "503",
            Self::Lost => "lost before it ran",
            Self::HalfABody => "half a body",
        })
    }
}
