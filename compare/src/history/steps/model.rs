//! The likelihood of a series with steps whose noise remembers: each value's noise is `phi` times that of the value before, plus something
//! new (an autoregression of order 1).

/// The correlations that are tried.
pub(super) const CORRELATIONS: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Least number of values of a level: what lasts for less is no step.
pub(super) const SHORTEST: usize = 3;

/// A series as it is with one correlation, without what its known levels explain.
struct Whitened {
    correlation: f64,
    /// What is left, as sums from each position to the end; one more than there are values.
    rest: Vec<f64>,
    /// Of each orthonormal column of the levels, likewise.
    columns: Vec<Vec<f64>>,
    /// Sum of the squares of what is left.
    squares: f64,
}

impl Whitened {
    /// `steps`: the positions at which a level begins, but for the first.
    fn new(values: &[f64], steps: &[usize], correlation: f64) -> Whitened {
        let first = (1.0 - correlation * correlation).sqrt();
        let white = |get: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let at = |i: usize| match i {
                0 => first * get(0),
                _ => get(i) - correlation * get(i - 1),
            };
            (0..values.len()).map(at).collect()
        };
        let begins = std::iter::once(0).chain(steps.iter().copied());
        let mut columns: Vec<Vec<f64>> = vec![];
        for begin in begins {
            let mut column = white(&|i| f64::from(u8::from(i >= begin)));
            // Twice: once leaves what rounding has lost.
            for _ in 0..2 {
                columns
                    .iter()
                    .for_each(|other| subtract(&mut column, other));
            }
            let length = dot(&column, &column).sqrt();
            column
                .iter_mut()
                .for_each(|v| *v /= length.max(f64::MIN_POSITIVE));
            columns.push(column);
        }
        let mut rest = white(&|i| values[i]);
        for _ in 0..2 {
            columns
                .iter()
                .for_each(|column| subtract(&mut rest, column));
        }
        Whitened {
            correlation,
            squares: dot(&rest, &rest),
            rest: sums_to_end(&rest),
            columns: columns.iter().map(|c| sums_to_end(c)).collect(),
        }
    }

    fn len(&self) -> usize {
        self.rest.len() - 1
    }

    /// The product of a column, as its sums, with that of a step at a position: 0 before it, 1 there, `1 - correlation` behind it.
    fn with_step(&self, sums: &[f64], at: usize) -> f64 {
        sums[at] - sums[at + 1] + (1.0 - self.correlation) * sums[at + 1]
    }

    /// The product of the columns of two steps, the second one not before the first.
    fn of_steps(&self, first: usize, second: usize) -> f64 {
        let behind = 1.0 - self.correlation;
        let there = if first == second { 1.0 } else { behind };
        there + behind * behind * (self.len() - second - 1) as f64
    }

    /// The same without what the levels explain of it.
    fn of_free(&self, first: usize, second: usize) -> f64 {
        let explained = self.columns.iter();
        let explained = explained.map(|c| self.with_step(c, first) * self.with_step(c, second));
        self.of_steps(first, second) - explained.sum::<f64>()
    }

    /// Twice the logarithm of the likelihood with the best variance, without what all models have in common.
    fn likelihood(&self, squares: f64) -> f64 {
        let n = self.len() as f64;
        (1.0 - self.correlation * self.correlation).ln() - n * squares.max(n * LEAST_VARIANCE).ln()
    }

    /// A step at a position: its size, the sum of squares of its free part, and the squares that are left with it.
    fn step(&self, at: usize) -> (f64, f64, f64) {
        let (with, of) = (self.with_step(&self.rest, at), self.of_free(at, at));
        let size = with / of;
        (size, of, (self.squares - size * with).max(0.0))
    }

    /// The squares that are left with two more steps.
    fn pair(&self, first: &Candidate, second: &Candidate) -> f64 {
        let crossed: f64 = (first.explained.iter().zip(&second.explained))
            .map(|(a, b)| a * b)
            .sum();
        let both = self.of_steps(first.at, second.at) - crossed;
        let determinant = first.of * second.of - both * both;
        if determinant <= 1e-9 * first.of * second.of {
            return self.squares;
        }
        let explained = second.of * first.with * first.with - 2.0 * both * first.with * second.with
            + first.of * second.with * second.with;
        (self.squares - explained / determinant).max(0.0)
    }

    fn candidate(&self, at: usize) -> Candidate {
        Candidate {
            at,
            with: self.with_step(&self.rest, at),
            of: self.of_free(at, at),
            explained: self.columns.iter().map(|c| self.with_step(c, at)).collect(),
        }
    }
}

/// A step that may be one.
struct Candidate {
    at: usize,
    with: f64,
    of: f64,
    explained: Vec<f64>,
}

/// Values are written with five digits: less is no noise that was measured.
const LEAST_VARIANCE: f64 = 1e-10;

/// A model of a series: the levels begin at known positions.
pub(super) struct Model {
    whitened: Vec<Whitened>,
    steps: Vec<usize>,
}

/// One more step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Best<T> {
    /// Where.
    pub(super) at: T,
    /// Twice the logarithm of the ratio of the likelihoods, with it and without.
    pub(super) ratio: f64,
}

impl Model {
    pub(super) fn new(values: &[f64], steps: &[usize]) -> Model {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let values: Vec<f64> = values.iter().map(|v| v - mean).collect();
        let whitened = CORRELATIONS
            .iter()
            .map(|&c| Whitened::new(&values, steps, c));
        Model {
            whitened: whitened.collect(),
            steps: steps.to_vec(),
        }
    }

    /// Twice the logarithm of the largest likelihood, and the correlation that has it.
    pub(super) fn likelihood(&self) -> (f64, f64) {
        let each = self.whitened.iter();
        let each = each.map(|w| (w.likelihood(w.squares), w.correlation));
        each.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    }

    /// The deviation of a value from its level.
    pub(super) fn deviation(&self) -> f64 {
        let (_, correlation) = self.likelihood();
        let fitted = self.whitened.iter().find(|w| w.correlation == correlation);
        fitted.map_or(0.0, |w| {
            let free = w.len().saturating_sub(w.columns.len()).max(1) as f64;
            (w.squares / free / (1.0 - correlation * correlation)).sqrt()
        })
    }

    /// Where one more step may be.
    fn free(&self) -> Vec<usize> {
        let n = self.whitened.first().map_or(0, Whitened::len);
        let ends = [0, n].into_iter().chain(self.steps.iter().copied());
        let ends: Vec<usize> = ends.collect();
        let is_far = |at: &usize| ends.iter().all(|end| end.abs_diff(*at) >= SHORTEST);
        (1..n).filter(is_far).collect()
    }

    /// The likelihood with one more step at a position: twice its logarithm.
    fn with(&self, at: usize) -> f64 {
        let each = self.whitened.iter();
        let each = each.map(|w| w.likelihood(w.step(at).2));
        each.fold(f64::NEG_INFINITY, f64::max)
    }

    /// The most likely place of one more step.
    pub(super) fn step(&self) -> Option<Best<usize>> {
        let (without, _) = self.likelihood();
        let each = self.free().into_iter().map(|at| Best {
            at,
            ratio: self.with(at) - without,
        });
        each.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The most likely places of two more steps: a series that comes back to its level is hardly like one with a single step.
    pub(super) fn pair(&self) -> Option<Best<(usize, usize)>> {
        let (without, _) = self.likelihood();
        let free = self.free();
        let mut best: Option<Best<(usize, usize)>> = None;
        for whitened in &self.whitened {
            let all: Vec<Candidate> = free.iter().map(|&at| whitened.candidate(at)).collect();
            let mut least: Option<(f64, (usize, usize))> = None;
            for (n, first) in all.iter().enumerate() {
                let far = all[n..].partition_point(|c| c.at < first.at + SHORTEST);
                for second in &all[n + far..] {
                    let squares = whitened.pair(first, second);
                    if least.is_none_or(|(known, _)| squares < known) {
                        least = Some((squares, (first.at, second.at)));
                    }
                }
            }
            let Some((squares, at)) = least else {
                continue;
            };
            let ratio = whitened.likelihood(squares) - without;
            if best.is_none_or(|b| ratio > b.ratio) {
                best = Some(Best { at, ratio });
            }
        }
        best
    }

    /// From where to where a step at `at` may be, by the likelihood: less than `most` below the best. The model is the one without it.
    pub(super) fn range(&self, at: usize, most: f64) -> (usize, usize) {
        let free = self.free();
        let best = free
            .iter()
            .map(|&k| self.with(k))
            .fold(f64::NEG_INFINITY, f64::max);
        let may_be = free.iter().filter(|&&k| best - self.with(k) <= most);
        may_be.fold((at, at), |(low, high), &k| (low.min(k), high.max(k)))
    }

    /// The size of a step at `at`, the least and the largest it may be: twice the logarithm of the likelihood is less than `most` below
    /// the best. The model is the one without it.
    pub(super) fn size(&self, at: usize, most: f64) -> (f64, f64, f64) {
        let best = self.with(at);
        let (mut size, mut low, mut high) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
        for whitened in &self.whitened {
            let (own, of, squares) = whitened.step(at);
            let own_best = whitened.likelihood(squares);
            if own_best >= best {
                size = own;
            }
            let room = own_best - (best - most);
            if room < 0.0 {
                continue;
            }
            // squares + of * (size - own)^2 may be this many times as large.
            let n = whitened.len() as f64;
            let wide = (squares.max(n * LEAST_VARIANCE) * ((room / n).exp() - 1.0) / of).sqrt();
            low = low.min(own - wide);
            high = high.max(own + wide);
        }
        (size, low.min(size), high.max(size))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Takes a column's part out of another.
fn subtract(from: &mut [f64], column: &[f64]) {
    let part = dot(from, column);
    from.iter_mut()
        .zip(column)
        .for_each(|(v, c)| *v -= part * c);
}

/// The sum from each position to the end, and 0 at the end.
fn sums_to_end(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; values.len() + 1];
    for at in (0..values.len()).rev() {
        sums[at] = sums[at + 1] + values[at];
    }
    sums
}
