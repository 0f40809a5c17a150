//! The flags of comparisons and results, for numbers of 1 to 8 bytes.

use iced_x86::ConditionCode;

#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    pub carry: bool,
    zero: bool,
    sign: bool,
    overflow: bool,
}

pub(super) fn mask(size: usize) -> u64 {
    match size {
        1 => 0xff,
        2 => 0xffff,
        4 => 0xffff_ffff,
        _ => !0,
    }
}

pub(super) fn is_negative(value: u64, size: usize) -> bool {
    value >> (size * 8 - 1) & 1 == 1
}

impl Flags {
    pub(super) fn of(result: u64, size: usize) -> Flags {
        let result = result & mask(size);
        Flags {
            carry: false,
            zero: result == 0,
            sign: is_negative(result, size),
            overflow: false,
        }
    }

    /// Of a difference.
    pub(super) fn less(a: u64, b: u64, size: usize) -> Flags {
        let (a, b) = (a & mask(size), b & mask(size));
        let result = a.wrapping_sub(b);
        Flags {
            carry: a < b,
            overflow: is_negative((a ^ b) & (a ^ result), size),
            ..Flags::of(result, size)
        }
    }

    pub(super) fn holds(self, condition: ConditionCode) -> Option<bool> {
        use ConditionCode as C;
        let less = self.sign != self.overflow;
        Some(match condition {
            C::b => self.carry,
            C::ae => !self.carry,
            C::be => self.carry || self.zero,
            C::a => !self.carry && !self.zero,
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
