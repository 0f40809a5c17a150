//! Collapsed stacks, which flame graphs are made from (flamegraph.pl, inferno, speedscope): a line for each path, of frames and a value.

use crate::calltree::{CallTree, Samples};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the values of a metric, by its position, of all threads together: nanoseconds, or numbers. Paths with no value of their own are
/// left out.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, tree: &CallTree, metric: usize) -> io::Result<()> {
    for node in 0..tree.nodes.len() {
        let value = tree.own(node, metric);
        if value == 0 {
            continue;
        }
        for (nth, frame) in tree.path(node).into_iter().enumerate() {
            let separator = if nth > 0 { ";" } else { "" };
            write!(out, "{separator}{}", name(&frame.name))?;
        }
        writeln!(out, " {value}")?;
    }
    Ok(())
}

/// Writes how many samples each stack has, all threads together: the path, and the functions below it, whatever their lines.
///
/// # Errors
/// Those of `out`.
pub fn write_samples(out: &mut dyn Write, tree: &CallTree, samples: &Samples) -> io::Result<()> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &samples.stacks {
        let path = tree.path(stack.node).into_iter().map(|f| name(&f.name));
        let functions = stack
            .frames
            .iter()
            .map(|&at| name(&samples.frames[at].name));
        let frames: Vec<String> = path.chain(functions).collect();
        *sums.entry(frames.join(";")).or_default() += stack.samples;
    }
    sums.iter()
        .try_for_each(|(stack, samples)| writeln!(out, "{stack} {samples}"))
}

/// A frame's name without what separates frames and lines. One that begins with `#` would be taken for a comment.
fn name(name: &str) -> String {
    let fit = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = name.chars().map(fit).collect();
    match name.trim() {
        name if name.starts_with('#') => format!("_{name}"),
        name => name.to_owned(),
    }
}
