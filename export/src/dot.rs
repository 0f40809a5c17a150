//! Graphs of units for Graphviz's `dot`: a cluster for each execution of a parallel region.
//!
//! Units are boxes, with what they are, where, and how long. Solid edges are dependences, dotted ones creations. The critical path is
//! red. The language: <https://graphviz.org/doc/info/lang.html>.

use ompfuse_fuse::names::readable;
use ompfuse_fuse::span::{Drawn, DrawnUnit, Order};
use ompfuse_fuse::{Site, Summary};
use std::collections::HashSet;
use std::io::{self, Write};

/// Writes graphs of a run, whose summary this is.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, graphs: &[Drawn], summary: &Summary) -> io::Result<()> {
    writeln!(out, "digraph {{")?;
    writeln!(out, "  node [shape=box, fontname=\"sans-serif\"];")?;
    for (nth, graph) in graphs.iter().enumerate() {
        writeln!(out, "  subgraph cluster_{nth} {{")?;
        let region = place(graph.site.and_then(|s| summary.sites.get(s as usize)));
        writeln!(out, "    label=\"{}\";", quoted(&region))?;
        let critical: HashSet<u32> = graph.path.iter().copied().collect();
        for (at, unit) in (0..).zip(&graph.units) {
            let colour = if critical.contains(&at) {
                ", color=red"
            } else {
                ""
            };
            let name = quoted(&name(unit, summary));
            writeln!(out, "    u{nth}_{at} [label=\"{name}\"{colour}];")?;
        }
        for &(from, to, order) in &graph.edges {
            let style = match order {
                Order::Creates => "style=dotted",
                Order::Depends => "style=solid",
            };
            writeln!(out, "    u{nth}_{from} -> u{nth}_{to} [{style}];")?;
        }
        for pair in graph.path.windows(2) {
            let style = "color=red, penwidth=2, constraint=false";
            writeln!(
                out,
                "    u{nth}_{} -> u{nth}_{} [{style}];",
                pair[0], pair[1]
            )?;
        }
        writeln!(out, "  }}")?;
    }
    writeln!(out, "}}")
}

fn name(unit: &DrawnUnit, summary: &Summary) -> String {
    let site = unit.site.and_then(|s| summary.sites.get(s as usize));
    let millis = unit.own_ns as f64 * 1e-6;
    let what = unit.construct.name();
    format!("{what} {}\n{}\n{millis:.3} ms", unit.index, place(site))
}

fn place(site: Option<&Site>) -> String {
    let Some(site) = site else {
        return "?".to_owned();
    };
    match (&site.source, &site.function) {
        (Some(source), _) => {
            let file = source.file.rsplit('/').next().unwrap_or(&source.file);
            format!("{file}:{}", source.line)
        }
        (None, Some(function)) => readable(function).into_owned(),
        (None, None) => site.name.clone(),
    }
}

/// A string between quotation marks, where a line's end is written as `\n`.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}
