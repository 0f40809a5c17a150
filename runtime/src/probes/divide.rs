//! Divisions of a probe: by a loop's increment, or the size of a team. Both are mostly powers of two, and a shift will do.

/// `value / by`, where `by` is not 0.
#[inline]
pub(super) fn divide(value: u64, by: u64) -> u64 {
    if by & by.wrapping_sub(1) == 0 {
        value >> by.trailing_zeros()
    } else {
        divide_slowly(value, by)
    }
}

/// As [`divide`], rounded up.
#[inline]
pub(super) fn divide_up(value: u64, by: u64) -> u64 {
    let quotient = divide(value, by);
    quotient + u64::from(quotient.wrapping_mul(by) < value)
}

/// As [`divide`] of numbers with a sign: towards 0, and the smallest number by -1 is itself.
#[inline]
pub(super) fn divide_signed(value: i64, by: i64) -> i64 {
    let quotient = divide(value.unsigned_abs(), by.unsigned_abs());
    if (value < 0) == (by < 0) {
        quotient as i64
    } else {
        quotient.wrapping_neg() as i64
    }
}

#[cold]
#[inline(never)]
fn divide_slowly(value: u64, by: u64) -> u64 {
    value.checked_div(by).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_those_of_the_language() {
        let numbers = [
            0,
            1,
            2,
            3,
            7,
            8,
            9,
            1 << 40,
            (1 << 40) + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        for value in numbers {
            for by in numbers.into_iter().filter(|&by| by > 0) {
                assert_eq!(divide(value, by), value / by);
                assert_eq!(divide_up(value, by), value.div_ceil(by));
                let (value, by) = (value as i64, by as i64);
                assert_eq!(divide_signed(value, by), value.wrapping_div(by));
                assert_eq!(divide_signed(i64::MIN, by), i64::MIN.wrapping_div(by));
            }
        }
    }
}
