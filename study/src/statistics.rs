//! Means with confidence intervals.

use serde::Serialize;

/// A mean over repetitions, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval (Student's t); `None` of a single value.
    pub margin: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

/// Student's t for 95 %, by degrees of freedom from 1.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Of these values; `None` if there are none.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let margin = match values.len() {
        0 => return None,
        1 => None,
        count => {
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            let t = T95.get(count - 2).copied().unwrap_or(1.96);
            Some(t * (squares / (n - 1.0) / n).sqrt())
        }
    };
    Some(Estimate {
        mean,
        margin,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[3.0]).unwrap().margin, None);
        let e = estimate(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        // Deviation 1.29099, standard error 0.645497, t(3) = 3.182.
        assert!((e.margin.unwrap() - 2.05397).abs() < 1e-4 && e.mean == 2.5);
        assert_eq!((e.min, e.max), (1.0, 4.0));
    }
}
