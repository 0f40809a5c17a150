//! A badge for a README: a small picture with a few words.

use crate::words::history;
use maud::{PreEscaped, html};
use ompfuse_compare::history::History;

/// What is on its left.
const LABEL: &str = "performance";

/// Width of an average character, and room beside a text, in pixels.
const CHARACTER: f64 = 6.4;
const ROOM: f64 = 12.0;

/// Background colours on which white text can be read: 4.5 to 1 and better.
const GOOD: &str = "#1a7f37";
const BAD: &str = "#b3400a";
const UNKNOWN: &str = "#57606c";
const LEFT: &str = "#3d444d";

/// The badge as SVG.
pub fn badge(found: &History) -> String {
    let (text, is_good) = history::badge(found);
    let colour = match is_good {
        Some(true) => GOOD,
        Some(false) => BAD,
        None => UNKNOWN,
    };
    let width = |text: &str| (text.chars().count() as f64 * CHARACTER + ROOM).round();
    let (left, right) = (width(LABEL), width(&text));
    let all = left + right;
    let label = format!("{LABEL}: {text}");
    let written = |x: f64, text: &str| {
        html! { text x=(x) y="14" textLength=(format!("{:.0}", text.chars().count() as f64 * CHARACTER)) { (text) } }
    };
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(all) height="20" viewBox=(format!("0 0 {all} 20")) role="img" aria-label=(label) {
            title { (label) }
            clipPath id="round" { rect width=(all) height="20" rx="3" {} }
            g clip-path="url(#round)" {
                rect width=(left) height="20" fill=(LEFT) {}
                rect x=(left) width=(right) height="20" fill=(colour) {}
            }
            g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" {
                (written(left / 2.0, LABEL))
                (written(left + right / 2.0, &text))
            }
        }
        (PreEscaped("\n"))
    };
    picture.into_string()
}
