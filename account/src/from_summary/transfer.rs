//! What calls of MPI handed over, by thread.

use super::NS;
use crate::model::{LateSender, Transfer};
use ompfuse_fuse::run::MessageStat;
use ompfuse_fuse::summary::Summary;

/// Of one place and one thread, a position in [`Summary::accounts`].
pub(super) fn of_thread(summary: &Summary, site: u32, thread: u32) -> Option<Transfer> {
    let account = summary.accounts.get(thread as usize)?;
    let is_it =
        |m: &&MessageStat| (m.site, m.process, m.thread) == (site, account.process, account.index);
    let found = summary.messages.iter().filter(is_it).map(transfer);
    found.reduce(|mut sum, more| {
        sum.add(&more);
        sum
    })
}

fn transfer(stat: &MessageStat) -> Transfer {
    let mut sum = Transfer::default();
    sum.add(&Transfer {
        calls: stat.calls,
        bytes_out: stat.bytes_out,
        bytes_in: stat.bytes_in,
        calls_out: stat.sending,
        calls_in: stat.receiving,
        bounded_calls: stat.bounded,
        bytes_at_most: stat.bytes_at_most,
        unknown_calls: stat.unknown,
        late_sender: stat.matched.map(|m| LateSender {
            receives: m.receives,
            late: m.late,
            late_s: m.late_ns as f64 * NS,
        }),
        ..Transfer::default()
    });
    sum
}
