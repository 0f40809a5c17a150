//! A thread of the simulated program: its counts, and its own caches and predictor.

use crate::branch::Predictor;
use crate::cache::Cache;
use crate::cell::Cell;
use crate::code::{Block, End};
use crate::modules::Class;
use crate::options::{LINE, Options, PAGE};
use ompfuse_format::simulated::index;

/// Who is charged at the moment.
mod charged {
    /// The program.
    pub(super) const OWN: u64 = 0;
    /// The OpenMP runtime.
    pub(super) const RUNTIME: u64 = 1;
    /// Nobody, but it is a part of what the processor does.
    pub(super) const LIBRARY: u64 = 2;
    /// Nobody, as if it weren't there.
    pub(super) const NOBODY: u64 = 3;
}

/// What the end of the last block has left to be judged by where control went.
mod pending {
    pub(super) const NOTHING: u64 = 0;
    pub(super) const CONDITIONAL: u64 = 1;
    pub(super) const INDIRECT: u64 = 2;
    pub(super) const RETURN: u64 = 3;
}

/// A thread.
#[derive(Debug)]
pub struct Vcpu {
    counts: [Cell; index::COUNT],
    /// Whom code is charged to that belongs to whoever calls it.
    caller: Cell,
    /// Who is charged.
    now: Cell,
    /// How the last block ended, where, and an address: the next one, or the predicted one.
    pending: Cell,
    pending_at: Cell,
    pending_address: Cell,
    /// The repeated instruction that is being executed.
    repeated: Cell,
    libraries: bool,
    l1i: Cache,
    l1d: Cache,
    l2: Cache,
    dtlb: Cache,
    predictor: Predictor,
}

impl Vcpu {
    /// A thread that has executed nothing.
    pub fn new(options: &Options) -> Vcpu {
        Vcpu {
            counts: [const { Cell::new(0) }; index::COUNT],
            caller: Cell::new(charged::OWN),
            now: Cell::new(charged::OWN),
            pending: Cell::new(pending::NOTHING),
            pending_at: Cell::new(0),
            pending_address: Cell::new(0),
            repeated: Cell::new(0),
            libraries: options.libraries,
            l1i: Cache::new(options.l1i),
            l1d: Cache::new(options.l1d),
            l2: Cache::new(options.l2),
            dtlb: Cache::new(options.dtlb),
            predictor: Predictor::new(options.history),
        }
    }

    /// Another thread begins: it finds caches and predictor empty.
    pub fn clear(&self) {
        [&self.l1i, &self.l1d, &self.l2, &self.dtlb]
            .into_iter()
            .for_each(Cache::clear);
        self.predictor.clear();
    }

    /// The counts, in the order of the events.
    pub fn counts(&self) -> [u64; index::COUNT] {
        core::array::from_fn(|event| self.counts[event].get())
    }

    #[inline(always)]
    fn count(&self, event: usize, n: u64) {
        self.counts[event].add(n);
    }

    /// A block is entered, and will be executed to its end. True if the counts stand still from here on: the runtime library
    /// may read them.
    #[inline]
    pub fn enter(&self, block: &Block) -> bool {
        let now = match block.class {
            Class::Own => charged::OWN,
            Class::OpenMp => charged::RUNTIME,
            Class::Shared if self.caller.get() == charged::OWN && !self.libraries => {
                charged::LIBRARY
            }
            Class::Linkage | Class::Shared => self.caller.get(),
            Class::Loader | Class::Excluded => charged::NOBODY,
        };
        if self.pending.get() != pending::NOTHING {
            self.judge(block.start, now);
        }
        if matches!(block.class, Class::Own | Class::OpenMp | Class::Excluded) {
            self.caller.set(now);
        }
        let before = self.now.replace(now);
        if now == charged::NOBODY {
            self.repeated.set(0);
            return before != charged::NOBODY;
        }
        // The simulator enters a repeated instruction once per round; it is one instruction.
        let again = block.only_repeated && self.repeated.get() == block.start;
        self.repeated.set(block.repeated);
        if again {
            return false;
        }
        if now == charged::OWN {
            for &(event, n) in &block.counts {
                self.count(usize::from(event), u64::from(n));
            }
        } else if now == charged::RUNTIME {
            self.count(index::RUNTIME_INSTRUCTIONS, u64::from(block.instructions));
        }
        for line in block.lines.clone() {
            if !self.l1i.access(line) {
                self.missed(index::L1I_MISSES, line);
            }
        }
        self.end(block);
        false
    }

    /// Notes how a block ends.
    #[inline]
    fn end(&self, block: &Block) {
        let wait = |kind, at, address| {
            self.pending.set(kind);
            self.pending_at.set(at);
            self.pending_address.set(address);
        };
        match block.end {
            End::Fixed => {}
            End::Conditional { at, next } => wait(pending::CONDITIONAL, at, next),
            End::Call { back } => self.predictor.call(back),
            End::IndirectCall { at, back } => {
                self.predictor.call(back);
                wait(pending::INDIRECT, at, 0);
            }
            End::IndirectJump { at } => wait(pending::INDIRECT, at, 0),
            End::Return => wait(pending::RETURN, 0, self.predictor.predict_return()),
        }
    }

    /// Control has gone from the last block to `target`, where `next` is charged.
    #[inline]
    fn judge(&self, target: u64, next: u64) {
        let at = self.pending_at.get();
        let address = self.pending_address.get();
        let own = self.now.get() == charged::OWN;
        let right = match self.pending.replace(pending::NOTHING) {
            pending::CONDITIONAL => {
                let taken = target != address;
                if own && taken {
                    self.count(index::TAKEN, 1);
                }
                self.predictor.conditional(at, taken)
            }
            // Ways into code that nobody is charged for, and out of it, would not exist without us.
            _ if next == charged::NOBODY => true,
            pending::INDIRECT => self.predictor.indirect(at, target),
            _ => target == address,
        };
        if own && !right {
            self.count(index::BRANCH_MISSES, 1);
        }
    }

    /// A memory access of the block that was entered last.
    #[inline]
    pub fn access(&self, address: u64, size: u64, is_store: bool) {
        let now = self.now.get();
        if now == charged::NOBODY {
            return;
        }
        if now == charged::OWN {
            if is_store {
                self.count(index::STORES, 1);
                self.count(index::STORE_BYTES, size);
            } else {
                self.count(index::LOADS, 1);
                self.count(index::LOAD_BYTES, size);
            }
        }
        let last = address.wrapping_add(size - 1);
        for page in [address / PAGE, last / PAGE] {
            if !self.dtlb.access(page) && now == charged::OWN {
                self.count(index::DTLB_MISSES, 1);
            }
            if address / PAGE == last / PAGE {
                break;
            }
        }
        for line in address / LINE..=last / LINE {
            if !self.l1d.access(line) {
                self.missed(index::L1D_MISSES, line);
            }
        }
    }

    /// A first-level cache has missed a line.
    fn missed(&self, event: usize, line: u64) {
        let hit = self.l2.access(line);
        if self.now.get() == charged::OWN {
            self.count(event, 1);
            if !hit {
                self.count(index::L2_MISSES, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(class: Class, start: u64, code: &[u8]) -> Block {
        Block::decode(class, [(start, code)], &mut Vec::new())
    }

    fn count(vcpu: &Vcpu, event: usize) -> u64 {
        vcpu.counts()[event]
    }

    const NOP: &[u8] = &[0x90];

    #[test]
    fn everybody_is_charged_for_what_he_called() {
        let vcpu = Vcpu::new(&Options::default());
        let enter = |class| vcpu.enter(&block(class, 0x1000, NOP));
        let counts = || {
            let c = vcpu.counts();
            (c[index::INSTRUCTIONS], c[index::RUNTIME_INSTRUCTIONS])
        };
        enter(Class::Own);
        enter(Class::Shared);
        assert_eq!(counts(), (2, 0));
        enter(Class::OpenMp);
        enter(Class::Shared);
        assert_eq!(counts(), (2, 2));
        assert!(enter(Class::Excluded) && !enter(Class::Shared) && !enter(Class::Excluded));
        assert_eq!(counts(), (2, 2));
        enter(Class::Own);
        enter(Class::Loader);
        enter(Class::Shared);
        assert_eq!(counts(), (4, 2), "the loader was between");
        let options = "libraries=no".parse().unwrap();
        let vcpu = Vcpu::new(&options);
        let enter = |class| vcpu.enter(&block(class, 0x1000, NOP));
        enter(Class::Own);
        enter(Class::Shared);
        enter(Class::Linkage);
        enter(Class::OpenMp);
        enter(Class::Shared);
        let counts = vcpu.counts();
        assert_eq!(
            (
                counts[index::INSTRUCTIONS],
                counts[index::RUNTIME_INSTRUCTIONS]
            ),
            (2, 2)
        );
    }

    #[test]
    fn taken_branches_are_judged_before_the_counts_are_read() {
        let vcpu = Vcpu::new(&Options::default());
        let jump = block(Class::Own, 0x1000, &[0x75, 0x10]);
        vcpu.enter(&jump);
        assert!(vcpu.enter(&block(Class::Excluded, 0x1012, NOP)));
        assert_eq!(count(&vcpu, index::TAKEN), 1);
        vcpu.enter(&jump);
        vcpu.enter(&block(Class::Own, 0x1002, NOP));
        assert_eq!(count(&vcpu, index::TAKEN), 1);
        assert_eq!(count(&vcpu, index::BRANCHES), 2);
    }

    #[test]
    fn returns_are_predicted() {
        let vcpu = Vcpu::new(&Options::default());
        for _ in 0..3 {
            vcpu.enter(&block(Class::Own, 0x1000, &[0xe8, 0, 0, 0, 0]));
            vcpu.enter(&block(Class::Own, 0x2000, &[0xc3]));
            vcpu.enter(&block(Class::Own, 0x1005, NOP));
        }
        assert_eq!(count(&vcpu, index::BRANCH_MISSES), 0);
        assert_eq!(
            (count(&vcpu, index::CALLS), count(&vcpu, index::RETURNS)),
            (3, 3)
        );
        vcpu.enter(&block(Class::Own, 0x2000, &[0xc3]));
        vcpu.enter(&block(Class::Own, 0x3000, NOP));
        assert_eq!(count(&vcpu, index::BRANCH_MISSES), 1);
    }

    #[test]
    fn a_repeated_instruction_is_one() {
        let vcpu = Vcpu::new(&Options::default());
        let movs = block(Class::Own, 0x1000, &[0xf3, 0xa4]);
        for _ in 0..10 {
            vcpu.enter(&movs);
            vcpu.access(0x5000, 1, false);
        }
        vcpu.enter(&block(Class::Own, 0x1002, NOP));
        assert_eq!(count(&vcpu, index::INSTRUCTIONS), 2);
        assert_eq!(count(&vcpu, index::LOADS), 10);
    }

    #[test]
    fn accesses_are_counted_where_they_fall() {
        let vcpu = Vcpu::new(&Options::default());
        vcpu.enter(&block(Class::Own, 0x1000, NOP));
        vcpu.access(0x5ffc, 8, true); // over the end of a page
        vcpu.access(0x5ff8, 4, false);
        let counts = vcpu.counts();
        assert_eq!(counts[index::STORE_BYTES], 8);
        assert_eq!(counts[index::LOAD_BYTES], 4);
        assert_eq!(counts[index::L1D_MISSES], 2);
        assert_eq!(counts[index::DTLB_MISSES], 2);
        assert_eq!(counts[index::L2_MISSES], 3, "the instructions' line too");
        vcpu.enter(&block(Class::OpenMp, 0x9000, NOP));
        vcpu.access(0x7000, 8, true);
        assert_eq!(
            count(&vcpu, index::STORES),
            1,
            "the runtime's own are nobody's"
        );
    }
}
