//! Text of the OpenAPI document as HTML.

use payments_core::ErrorCode;
use serde_json::Value;

use super::document::text;

/// Converts text to HTML. The document uses only paragraphs, `code` and **bold**.
pub(super) fn prose(value: &Value) -> String {
    let escaped = text(value).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    marked(&marked(&escaped, "`", "code"), "**", "strong").replace("\n\n", "</p><p>")
}

pub(super) fn meaning(code: &ErrorCode) -> String {
    prose(&code.meaning().into())
}

fn marked(text: &str, mark: &str, element: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        1 => format!("<{element}>{part}</{element}>"),
        _ => part.to_owned(),
    };
    text.split(mark).enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_escapes_html_before_it_adds_markup() {
        assert_eq!(
            prose(&"a <b> `x<y` **z**\n\nn".into()),
            "a &lt;b&gt; <code>x&lt;y</code> <strong>z</strong></p><p>n"
        );
    }
}
