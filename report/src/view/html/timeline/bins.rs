//! Sums of what is too short to be drawn one by one.

/// How the page's time is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// In nanoseconds since the run's begin.
    pub(super) begin: i64,
    /// Nanoseconds, at least 1.
    pub(super) length: u64,
    pub(super) bins: usize,
}

impl Scale {
    /// Nanoseconds of a bin.
    pub(super) fn bin_ns(&self) -> f64 {
        self.length as f64 / self.bins as f64
    }

    /// Where a bin begins, in nanoseconds since the page's begin.
    fn edge(&self, bin: usize) -> u64 {
        match self.length.checked_mul(bin as u64) {
            Some(product) => product / self.bins as u64,
            None => (u128::from(self.length) * bin as u128 / self.bins as u128) as u64,
        }
    }

    /// The bin that a time is in, likewise.
    fn bin(&self, ns: u64) -> usize {
        let mut bin = ((ns as f64 / self.bin_ns()) as usize).min(self.bins - 1);
        while self.edge(bin) > ns {
            bin -= 1;
        }
        while bin + 1 < self.bins && self.edge(bin + 1) <= ns {
            bin += 1;
        }
        bin
    }
}

/// A lane's sums.
#[derive(Debug)]
pub(super) struct Bins {
    scale: Scale,
    /// By bin nanoseconds of what was done in it. Few things are done in one.
    sums: Vec<Vec<(u16, u64)>>,
    /// By bin, stretches that begin there.
    pub(super) number: Vec<u64>,
}

impl Bins {
    pub(super) fn new(scale: Scale) -> Bins {
        Bins {
            scale,
            sums: vec![vec![]; scale.bins],
            number: vec![0; scale.bins],
        }
    }

    /// Adds a stretch to the bins that it is in.
    pub(super) fn add(&mut self, what: u16, begin: i64, end: i64) {
        let since =
            |ns: i64| (ns.saturating_sub(self.scale.begin).max(0) as u64).min(self.scale.length);
        let (mut from, to) = (since(begin), since(end));
        let mut bin = self.scale.bin(from);
        self.number[bin] += 1;
        loop {
            let until = match bin + 1 == self.scale.bins {
                true => to,
                false => to.min(self.scale.edge(bin + 1)),
            };
            self.put(bin, what, until - from);
            if until >= to {
                return;
            }
            (from, bin) = (until, bin + 1);
        }
    }

    fn put(&mut self, bin: usize, what: u16, ns: u64) {
        let sums = &mut self.sums[bin];
        match sums.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((what, ns)),
        }
    }

    /// Numbers of other lists of what is done.
    pub(super) fn renumber(&mut self, numbers: &[u16]) {
        for (what, _) in self.sums.iter_mut().flatten() {
            *what = numbers[*what as usize];
        }
    }

    /// By bin nanoseconds of one class. `classes`: by what is done.
    pub(super) fn of_class(&self, class: u8, classes: &[u8]) -> impl Iterator<Item = u64> {
        self.sums.iter().map(move |sums| {
            let of_class = sums
                .iter()
                .filter(|(what, _)| classes[*what as usize] == class);
            of_class.map(|(_, ns)| ns).sum()
        })
    }

    /// By bin what is done for most of the time.
    pub(super) fn most(&self) -> impl Iterator<Item = Option<u16>> {
        self.sums.iter().map(|sums| {
            let most = sums
                .iter()
                .max_by_key(|(what, ns)| (*ns, std::cmp::Reverse(*what)));
            most.map(|(what, _)| *what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_where_bins_end_between_nanoseconds() {
        let scale = Scale {
            begin: -5,
            length: 1000,
            bins: 7,
        };
        for ns in 0..=1000 {
            let bin = scale.bin(ns);
            assert!(scale.edge(bin) <= ns, "{ns}");
            assert!(bin == 6 || ns < scale.edge(bin + 1), "{ns}");
        }
        let mut bins = Bins::new(scale);
        bins.add(0, -5, 995);
        bins.add(1, 100, 101);
        bins.add(1, 995, 995);
        let all: u64 = bins.of_class(0, &[0, 1]).sum();
        assert_eq!(all, 1000);
        assert_eq!(bins.of_class(1, &[0, 1]).sum::<u64>(), 1);
        assert_eq!(bins.number.iter().sum::<u64>(), 3);
        assert!(bins.most().all(|what| what == Some(0)));
    }
}
