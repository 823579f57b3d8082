//! What the shop sells. A real shop has this in its database.

use payments_client::Money;

/// A product.
pub(crate) struct Product {
    /// Its name in forms.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The price. The browser never says what to charge.
    pub(crate) price: Money,
    /// The drawing, as the content of an SVG.
    pub(crate) drawing: &'static str,
}

/// All products.
pub(crate) static PRODUCTS: [Product; 3] = [
    Product {
        id: "cup",
        name: "Tea cup",
        about: "Holds a quarter of a litre, and keeps it warm.",
        price: Money::taka(750),
        drawing: r#"<path d="M30 34h48v26a20 20 0 0 1-20 20h-8a20 20 0 0 1-20-20z"/><path d="M78 42h8a10 10 0 0 1 0 20h-9" fill="none" stroke="currentColor" stroke-width="6"/><path d="M24 88h64" stroke="currentColor" stroke-width="5" stroke-linecap="round"/>"#,
    },
    Product {
        id: "bowl",
        name: "Rice bowl",
        about: "For one, or for the mangoes of the house.",
        price: Money::taka(950),
        drawing: r#"<path d="M18 44h84a42 38 0 0 1-26 36v8H44v-8a42 38 0 0 1-26-36z"/>"#,
    },
    Product {
        id: "pot",
        name: "Tea pot",
        about: "Six cups, one lid, no drip.",
        price: Money::taka(2_400),
        drawing: r#"<circle cx="56" cy="60" r="30"/><path d="M44 28h24v6H44z"/><circle cx="56" cy="23" r="5"/><path d="M84 66c12-2 12-18 22-22" fill="none" stroke="currentColor" stroke-width="8" stroke-linecap="round"/><path d="M28 48c-16-4-20 24 0 26" fill="none" stroke="currentColor" stroke-width="6"/>"#,
    },
];

/// The product with this name in forms.
pub(crate) fn product(id: &str) -> Option<&'static Product> {
    PRODUCTS.iter().find(|product| product.id == id)
}
