//! What calls of MPI hand over: a record for each call, or for each place where only sums are kept.

use super::Thread;
use core::cell::Cell;
use ompfuse_format::record::message::{self, Message};
use zerocopy::FromZeros;

/// Places of calls whose sums a thread keeps at once; where there are more, a record is written now and then.
pub(super) const MAX_PLACES: usize = 64;

/// The calls at one site. All-zero: of none.
#[derive(Debug, FromZeros)]
pub(super) struct Sum {
    site: Cell<u32>,
    calls: Cell<u32>,
    bounded: Cell<u32>,
    unknown: Cell<u64>,
    bytes: [Cell<u64>; 3],
}

impl Sum {
    /// Adds a message; false: that is too much for one record.
    fn add(&self, m: &Message) -> bool {
        let Some(calls) = self.calls.get().checked_add(m.calls) else {
            return false;
        };
        self.site.set(m.site);
        self.calls.set(calls);
        self.bounded.set(self.bounded.get() + m.bounded);
        self.unknown.set(self.unknown.get() + m.unknown);
        let more = [m.bytes_out, m.bytes_in, m.bytes_at_most];
        for (sum, more) in self.bytes.iter().zip(more) {
            sum.set(sum.get().saturating_add(more));
        }
        true
    }

    /// The sum, which begins anew.
    fn take(&self) -> Message {
        let [bytes_out, bytes_in, bytes_at_most] = self.bytes.each_ref().map(Cell::take);
        Message {
            site: self.site.get(),
            calls: self.calls.take(),
            bounded: self.bounded.take(),
            unknown: self.unknown.take(),
            bytes_out,
            bytes_in,
            bytes_at_most,
            partner: None,
        }
    }
}

impl Thread {
    /// Whether it is recorded what calls at a site hand over.
    pub(crate) fn keeps_messages(&self, site: u32) -> bool {
        !self.is_off(site) && !self.is_gone()
    }

    /// Whether records have partners.
    pub(crate) fn keeps_partners(&self) -> bool {
        !self.keeps_sums_only()
    }

    /// Records what a call handed over.
    pub(crate) fn add_message(&self, message: &Message) {
        if !self.keeps_sums_only() {
            return self.write_message(message);
        }
        let Some(sum) = self.messages.get(message.site as usize % MAX_PLACES) else {
            return;
        };
        let is_others = sum.calls.get() > 0 && sum.site.get() != message.site;
        if is_others || !sum.add(message) {
            self.write_message(&sum.take());
            sum.add(message);
        }
    }

    /// Records sums that were kept, at the end of the thread.
    pub(super) fn tell_messages(&self) {
        for sum in self.messages.iter().filter(|s| s.calls.get() > 0) {
            self.write_message(&sum.take());
        }
    }

    fn write_message(&self, message: &Message) {
        let Some(out) = self.buffer.room(message.len()) else {
            return;
        };
        message::encode_message(message, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        let _ = self.buffer.commit(out, message.len() / 8); // a lost record is counted
    }
}
