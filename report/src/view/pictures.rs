//! Pictures of two-event distributions, as one self-contained HTML page.

use std::fmt::Write as _;

/// One pair of events.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPicture {
    /// Event of the vertical axis.
    pub x: String,
    /// Event of the horizontal axis.
    pub y: String,
    /// What is said below.
    pub caption: String,
    /// Distributions side by side, each with its title: shares of the XUs in square bins, rows by `x`.
    pub grids: Vec<(String, Vec<Vec<f64>>)>,
}

/// Side of a bin in pixels.
const CELL: usize = 14;

/// The page.
pub fn page(title: &str, pairs: &[PairPicture]) -> String {
    let mut body = String::new();
    for pair in pairs {
        let (x, y) = (escaped(&pair.x), escaped(&pair.y));
        let _ = write!(
            body,
            "<h2>{x} and {y}</h2>\n<p>{}</p>\n<div class=\"row\">",
            escaped(&pair.caption)
        );
        for (name, grid) in &pair.grids {
            let _ = write!(
                body,
                "<figure>{}<figcaption>{}</figcaption></figure>",
                svg(grid, &x, &y),
                escaped(name)
            );
        }
        body += "</div>\n";
    }
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>body{{font:15px \
         sans-serif;margin:2em;color:#222}}.row{{display:flex;flex-wrap:wrap;gap:1.5em}}figure{{margin:0}}figcaption{{text-align:\
         center}}</style></head>\n<body><h1>{title}</h1>\n<p>Shares of the execution units by the counts of two events, in \
         the bins of the evaluation: darker is more, and the outermost bins hold what lies outside of the references' \
         bounds.</p>\n{body}</body></html>\n"
    )
}

/// A distribution; the lowest counts are at the bottom left.
fn svg(grid: &[Vec<f64>], x: &str, y: &str) -> String {
    let rows = grid.len();
    let columns = grid.first().map_or(0, Vec::len);
    let most = grid.iter().flatten().copied().fold(0.0, f64::max);
    let (width, height) = (columns * CELL, rows * CELL);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-size=\"11\"><g \
         transform=\"translate(18,2)\"><rect width=\"{width}\" height=\"{height}\" fill=\"#fff\" stroke=\"#888\"/>",
        width + 20,
        height + 20
    );
    for (at, row) in grid.iter().enumerate() {
        for (column, &share) in row.iter().enumerate() {
            if share > 0.0 {
                // Small shares are to be seen too.
                let light = 92.0 - 70.0 * (share / most).powf(0.4);
                let (left, top) = (column * CELL, (rows - 1 - at) * CELL);
                let _ = write!(
                    out,
                    "<rect x=\"{left}\" y=\"{top}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"hsl(215,70%,{light:.0}%)\">\
                     <title>{:.3} %</title></rect>",
                    share * 100.0
                );
            }
        }
    }
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{y}</text><text transform=\"translate(-6,{}) rotate(-90)\" \
         text-anchor=\"middle\">{x}</text></g></svg>",
        width / 2,
        height + 14,
        height / 2
    );
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_each_occupied_bin_and_nothing_from_elsewhere() {
        let grid = vec![vec![0.5, 0.0], vec![0.25, 0.25]];
        let pair = PairPicture {
            x: "a<b".to_owned(),
            y: "INS".to_owned(),
            caption: "TMD 2".to_owned(),
            grids: vec![
                ("profile".to_owned(), grid.clone()),
                ("reference 1".to_owned(), grid),
            ],
        };
        let page = page("worst & best", &[pair]);
        assert_eq!(page.matches("<title>25.000 %</title>").count(), 4);
        assert_eq!(page.matches("<title>50.000 %</title>").count(), 2);
        assert!(page.contains("a&lt;b and INS") && page.contains("worst &amp; best"));
        // Self-contained: the name space of SVG is the only address.
        assert_eq!(page.matches("http").count(), 2);
    }
}
