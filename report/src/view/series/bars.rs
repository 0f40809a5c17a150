//! Stacked bars: a character for each thing that time goes to, the same in all bars.

use ompfuse_account::model::Class;
use ompfuse_account::model::series::{SeriesCause, Stack};

/// What a bar consists of, from left to right: character, escape code, and what it is.
pub(super) const PARTS: [(SeriesCause, char, &str); 11] = [
    (SeriesCause::Work, '█', "36"),
    (SeriesCause::Serial, '▓', "34"),
    (SeriesCause::SerialIdle, '░', "2"),
    (SeriesCause::Synchronization, 'S', "31"),
    (SeriesCause::Imbalance, 'I', "33"),
    (SeriesCause::LimitedParallelism, 'L', "35"),
    (SeriesCause::Management, 'M', "32"),
    (SeriesCause::Communication, 'C', "35"),
    (SeriesCause::Call, 'W', "31"),
    (SeriesCause::Unused, 'u', "2"),
    (SeriesCause::Unknown, '?', "2"),
];

/// Seconds of a part.
pub(super) fn part(stack: &Stack, cause: SeriesCause) -> f64 {
    let class = |class| stack.overhead.get(class).unwrap_or(0.0);
    match cause {
        SeriesCause::Work => stack.work_s,
        SeriesCause::Synchronization => class(Class::Synchronization),
        SeriesCause::Imbalance => class(Class::Imbalance),
        SeriesCause::LimitedParallelism => class(Class::LimitedParallelism),
        SeriesCause::Management => class(Class::Management),
        SeriesCause::Serial => stack.serial_s,
        SeriesCause::SerialIdle => stack.serial_idle_s,
        SeriesCause::Unused => stack.unused_s,
        SeriesCause::Communication => stack.communication_s,
        SeriesCause::Call => stack.call_s,
        SeriesCause::Unknown => stack.unknown_s,
    }
}

/// The parts of a bar in which `per_character` seconds are a character: cause and length. Ends are rounded, not lengths, so that the
/// bar's length is right.
pub(super) fn lengths(stack: &Stack, per_character: f64) -> Vec<(usize, usize)> {
    let (mut until, mut drawn) = (0.0, 0);
    let mut lengths = vec![];
    for (at, (cause, _, _)) in PARTS.iter().enumerate() {
        until += part(stack, *cause).max(0.0);
        let end = (until / per_character).round() as usize;
        if end > drawn {
            lengths.push((at, end - drawn));
            drawn = end;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_account::model::Overhead;

    #[test]
    fn a_bar_is_as_long_as_its_sum() {
        let stack = Stack {
            work_s: 1.4,
            serial_s: 1.4,
            serial_idle_s: 1.4,
            overhead: Overhead {
                imbalance_s: Some(0.1),
                ..Overhead::default()
            },
            ..Stack::default()
        };
        let lengths = lengths(&stack, 1.0);
        assert_eq!(lengths, [(0, 1), (1, 2), (2, 1)]);
    }
}
