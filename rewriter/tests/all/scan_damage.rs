//! Damaged files: whatever is in them, scanning ends with a result or an error.

use crate::scan_support::{HEADER, compile};
use ompfuse_rewriter::{scan, self_description};
use proptest::prelude::*;
use std::sync::LazyLock;

static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let source = format!(
        "{HEADER} void f(int); int main(int n, char **v) {{
#pragma omp parallel
  {{
#pragma omp for
    for (int i = 0; i < n; i++) {{ a[i] += 1; if (i == 7) f(i); }}
#pragma omp master
    switch (n) {{ case 1: f(3); break; case 2: f(4); break; case 3: f(9); break;
      case 4: f(5); break; case 5: f(6); break; case 6: f(2); break; case 7: pre(); }}
#pragma omp single
    f(2);
  }}
}}
void f(int i) {{ a[i] = i; }}"
    );
    ["gcc -fopenmp -O2 -g", "gcc -fopenmp -O0 -s"]
        .iter()
        .filter_map(|command| compile(&source, command))
        .map(|p| p.bytes)
        .collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anywhere(
        seed in 0usize..2,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut bytes = SEEDS[seed].clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = scan(&bytes, "damaged");
        let _ = self_description(&bytes, "x");
    }

    #[test]
    fn in_headers_and_tables(
        seed in 0usize..2,
        edits in prop::collection::vec(
            (0usize..0x800, prop_oneof![any::<u8>(), Just(0xff), Just(0), Just(0x7f)]),
            1..8
        ),
    ) {
        let mut bytes = SEEDS[seed].clone();
        for (at, value) in edits {
            bytes[at] = value;
        }
        let _ = scan(&bytes, "damaged");
    }

    #[test]
    fn words_in_the_end_of_the_file(
        seed in 0usize..2,
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![any::<u64>(), Just(u64::MAX), Just(1u64 << 63), 0u64..0x6000]),
            1..12
        ),
    ) {
        let mut bytes = SEEDS[seed].clone();
        let words = bytes.len() / 8;
        for (at, value) in edits {
            let at = (words / 2 + at.index(words / 2)) * 8;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let _ = scan(&bytes, "damaged");
    }

    #[test]
    fn code(
        seed in 0usize..2,
        edits in prop::collection::vec((0x1000usize..0x1400, any::<u8>()), 1..40),
    ) {
        let mut bytes = SEEDS[seed].clone();
        for (at, value) in edits {
            bytes[at] = value;
        }
        if let Ok(scan) = scan(&bytes, "damaged") {
            crate::scan_support::check(&scan);
        }
    }
}
