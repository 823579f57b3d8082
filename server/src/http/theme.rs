//! The stylesheet that gives the checkout page the colour of a developer app. The page's policy forbids styles inside
//! the document, so each colour has a URL. The URL names no payment, so browsers can cache it forever.

use sha2::{Digest, Sha256};

use crate::domain::Colour;

/// The background of the page's cards in the light and in the dark theme, as in `checkout.css`.
const CARDS: [Colour; 2] = [Colour::WHITE, Colour::new(0x1a, 0x20, 0x29)];
/// The contrast that WCAG 2.2 requires of a control's edge (success criterion 1.4.11).
const EDGE_CONTRAST: f64 = 3.0;

pub(super) fn address(colour: Colour) -> String {
    let hash = hex::encode(&Sha256::digest(stylesheet(colour))[..6]);
    format!("/assets/checkout-{}.css?{hash}", colour.to_string().trim_start_matches('#'))
}

/// The stylesheet with this name, such as `checkout-0a7d4f.css`.
pub(super) fn named(name: &str) -> Option<String> {
    let digits = name.strip_prefix("checkout-")?.strip_suffix(".css")?;
    format!("#{digits}").parse().ok().map(stylesheet)
}

/// Sets the custom properties of `checkout.css`. The button's edge has the colour, unless that is too close to the card's:
/// then it has the edge of other buttons.
fn stylesheet(colour: Colour) -> String {
    let [light, dark] = CARDS
        .map(|card| if colour.contrast(card) < EDGE_CONTRAST { "var(--line)".to_owned() } else { colour.to_string() });
    let text = colour.text();
    format!(
        ":root{{--brand:{colour};--on-brand:{text};--edge:{light}}}\n\
         @media(prefers-color-scheme:dark){{:root{{--edge:{dark}}}}}\n\
         body{{border-top:.375rem solid {colour}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stylesheet_has_legible_text_and_a_visible_edge_in_both_themes() {
        for (colour, text, light, dark) in [
            ("#0a7d4f", "#ffffff", "#0a7d4f", "#0a7d4f"),
            ("#ffd400", "#000000", "var(--line)", "#ffd400"),
            ("#10182a", "#ffffff", "#10182a", "var(--line)"),
        ] {
            assert_eq!(
                stylesheet(colour.parse().unwrap()),
                format!(
                    ":root{{--brand:{colour};--on-brand:{text};--edge:{light}}}\n\
                     @media(prefers-color-scheme:dark){{:root{{--edge:{dark}}}}}\n\
                     body{{border-top:.375rem solid {colour}}}\n"
                )
            );
        }
    }

    #[test]
    fn the_cards_have_the_backgrounds_of_the_stylesheet() {
        let css = include_str!("../../templates/checkout.css");
        let declared: Vec<&str> = css.split("--card:").skip(1).filter_map(|rest| rest.split(';').next()).collect();
        assert_eq!(declared[..2], ["#fff", &*CARDS[1].to_string()]);
    }

    #[test]
    fn a_stylesheets_url_leads_to_it() {
        let colour: Colour = "#0A7D4F".parse().unwrap();
        let address = address(colour);
        let (path, hash) = address.split_once('?').unwrap();
        assert_eq!((path, hash.len()), ("/assets/checkout-0a7d4f.css", 12));
        assert_eq!(named(path.strip_prefix("/assets/").unwrap()), Some(stylesheet(colour)));
        for name in ["checkout.css", "checkout-.css", "checkout-red.css", "checkout-0a7d4f", "checkout-#0a7d4f.css"] {
            assert_eq!(named(name), None, "{name}");
        }
    }
}
