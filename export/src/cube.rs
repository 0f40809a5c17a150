//! CUBE4 (`.cubex`), which Cube, Scalasca's tools and Extra-P read: an archive of a description (`anchor.xml`), and for each metric an index
//! of its rows and the rows themselves, with a value for each thread.
//!
//! All metrics are written as exclusive ones. Their rows are numbered by the call tree, depth first; inclusive ones would have
//! another order.

mod anchor;

use crate::calltree::{CallTree, Quantity};
use std::io::{self, Write};

/// Writes a profile. Times are seconds.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, tree: &CallTree) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    let order = locations(tree);
    add(&mut archive, "anchor.xml", &anchor::anchor(tree, &order)?)?;
    for metric in 0..tree.metrics.len() {
        let (index, data) = rows(tree, metric, &order);
        add(&mut archive, &format!("{metric}.index"), &index)?;
        add(&mut archive, &format!("{metric}.data"), &data)?;
    }
    archive.finish()
}

/// The threads in the order of locations, by host and process: a location's number is its position here, and in rows.
fn locations(tree: &CallTree) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tree.threads.len()).collect();
    let host = |thread: usize| &tree.processes[tree.threads[thread].process].host;
    order.sort_by_key(|&thread| (host(thread), thread));
    order
}

/// Adds a file. It has no owner and no date, so that the same profile gives the same bytes.
fn add(archive: &mut tar::Builder<&mut dyn Write>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, bytes)
}

/// Byte order, version and type of an index.
const INDEX: &[u8] = b"CUBEX.INDEX\x01\0\0\0\0\0\0";

/// The index and the rows of a metric. Rows that are zero are left out, but the program's: readers want one at least.
fn rows(tree: &CallTree, metric: usize, order: &[usize]) -> (Vec<u8>, Vec<u8>) {
    let quantity = tree.metrics[metric].quantity;
    let (mut count, mut list, mut data) = (0_u32, vec![], b"CUBEX.DATA".to_vec());
    for (at, node) in tree.nodes.iter().enumerate() {
        if at > 0 && node.own.values().all(|values| values[metric] == 0) {
            continue;
        }
        count += 1;
        list.extend((at as u32).to_le_bytes());
        for thread in order {
            let value = node.own.get(thread).map_or(0, |values| values[metric]);
            data.extend(match quantity {
                Quantity::Time => (value as f64 * 1e-9).to_le_bytes(),
                Quantity::Visits | Quantity::Event => value.to_le_bytes(),
            });
        }
    }
    let mut index = INDEX.to_vec();
    index.extend(count.to_le_bytes());
    index.extend(list);
    (index, data)
}
