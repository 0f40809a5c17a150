//! What is known of a register or stack slot.

use super::slots::{Slot, Slots};
use iced_x86::Register;
use ompfuse_patterns::Query;

/// An abstract value. Values from a division carry the address of the dividing instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing is known.
    Unknown,
    /// A constant or an address in the module.
    Const(u64),
    /// The address of a place on the stack.
    Stack(Slot),
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

    /// Whether it is the result of a query, or computed from one.
    pub(crate) fn is_queried(self) -> bool {
        self.is_from_thread()
            || self.is_from_threads()
            || self.division().is_some()
            || matches!(self, Value::Query(_))
    }

    /// Whether it is the thread's number (or the team's), or computed from it without a division.
    pub(crate) fn is_from_thread(self) -> bool {
        matches!(
            self,
            Value::FromThread | Value::FromBoth | Value::Query(Query::ThreadNum | Query::TeamNum)
        )
    }

    /// Whether it is the number of threads (or teams) or a multiple of it.
    pub(crate) fn is_from_threads(self) -> bool {
        matches!(
            self,
            Value::FromThreads
                | Value::FromBoth
                | Value::Query(Query::NumThreads | Query::NumTeams)
        )
    }

    /// Whether a load of `size` bytes from a place in which `stored` were put gives it. gcc reads numbers of one or two bytes,
    /// which it keeps on the stack, with what lies behind them, and looks at the lower part only.
    pub(crate) fn is_loaded(self, size: usize, stored: usize) -> bool {
        size <= stored || stored < 4 && size <= 4 && self.is_queried()
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

    /// The same, where it may be known of the paths which thread's they are ([`State::thread`]): then a constant stands for that number,
    /// or for what the others compute from theirs.
    pub(super) fn meet_of(self, mine: Option<u32>, other: Value, theirs: Option<u32>) -> Value {
        match (self, other) {
            (value, Value::Const(c)) | (Value::Const(c), value) if value.is_from_thread() => {
                let known = match other {
                    Value::Const(_) => theirs,
                    _ => mine,
                };
                match (known, value) {
                    (None, _) => self.meet(other),
                    (Some(n), Value::Query(_)) if c != u64::from(n) => Value::FromThread,
                    (Some(_), value) => value,
                }
            }
            _ => self.meet(other),
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

/// The number of a general register, of any width but the second byte's.
pub(crate) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    (full.is_gpr64() && !is_high_byte(register)).then(|| full.number())
}

fn is_high_byte(register: Register) -> bool {
    matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    )
}

/// The values of the general registers, by x86 number (rax 0 ... r15 15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Regs {
    all: [Value; 16],
    /// Those of which something is known, a bit for each: few.
    known: u16,
}

impl Regs {
    /// A register's value.
    pub(crate) fn get(&self, n: usize) -> Value {
        self.all[n & 15]
    }

    /// Gives a register a value.
    pub(crate) fn set(&mut self, n: usize, value: Value) {
        let n = n & 15;
        let bit = u16::from(value != Value::Unknown) << n;
        self.known = self.known & !(1 << n) | bit;
        self.all[n] = value;
    }

    /// The place that a register points to.
    pub(crate) fn slot(&self, n: usize) -> Option<Slot> {
        match self.get(n) {
            Value::Stack(at) => Some(at),
            _ => None,
        }
    }

    /// Forgets the values of registers, a bit for each.
    pub(crate) fn forget_all(&mut self, set: u16) {
        for n in bits(set & self.known) {
            self.all[n] = Value::Unknown;
        }
        self.known &= !set;
    }

    /// Keeps what holds in both; tells whether that is less than before. `threads`: whose paths they are, if it is known.
    fn meet(&mut self, other: &Regs, threads: Threads) -> bool {
        let mut changed = false;
        for n in bits(self.known) {
            let (mine, other) = (self.all[n], other.all[n]);
            if mine != other {
                let met = mine.meet_of(threads.0, other, threads.1);
                changed |= met != mine;
                self.set(n, met);
            }
        }
        changed
    }
}

/// The numbers of the bits that are set.
fn bits(set: u16) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let n = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (n < 16).then_some(n)
    })
}

/// The threads that alone come here, and from elsewhere, where that is known ([`State::thread`]).
pub(super) type Threads = (Option<u32>, Option<u32>);

/// Registers and stack slots at one point of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub regs: Regs,
    /// Known places on the stack.
    pub slots: Slots,
    /// Only the thread with this number comes here: it was compared with a constant.
    pub thread: Option<u32>,
}

impl State {
    /// At the beginning of a function.
    pub(crate) fn entry() -> State {
        let mut state = State::unknown();
        state.regs.set(4, Value::Stack(Slot::base(0)));
        state
    }

    /// Nothing is known.
    pub(crate) fn unknown() -> State {
        State {
            regs: Regs {
                all: [Value::Unknown; 16],
                known: 0,
            },
            slots: Slots::default(),
            thread: None,
        }
    }

    /// A register's value, by x86 number.
    pub(crate) fn reg(&self, n: usize) -> Value {
        self.regs.get(n)
    }

    /// Whether a register, or a place on the stack, holds the result of a query, or what was computed from one.
    pub(crate) fn is_queried(&self) -> bool {
        let mut all = self.regs.all.iter().copied().chain(self.slots.values());
        all.any(Value::is_queried)
    }

    /// Two divisions whose quotients meet here, and whose remainders do too: lower address first.
    pub(crate) fn merged_divisions(&self, other: &State) -> Option<(u64, u64)> {
        let pairs = || (0..16).map(|n| (self.reg(n), other.reg(n)));
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
        let threads = (self.thread, other.thread);
        let changed = self.regs.meet(&other.regs, threads);
        self.thread = self.thread.filter(|_| threads.0 == threads.1);
        self.slots.meet(&other.slots, threads) | changed | (self.thread != threads.0)
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
        let zero = Value::Const(0);
        assert_eq!(tid.meet_of(None, zero, Some(0)), tid);
        assert_eq!(zero.meet_of(Some(0), tid, None), tid);
        assert_eq!(zero.meet_of(None, tid, Some(0)), Value::Unknown);
        let one = Value::Const(1);
        assert_eq!(tid.meet_of(None, one, Some(0)), Value::FromThread);
        assert_eq!(tid.meet_of(None, one, Some(1)), tid);
        let start = Value::FromThread;
        assert_eq!(start.meet_of(None, one, Some(1)), start);
        assert_eq!(start.meet_of(None, one, None), Value::Unknown);
        assert_eq!(tid.combine(Value::Unknown), Value::FromThread);
        assert_eq!(tid.combine(Value::Quotient(3)), Value::Derived(3));
    }

    #[test]
    fn meeting_never_learns() {
        let below = |by: i64| Slot::base(0).plus(-by).unwrap();
        let mut a = State::entry();
        a.slots.insert(below(8), Value::Const(1), 8);
        let mut b = State::entry();
        b.slots.insert(below(16), Value::Const(1), 8);
        assert!(a.meet(&b));
        assert_eq!(a.slots, Slots::default());
        assert!(!a.meet(&b));
    }
}
