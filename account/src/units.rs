//! Numbers as people read them.

/// Seconds with a fitting unit, three significant digits: `1.23 s`, `45.6 ms`, `789 µs`, `12 ns`.
pub fn seconds(s: f64) -> String {
    if s == 0.0 {
        return "0".to_owned();
    }
    let (value, unit) = match s.abs() {
        a if a >= 9999.5 => (s / 3600.0, "h"),
        a if a >= 0.9995 => (s, "s"),
        a if a >= 0.9995e-3 => (s * 1e3, "ms"),
        a if a >= 0.9995e-6 => (s * 1e6, "µs"),
        _ => return format!("{:.0} ns", s * 1e9),
    };
    format!("{} {unit}", three_digits(value))
}

/// So many of something, such as `1 thread` or `8 threads`.
pub fn several(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{} {one}s", count(n)),
    }
}

/// A count with a fitting unit: `999`, `1.23 k`, `45.6 M`.
pub fn count(n: u64) -> String {
    if n < 10_000 {
        return n.to_string();
    }
    let (mut value, mut unit) = (n as f64 / 1e3, "k");
    for next in ["M", "G", "T", "P", "E"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1e3, next);
    }
    format!("{} {unit}", three_digits(value))
}

/// A mean of counts, three significant digits: `0.50`, `12.3`, `45.6 k`.
pub fn mean(value: f64) -> String {
    match value {
        a if a >= 9999.5 => count(a as u64),
        _ => three_digits(value),
    }
}

/// A share from 0 to 1 as percent. More than the whole has three digits, and ten times the whole and more is a factor: `×504`.
pub fn percent(share: f64) -> String {
    match share {
        s if s >= 9.995 => factor(s),
        s if s >= 1.0005 => format!("{:.0}%", s * 100.0),
        s => format!("{:.1}%", s * 100.0),
    }
}

/// A factor from 1 on: `×504`, and no number where that is beyond what anybody compares.
pub fn factor(times: f64) -> String {
    match times {
        t if t >= MOST_TIMES => "more than ×1000".to_owned(),
        t => format!("×{}", three_digits(t)),
    }
}

/// A factor in a sentence: `1.55`, and no number where that is beyond what anybody compares.
pub fn times(factor: f64) -> String {
    match factor {
        f if f >= MOST_TIMES => "over 1000".to_owned(),
        f => three_digits(f),
    }
}

/// Larger factors tell no more than this one.
const MOST_TIMES: f64 = 999.5;

/// A number of bytes with a fitting unit: `800 B`, `12 kB`, `3.4 GB`.
pub fn bytes(bytes: u64) -> String {
    let unit = |power: i32| bytes as f64 / 1e3f64.powi(power);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..10_000 => format!("{:.1} kB", unit(1)),
        10_000..1_000_000 => format!("{:.0} kB", unit(1)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", unit(2)),
        _ => format!("{:.1} GB", unit(3)),
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        a if a >= 99.95 => format!("{value:.0}"),
        a if a >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit() {
        let times = [
            0.0, 3e-9, 0.9996e-6, 1.5e-6, 0.012345, 0.99951, 99.96, 4321.0, 36000.0,
        ];
        let texts: Vec<String> = times.iter().map(|&s| seconds(s)).collect();
        assert_eq!(
            texts,
            [
                "0", "3 ns", "1.00 µs", "1.50 µs", "12.3 ms", "1.00 s", "100 s", "4321 s", "10.0 h"
            ]
        );
        let texts: Vec<String> = [0, 9999, 10_000, 123_456, 999_600, 1 << 40]
            .iter()
            .map(|&n| count(n))
            .collect();
        assert_eq!(texts, ["0", "9999", "10.0 k", "123 k", "1.00 M", "1.10 T"]);
        assert_eq!(percent(0.12345), "12.3%");
        let texts = [800, 1_600, 16_200, 1_250_000, 5_000_000_000].map(bytes);
        assert_eq!(texts, ["800 B", "1.6 kB", "16 kB", "1.2 MB", "5.0 GB"]);
    }
}
