//! Values for the page's scripts.

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

/// An element that scripts read a value from. Nothing in it can end it: what HTML looks at is escaped as JSON does it.
pub(super) fn json(id: &str, value: &impl Serialize) -> Markup {
    let text = serde_json::to_string(value).expect("values for scripts have only string keys");
    html! { script type="application/json" id=(id) { (PreEscaped(escaped(&text))) } }
}

/// JSON without a character that HTML looks at. They are in strings only, where an escape is as good.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_cannot_end_its_element() {
        let value = ["</script><!--<script>", "a&b\u{2028}"];
        let text = super::json("d", &value).into_string();
        assert_eq!(text.matches('<').count(), 2);
        let inside = text.split_once('>').unwrap().1;
        let inside = inside.strip_suffix("</script>").unwrap();
        let back: Vec<String> = serde_json::from_str(inside).unwrap();
        assert_eq!(back, value);
    }
}
