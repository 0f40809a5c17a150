//! Caliper's text (`.cali`), which Hatchet and Thicket read: a tree of regions, a record for each of them and each MPI rank, and what is
//! true of the whole run.

use crate::calltree::{CallTree, Quantity};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Numbers of types.
const INT: u32 = 1;
const STRING: u32 = 3;
const DOUBLE: u32 = 5;

/// Properties: a value of a record; regions in regions; of the whole run, as a value.
const VALUE: u32 = 65;
const NESTED: u32 = 276;
const GLOBAL: u32 = 576;

/// Writes a profile. Values are of all threads together, of each MPI rank if there are ranks; times in seconds.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, tree: &CallTree) -> io::Result<()> {
    let mut text = Text { out, last: FIRST };
    let region = text.attribute("region", STRING, NESTED)?;
    // Readers take a profile with this attribute for one of MPI: by rank, and not to be put beside another.
    let ranks = tree.mpi_ranks();
    let mut metrics = match ranks {
        Some(_) => vec![text.attribute("mpi.rank", INT, VALUE)?],
        None => vec![],
    };
    for metric in &tree.metrics {
        let kind = match metric.quantity {
            Quantity::Time => DOUBLE,
            Quantity::Visits | Quantity::Event => INT,
        };
        metrics.push(text.attribute(&metric.name, kind, VALUE)?);
    }
    let globals = [
        ("program", escaped(&tree.program), STRING),
        ("host", escaped(&tree.host), STRING),
        ("threads", tree.team.to_string(), INT),
        ("processes", tree.processes.len().to_string(), INT),
    ];
    let (mut attributes, mut values) = (vec![], vec![]);
    for (name, value, kind) in globals {
        attributes.push(text.attribute(name, kind, GLOBAL)?.to_string());
        values.push(value);
    }
    // Readers keep one such record.
    let (attributes, values) = (attributes.join("="), values.join("="));
    writeln!(text.out, "__rec=globals,attr={attributes},data={values}")?;
    let attributes: Vec<String> = metrics.iter().map(u32::to_string).collect();
    let attributes = attributes.join("=");
    let whose: BTreeSet<Option<u32>> = match &ranks {
        Some(ranks) => ranks.iter().copied().map(Some).collect(),
        None => BTreeSet::from([None]),
    };
    let mut nodes: Vec<u32> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let parent = node.parent.map(|parent| nodes[parent]);
        let number = text.node(region, &tree.frame(at).name, parent)?;
        nodes.push(number);
        // Readers want a record of every node, also of one without values of its own.
        let nothing = |&rank| (rank, vec![0; tree.metrics.len()]);
        let mut sums: BTreeMap<Option<u32>, Vec<u64>> = whose.iter().map(nothing).collect();
        for (&thread, values) in &node.own {
            let rank = ranks.as_ref().map(|r| r[tree.threads[thread].process]);
            let of_rank = sums.entry(rank).or_insert_with(|| vec![0; values.len()]);
            of_rank
                .iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
        for (rank, values) in sums {
            write!(text.out, "__rec=ctx,ref={number},attr={attributes},data=")?;
            let mut columns: Vec<String> = rank.iter().map(u32::to_string).collect();
            for (metric, value) in tree.metrics.iter().zip(values) {
                columns.push(match metric.quantity {
                    Quantity::Time => (value as f64 / 1e9).to_string(),
                    Quantity::Visits | Quantity::Event => value.to_string(),
                });
            }
            writeln!(text.out, "{}", columns.join("="))?;
        }
    }
    Ok(())
}

/// Below are nodes that all readers have.
const FIRST: u32 = 19;

/// Attributes of attributes.
const NAME: u32 = 8;
const PROPERTIES: u32 = 10;

struct Text<'o> {
    out: &'o mut dyn Write,
    /// Number of the last node.
    last: u32,
}

impl Text<'_> {
    /// Writes a node, and returns its number.
    fn node(&mut self, attribute: u32, data: &str, parent: Option<u32>) -> io::Result<u32> {
        self.last += 1;
        let (id, data) = (self.last, escaped(data));
        write!(self.out, "__rec=node,id={id},attr={attribute},data={data}")?;
        match parent {
            Some(parent) => writeln!(self.out, ",parent={parent}")?,
            None => writeln!(self.out)?,
        }
        Ok(id)
    }

    /// Writes an attribute, which is two nodes below its type.
    fn attribute(&mut self, name: &str, kind: u32, properties: u32) -> io::Result<u32> {
        let node = self.node(PROPERTIES, &properties.to_string(), Some(kind))?;
        self.node(NAME, name, Some(node))
    }
}

/// A text without the signs of the format.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(if c.is_control() { ' ' } else { c });
    }
    escaped
}
