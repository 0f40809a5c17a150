//! What is known of a register or stack slot.

use ompfuse_patterns::Query;
use std::rc::Rc;

/// An abstract value. Values from a division carry the address of the dividing instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing is known.
    Unknown,
    /// A constant or an address in the module.
    Const(u64),
    /// The stack pointer at the function's beginning (`base` 0) or behind the realignment at address `base`, plus `offset`.
    Stack { base: u64, offset: i64 },
    /// A result of one of the runtime's query functions.
    Query(Query),
    /// The address of the runtime function with this number, loaded from a slot.
    Callee(usize),
    /// The result of the call at this address.
    Result(u64),
    /// A quotient by the number of threads; the address of the `div` instruction.
    Quotient(u64),
    /// A remainder of that division.
    Remainder(u64),
    /// Computed from one division's results.
    Derived(u64),
    /// Computed from the thread number, but not from a division.
    FromThread,
    /// Computed from the number of threads, but neither from the thread number nor from a division.
    FromThreads,
    /// Computed from both, but not from a division.
    FromBoth,
}

impl Value {
    /// The division that the value was computed from.
    pub(crate) fn division(self) -> Option<u64> {
        match self {
            Value::Quotient(d) | Value::Remainder(d) | Value::Derived(d) => Some(d),
            _ => None,
        }
    }

    /// Whether it is the thread's number, or computed from it without a division.
    pub(crate) fn is_from_thread(self) -> bool {
        matches!(
            self,
            Value::FromThread | Value::FromBoth | Value::Query(Query::ThreadNum)
        )
    }

    /// Whether it is the number of threads or a multiple of it.
    pub(crate) fn is_from_threads(self) -> bool {
        matches!(
            self,
            Value::FromThreads | Value::FromBoth | Value::Query(Query::NumThreads)
        )
    }

    /// What holds where two paths meet.
    pub(crate) fn meet(self, other: Value) -> Value {
        if self == other {
            return self;
        }
        match (self.division(), other.division()) {
            (Some(a), Some(b)) if a == b => return Value::Derived(a),
            (Some(d), None) if matches!(other, Value::Const(_)) => return Value::Derived(d),
            (None, Some(d)) if matches!(self, Value::Const(_)) => return Value::Derived(d),
            _ => {}
        }
        match (self.origin(), other.origin()) {
            ((false, false), _) | (_, (false, false)) => Value::Unknown,
            (a, b) => Value::of_origin(a.0 || b.0, a.1 || b.1),
        }
    }

    /// Whether it comes from the thread's number, and whether from the number of threads.
    fn origin(self) -> (bool, bool) {
        (self.is_from_thread(), self.is_from_threads())
    }

    fn of_origin(thread: bool, threads: bool) -> Value {
        match (thread, threads) {
            (true, true) => Value::FromBoth,
            (true, false) => Value::FromThread,
            (false, true) => Value::FromThreads,
            (false, false) => Value::Unknown,
        }
    }

    /// The result of an arithmetic instruction on two values (constants are the caller's business).
    pub(crate) fn combine(self, other: Value) -> Value {
        let division = match (self.division(), other.division()) {
            (Some(a), Some(b)) if a != b => return Value::Unknown,
            (Some(d), _) | (_, Some(d)) => Some(d),
            _ => None,
        };
        if let Some(d) = division {
            return Value::Derived(d);
        }
        let (a, b) = (self.origin(), other.origin());
        Value::of_origin(a.0 || b.0, a.1 || b.1)
    }
}

/// A place on the stack: base and offset as in [`Value::Stack`].
pub(crate) type Slot = (u64, i64);

/// Registers and stack slots at one point of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// By x86 number (rax 0 ... r15 15).
    pub regs: [Value; 16],
    /// Known places on the stack.
    pub slots: Slots,
}

/// What is known of 4- or 8-byte places on the stack. Copies share memory until one of them changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Slots(Rc<Vec<(Slot, Value, usize)>>);

impl Slots {
    fn find(&self, at: Slot) -> Result<usize, usize> {
        self.0.binary_search_by_key(&at, |s| s.0)
    }

    /// The value that begins exactly here, and its size.
    pub(crate) fn get(&self, at: Slot) -> Option<(Value, usize)> {
        let &(_, value, size) = &self.0[self.find(at).ok()?];
        Some((value, size))
    }

    /// Remembers a value.
    pub(crate) fn insert(&mut self, at: Slot, value: Value, size: usize) {
        match self.find(at) {
            Ok(i) if self.0[i] == (at, value, size) => {}
            Ok(i) => Rc::make_mut(&mut self.0)[i] = (at, value, size),
            Err(i) => Rc::make_mut(&mut self.0).insert(i, (at, value, size)),
        }
    }

    /// Forgets what a store of `size` bytes may change.
    pub(crate) fn forget(&mut self, (base, offset): Slot, size: i64) {
        // Nothing is longer than 8 bytes.
        let first = self
            .0
            .partition_point(|s| s.0 < (base, offset.saturating_sub(7)));
        let end = self
            .0
            .partition_point(|s| s.0 < (base, offset.saturating_add(size)));
        let changed = |s: &(Slot, Value, usize)| s.0.1.saturating_add(s.2 as i64) > offset;
        if first < end && self.0[first..end].iter().any(changed) {
            let slots = Rc::make_mut(&mut self.0);
            let mut n = 0;
            slots.retain(|s| {
                let inside = (first..end).contains(&n);
                n += 1;
                !(inside && changed(s))
            });
        }
    }

    /// Keeps what holds in both; tells whether that is less than before.
    fn meet(&mut self, other: &Slots) -> bool {
        if Rc::ptr_eq(&self.0, &other.0) || self.0.is_empty() {
            return false;
        }
        let met = |mine: &(Slot, Value, usize)| {
            let (theirs, size) = other.get(mine.0)?;
            let value = mine.1.meet(theirs);
            (value != Value::Unknown).then_some((mine.0, value, mine.2.min(size)))
        };
        if self.0.iter().all(|s| met(s).as_ref() == Some(s)) {
            return false;
        }
        self.0 = Rc::new(self.0.iter().filter_map(met).collect());
        true
    }
}

impl State {
    /// At the beginning of a function.
    pub(crate) fn entry() -> State {
        let mut state = State::unknown();
        state.regs[4] = Value::Stack { base: 0, offset: 0 };
        state
    }

    /// Nothing is known.
    pub(crate) fn unknown() -> State {
        State {
            regs: [Value::Unknown; 16],
            slots: Slots::default(),
        }
    }

    /// Two divisions whose quotients meet here, and whose remainders do too: lower address first.
    pub(crate) fn merged_divisions(&self, other: &State) -> Option<(u64, u64)> {
        let pairs = || self.regs.iter().copied().zip(other.regs);
        pairs().find_map(|values| {
            let (Value::Quotient(a), Value::Quotient(b)) = values else {
                return None;
            };
            let remainders = (Value::Remainder(a), Value::Remainder(b));
            (a != b && pairs().any(|p| p == remainders)).then_some((a.min(b), a.max(b)))
        })
    }

    /// Keeps what holds in both; tells whether that is less than before.
    pub(crate) fn meet(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.regs.iter_mut().zip(other.regs) {
            let met = mine.meet(theirs);
            changed |= met != *mine;
            *mine = met;
        }
        self.slots.meet(&other.slots) | changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_paths_meet() {
        let tid = Value::Query(Query::ThreadNum);
        assert_eq!(Value::Remainder(1).meet(Value::Const(0)), Value::Derived(1));
        assert_eq!(Value::Quotient(1).meet(Value::Quotient(2)), Value::Unknown);
        assert_eq!(tid.meet(tid), tid);
        assert_eq!(tid.meet(Value::Const(0)), Value::Unknown);
        assert_eq!(tid.combine(Value::Unknown), Value::FromThread);
        assert_eq!(tid.combine(Value::Quotient(3)), Value::Derived(3));
    }

    #[test]
    fn meeting_never_learns() {
        let mut a = State::entry();
        a.slots.insert((0, -8), Value::Const(1), 8);
        let mut b = State::entry();
        b.slots.insert((0, -16), Value::Const(1), 8);
        assert!(a.meet(&b));
        assert_eq!(a.slots, Slots::default());
        assert!(!a.meet(&b));
    }
}
