//! TAU's profile files: for each metric a folder `MULTI__NAME`, in it for each thread a file `profile.NODE.CONTEXT.THREAD` with a line for
//! each frame and each path. ParaProf, pprof and Hatchet read them.

use crate::calltree::{CallTree, Frame, FrameKind, Quantity, VISITS};
use crate::kinds::{COMPILER, kind};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

/// Hands on the files: each one's path in the profile's folder, and what it holds. Times are microseconds.
///
/// # Errors
/// Those of `file`.
pub fn write(
    tree: &CallTree,
    mut file: impl FnMut(&str, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let names: Vec<String> = tree.frames.iter().map(name).collect();
    let ranks = tree.ranks();
    let mut in_process = BTreeMap::new();
    for (at, thread) in tree.threads.iter().enumerate() {
        let next: &mut u32 = in_process.entry(thread.process).or_default();
        let of_thread = format!("profile.{}.0.{next}", ranks[thread.process]);
        *next += 1;
        let values = OfThread::new(tree, at);
        for (metric, of_metric) in tree.metrics.iter().enumerate() {
            if of_metric.quantity == Quantity::Visits {
                continue;
            }
            let metric_name = upper(&of_metric.name);
            let text = values.text(&names, metric, &metric_name);
            file(
                &format!("MULTI__{metric_name}/{of_thread}"),
                text.as_bytes(),
            )?;
        }
    }
    Ok(())
}

/// A metric's name as TAU has them: `TIME`, `LIMITED_PARALLELISM`.
fn upper(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(fit).collect()
}

/// A frame's name: readers find the place in the source by braces, and divide paths at arrows.
fn name(frame: &Frame) -> String {
    let fit = |c: char| match c {
        '"' => '\'',
        '{' => '(',
        '}' => ')',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = frame.name.chars().map(fit).collect();
    let mut name = name.trim().replace("=>", "->");
    if let (Some(file), Some(line)) = (&frame.file, frame.line) {
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || "\"{}".contains(c);
        let file: String = file
            .chars()
            .map(|c| if is_bad(c) { '_' } else { c })
            .collect();
        name += &format!(" [{{{}}} {{{line},0}}]", file.replace("=>", "->"));
    }
    name
}

/// A line's numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    calls: u64,
    inner_calls: u64,
    own: u64,
    all: u64,
}

/// One thread's values.
struct OfThread<'t> {
    tree: &'t CallTree,
    own: Vec<Option<&'t Vec<u64>>>,
    all: Vec<Option<Vec<u64>>>,
    inner_calls: Vec<u64>,
}

impl OfThread<'_> {
    fn new(tree: &CallTree, thread: usize) -> OfThread<'_> {
        let own: Vec<Option<&Vec<u64>>> = tree.nodes.iter().map(|n| n.own.get(&thread)).collect();
        let mut inner_calls = vec![0; own.len()];
        for (node, own) in tree.nodes.iter().zip(&own) {
            if let (Some(parent), Some(own)) = (node.parent, own) {
                inner_calls[parent] += own[VISITS];
            }
        }
        OfThread {
            tree,
            all: tree.inclusive(thread),
            own,
            inner_calls,
        }
    }

    /// Of a node; `None`: the thread never came there.
    fn row(&self, node: usize, metric: usize) -> Option<Row> {
        let all = self.all[node].as_ref()?;
        let own = self.own[node];
        let is_function = self.tree.frame(node).kind == FrameKind::Function;
        let calls = own.map_or(0, |own| own[VISITS]);
        Some(Row {
            // How often a function was called is not on record.
            calls: if is_function { 1 } else { calls },
            inner_calls: self.inner_calls[node],
            own: own.map_or(0, |own| own[metric]),
            all: all[metric],
        })
    }

    fn text(&self, names: &[String], metric: usize, metric_name: &str) -> String {
        let tree = self.tree;
        let mut flat: Vec<Option<Row>> = vec![None; tree.frames.len()];
        let mut paths: Vec<(usize, Row)> = vec![];
        for (at, node) in tree.nodes.iter().enumerate() {
            let Some(row) = self.row(at, metric) else {
                continue;
            };
            let sum = flat[node.frame].get_or_insert_with(Row::default);
            sum.calls += row.calls;
            sum.inner_calls += row.inner_calls;
            sum.own += row.own;
            // What is in itself again is counted once.
            let is_inside = tree
                .around(at)
                .skip(1)
                .any(|a| tree.nodes[a].frame == node.frame);
            if !is_inside {
                sum.all += row.all;
            }
            if node.parent.is_some() {
                paths.push((at, row));
            }
        }
        let quantity = tree.metrics[metric].quantity;
        let mut text = format!(
            "{} templated_functions_MULTI_{metric_name}\n# Name Calls Subrs Excl Incl ProfileCalls # <metadata><attribute><name>Metric \
             Name</name><value>{metric_name}</value></attribute></metadata>\n",
            flat.iter().flatten().count() + paths.len(),
        );
        for (frame, row) in flat.iter().enumerate() {
            let Some(row) = row else { continue };
            let group = match tree.frames[frame].kind {
                FrameKind::Region(Some(construct)) => kind(construct).model.tau,
                FrameKind::Region(None) => "OpenMP",
                FrameKind::Function => COMPILER.tau,
                FrameKind::Program => "TAU_DEFAULT",
            };
            line(&mut text, &names[frame], *row, quantity, group);
        }
        for (node, row) in paths {
            let mut path: Vec<&str> = tree
                .around(node)
                .map(|at| &*names[tree.nodes[at].frame])
                .collect();
            path.reverse();
            line(&mut text, &path.join(" => "), row, quantity, "TAU_CALLPATH");
        }
        text + "0 aggregates\n"
    }
}

fn line(text: &mut String, name: &str, row: Row, quantity: Quantity, group: &str) {
    let [own, all] = [row.own, row.all].map(|value| match (quantity, group) {
        // Readers want whole numbers of the program.
        (Quantity::Time, "TAU_DEFAULT") => ((value + 500) / 1000).to_string(),
        (Quantity::Time, _) => format!("{}.{:03}", value / 1000, value % 1000),
        _ => value.to_string(),
    });
    let Row {
        calls, inner_calls, ..
    } = row;
    let _ = writeln!(
        text,
        "\"{name}\" {calls} {inner_calls} {own} {all} 0 GROUP=\"{group}\""
    );
}
