//! The guides beside the reference: one page for each task.

use askama::Template;

use crate::http::assets;

/// Renders a page of a server with a base URL, and with the sandbox's key if the sandbox is on.
pub(super) type Render = fn(&str, Option<&'static str>) -> Result<String, askama::Error>;

/// A guide's address under `/docs/` and its title.
pub(super) struct Guide {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) render: Render,
}

/// The guides in the order in which the pages list them.
pub(super) const GUIDES: [Guide; 5] = [
    Guide { name: "first-payment", title: "Your first payment", render: FirstPayment::page },
    Guide { name: "webhooks", title: "Webhooks", render: Webhooks::page },
    Guide { name: "refunds", title: "Refunds", render: Refunds::page },
    Guide { name: "testing", title: "Testing", render: Testing::page },
    Guide { name: "going-live", title: "Going live", render: GoingLive::page },
];

/// The key in commands if the server offers none.
pub(super) const ANY_KEY: &str = "sk_test_...";

macro_rules! guide {
    ($name:ident, $path:literal) => {
        #[derive(Template)]
        #[template(path = $path)]
        struct $name<'s> {
            base_url: &'s str,
            sandbox_key: Option<&'static str>,
        }

        impl $name<'_> {
            fn page(base_url: &str, sandbox_key: Option<&'static str>) -> Result<String, askama::Error> {
                $name { base_url, sandbox_key }.render()
            }
        }
    };
}

guide!(FirstPayment, "guide-first-payment.html");
guide!(Webhooks, "guide-webhooks.html");
guide!(Refunds, "guide-refunds.html");
guide!(Testing, "guide-testing.html");
guide!(GoingLive, "guide-going-live.html");
