//! The flags of comparisons and results, for numbers of 1 to 8 bytes.

use iced_x86::ConditionCode;

/// What is known of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    pub carry: Option<bool>,
    zero: bool,
    sign: bool,
    overflow: bool,
}

/// The bits of a number of so many bytes.
pub(crate) fn mask(size: usize) -> u64 {
    match size {
        1 => 0xff,
        2 => 0xffff,
        4 => 0xffff_ffff,
        _ => !0,
    }
}

fn is_negative(value: u64, size: usize) -> bool {
    value >> (size * 8 - 1) & 1 == 1
}

impl Flags {
    /// Of a result that can't overflow.
    pub(crate) fn of(result: u64, size: usize) -> Flags {
        let result = result & mask(size);
        Flags {
            carry: Some(false),
            zero: result == 0,
            sign: is_negative(result, size),
            overflow: false,
        }
    }

    /// Of a difference.
    pub(crate) fn of_difference(a: u64, b: u64, size: usize) -> Flags {
        let (a, b) = (a & mask(size), b & mask(size));
        let result = a.wrapping_sub(b);
        Flags {
            carry: Some(a < b),
            overflow: is_negative((a ^ b) & (a ^ result), size),
            ..Flags::of(result, size)
        }
    }

    /// Whether a condition holds.
    pub(crate) fn holds(self, condition: ConditionCode) -> Option<bool> {
        use ConditionCode as C;
        let less = self.sign != self.overflow;
        Some(match condition {
            C::b => self.carry?,
            C::ae => !self.carry?,
            C::be => self.zero || self.carry?,
            C::a => !self.zero && !self.carry?,
            C::e => self.zero,
            C::ne => !self.zero,
            C::l => less,
            C::ge => !less,
            C::le => less || self.zero,
            C::g => !less && !self.zero,
            C::s => self.sign,
            C::ns => !self.sign,
            _ => return None,
        })
    }
}
