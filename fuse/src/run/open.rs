//! Whether a process that did not tell its end had constructs that went on then.

use super::nodes::NodeSet;
use ompfuse_format::Construct;
use ompfuse_format::record::{Record, ThreadFile};

/// Whether some construct on record has no end. Constructs that nothing refers to are on record when they end only.
pub(super) fn has_open<'a, 'b: 'a>(
    threads: impl Iterator<Item = &'a ThreadFile<'b>> + Clone,
) -> bool {
    let mut ended = NodeSet::new(1 << 16);
    for record in threads.clone().flat_map(ThreadFile::records) {
        if let Ok(Record::Interval(interval)) = record {
            ended.insert(interval.node);
        }
    }
    let mut records = threads.flat_map(ThreadFile::records);
    records.any(|record| match record {
        Ok(Record::Node(node)) => {
            node.construct != Construct::Program && !ended.contains(node.node)
        }
        _ => false,
    })
}
