//! Log-linear histograms: which bucket a number is in.

/// Buckets of an octave, as a power of two: a bucket is at most an eighth wider than its least number.
const SUB: u32 = 3;
/// The first octave with a number of its own that isn't counted apart any more: what is larger is in the last bucket.
const OCTAVES: u32 = 41;
/// Buckets of a histogram: 0 to 7 one by one, then eight for each octave up to 2^41 (twelve minutes at 3 GHz).
pub const BUCKETS: usize = ((OCTAVES - SUB + 1) as usize) << SUB;

/// The bucket of a number.
#[inline(always)]
pub const fn bucket_of(value: u64) -> usize {
    let octave = 63 - (value | 1).leading_zeros();
    if octave < SUB {
        return value as usize;
    }
    let at = (((octave - SUB + 1) as usize) << SUB)
        + ((value >> (octave - SUB)) as usize & ((1 << SUB) - 1));
    if at < BUCKETS { at } else { BUCKETS - 1 }
}

/// The least number of a bucket, and the least one behind it; of the last bucket `u64::MAX`.
pub const fn bounds_of(bucket: usize) -> (u64, u64) {
    const fn least(bucket: usize) -> u64 {
        if bucket < 1 << SUB {
            return bucket as u64;
        }
        let octave = (bucket >> SUB) as u32 - 1;
        ((1 << SUB) + (bucket & ((1 << SUB) - 1)) as u64) << octave
    }
    if bucket + 1 >= BUCKETS {
        return (least(BUCKETS - 1), u64::MAX);
    }
    (least(bucket), least(bucket + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_in_its_bucket(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let (least, behind) = bounds_of(bucket_of(value));
            prop_assert!(least <= value && (value < behind || behind == u64::MAX));
        }
    }

    #[test]
    fn buckets_are_one_behind_the_other_and_narrow() {
        for bucket in 0..BUCKETS - 1 {
            let (least, behind) = bounds_of(bucket);
            assert_eq!(behind, bounds_of(bucket + 1).0);
            assert!(8 * (behind - least) <= least.max(8), "{least} to {behind}");
            assert_eq!((bucket_of(least), bucket_of(behind - 1)), (bucket, bucket));
        }
        assert_eq!(bounds_of(BUCKETS - 1).1, u64::MAX);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}
