//! Bars and small columns of one character each.

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The lighter part of a bar.
const LIGHT: char = '░';

/// Whether a character is part of a bar.
pub(in crate::view) fn is_bar(c: char) -> bool {
    EIGHTHS.contains(&c) || LEVELS.contains(&c) || c == LIGHT
}

/// A bar for a share from 0 to 1, `width` characters wide; `light` is the part of the share at its end that is drawn
/// lighter.
pub(super) fn bar(share: f64, light: f64, width: usize) -> String {
    let eighths = |share: f64| (share.clamp(0.0, 1.0) * (8 * width) as f64).round() as usize;
    let (all, solid) = (eighths(share), eighths(share - light));
    let mut text: String = std::iter::repeat_n('█', solid / 8).collect();
    if !solid.is_multiple_of(8) {
        text.push(EIGHTHS[solid % 8 - 1]);
    }
    let drawn = text.chars().count();
    text.extend(std::iter::repeat_n(
        LIGHT,
        (all.div_ceil(8)).saturating_sub(drawn),
    ));
    text.extend(std::iter::repeat_n(' ', width - text.chars().count()));
    text
}

/// One small column per value, relative to the largest; neighbours share a column (its largest) if there are more than
/// `width`.
pub fn columns(values: &[f64], width: usize) -> String {
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || width == 0 {
        return String::new();
    }
    let chunk = values.len().div_ceil(width);
    let level = |values: &[f64]| {
        let value = values.iter().copied().fold(0.0, f64::max);
        if value <= 0.0 {
            '·'
        } else {
            LEVELS[((value / largest * 8.0).ceil() as usize).clamp(1, 8) - 1]
        }
    };
    values.chunks(chunk).map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_width() {
        assert_eq!(bar(0.5, 0.0, 4), "██  ");
        assert_eq!(bar(0.03, 0.0, 4), "▏   ");
        assert_eq!(bar(0.75, 0.5, 4), "█░░ ");
        assert_eq!(bar(0.5, 0.4, 4), "▍░  ");
        assert_eq!(bar(7.0, 0.0, 3), "███");
        assert_eq!(bar(0.0, 0.0, 2), "  ");
    }

    #[test]
    fn columns_are_relative_to_the_largest() {
        assert_eq!(columns(&[8.0, 4.0, 0.1, 0.0], 8), "█▄▁·");
        assert_eq!(columns(&[1.0, 8.0, 2.0, 4.0], 2), "█▄");
        assert_eq!(columns(&[0.0], 2), "");
    }
}
