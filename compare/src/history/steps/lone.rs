//! Values that stand alone: more than their neighbours explain, for up to three commits.

/// Values of which each is compared with the median.
const WINDOW: usize = 7;

/// So many typical deviations from the median of its neighbours a value may be.
const FAR: f64 = 5.0;

/// The median absolute deviation of normal values is this part of their standard deviation.
const OF_NORMAL: f64 = 0.6745;

/// The series without its lone values, and where these are. They are put to the limit, towards the median of their neighbours (Hampel's filter).
pub(super) fn without(values: &[f64]) -> (Vec<f64>, Vec<usize>) {
    let n = values.len();
    let around = |at: usize| {
        let begin = at.saturating_sub(WINDOW / 2).min(n.saturating_sub(WINDOW));
        median(&values[begin..(begin + WINDOW).min(n)])
    };
    let medians: Vec<f64> = (0..n).map(around).collect();
    let apart: Vec<f64> = values
        .iter()
        .zip(&medians)
        .map(|(v, m)| (v - m).abs())
        .collect();
    // The median of seven is the value itself in a seventh of the cases: these say nothing of how far others are.
    let apart: Vec<f64> = apart.into_iter().filter(|d| *d > 0.0).collect();
    let limit = FAR * median(&apart) / OF_NORMAL;
    if limit <= 0.0 {
        return (values.to_vec(), vec![]);
    }
    let kept = values
        .iter()
        .zip(&medians)
        .map(|(&v, &m)| if (v - m).abs() > limit { m } else { v });
    let kept: Vec<f64> = kept.collect();
    let lone = (0..n).filter(|&at| kept[at] != values[at]).collect();
    (kept, lone)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
