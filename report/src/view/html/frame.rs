//! The page around the sections: head, navigation, styles and scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLES: [&str; 3] = [
    include_str!("assets/page.css"),
    include_str!("assets/history.css"),
    include_str!("assets/timeline/timeline.css"),
];

/// The colours of dark pages.
const DARK: &str = include_str!("assets/dark.css");
/// Where they hold: the reader's system is dark and the page was not made light, or the page was made dark. Paper is light.
const WHERE_DARK: [[&str; 2]; 2] = [
    [
        "@media screen and (prefers-color-scheme: dark)",
        ":root:not([data-theme=\"light\"])",
    ],
    ["@media screen", ":root[data-theme=\"dark\"]"],
];

/// In this order. Each puts its part into `window.ompfuse`, but for the timeline's.
const SCRIPTS: [&str; 12] = [
    include_str!("assets/format.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/table.js"),
    include_str!("assets/diff.js"),
    include_str!("assets/detail.js"),
    include_str!("assets/paths.js"),
    include_str!("assets/series.js"),
    include_str!("assets/timeline/decode.js"),
    include_str!("assets/timeline/paint.js"),
    include_str!("assets/timeline/view.js"),
    include_str!("assets/timeline/mount.js"),
    include_str!("assets/page.js"),
];

/// Chooses light or dark before anything is painted.
const THEME: &str = "try{const t=localStorage.getItem('ompfuse-theme');if(t)document.documentElement.dataset.theme=t}catch{}";

/// A section: its id, its name in the navigation, and what is in it.
pub(super) type Section = (&'static str, &'static str, Option<Markup>);

/// The whole page, of those sections that there are.
/// `data`: for the scripts.
pub(super) fn page(title: &str, sections: &[Section], data: &Markup) -> String {
    let there = || {
        let there = sections.iter();
        there.filter_map(|(id, name, inside)| Some((*id, *name, inside.as_ref()?)))
    };
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("ompfuse ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                // No request for an icon.
                link rel="icon" href="data:,";
                @for style in STYLES {
                    style { (PreEscaped(style)) }
                }
                @for [media, root] in WHERE_DARK {
                    style { (PreEscaped(format!("{media} {{ {root} {{\n{DARK}}} }}"))) }
                }
                script { (PreEscaped(THEME)) }
            }
            body {
                a.skip href="#main" { "Skip to the report" }
                header.top {
                    div.brand { "ompfuse" }
                    nav aria-label="Sections" {
                        @for (id, name, _) in there() { a href={ "#" (id) } { (name) } }
                    }
                    button #theme type="button" aria-label="Switch between light and dark" title="Light or dark" {
                        svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" {
                            circle cx="10" cy="10" r="7.2" fill="none" stroke="currentColor" stroke-width="1.6" {}
                            path d="M10 2.8a7.2 7.2 0 0 1 0 14.4z" fill="currentColor" {}
                        }
                    }
                }
                main #main {
                    @for (id, _, inside) in there() {
                        section id=(id) { (inside) }
                        // Below the table that it is selected in.
                        @if id == "regions" { section #detail hidden aria-live="polite" tabindex="-1" {} }
                    }
                }
                noscript { p.note { "Sorting, details and charts need JavaScript; the numbers above don't." } }
                (data)
                @for script in SCRIPTS {
                    script { (PreEscaped(script)) }
                }
            }
        }
    };
    markup.into_string()
}
