//! Tables without frames, bars, and shortened texts.

use super::Paint;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// How a column is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A table: names of columns with their alignment, then rows.
pub(super) fn table(columns: &[(&str, Align)], rows: Vec<Vec<String>>, paint: Paint) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|(name, _)| *name));
    table.add_rows(rows);
    for (at, (_, align)) in columns.iter().enumerate() {
        let column = table.column_mut(at).expect("a column per name");
        column.set_padding((0, if at + 1 == columns.len() { 0 } else { 2 }));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    let mut text = String::new();
    for (at, line) in table.lines().enumerate() {
        let line = line.trim_end();
        text.push_str(&if at == 0 {
            paint.dim(line)
        } else {
            paint.bars(line)
        });
        text.push('\n');
    }
    text
}

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The lighter part of a bar.
const LIGHT: char = '░';

/// Whether a character is part of a bar.
pub(super) fn is_bar(c: char) -> bool {
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
pub(super) fn columns(values: &[f64], width: usize) -> String {
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

/// Widest text of a column, its name included.
fn widest(name: &str, rows: &[Vec<String>], column: usize) -> usize {
    let of = |text: &str| text.chars().count();
    rows.iter()
        .map(|row| of(&row[column]))
        .max()
        .unwrap_or(0)
        .max(of(name))
}

/// As [`table`], with the texts of column `flexible` shortened as far as the others leave too little of `width`.
pub(super) fn fitted(
    columns: &[(&str, Align)],
    mut rows: Vec<Vec<String>>,
    flexible: usize,
    width: usize,
    paint: Paint,
) -> String {
    let others: usize = (0..columns.len())
        .filter(|&c| c != flexible)
        .map(|c| widest(columns[c].0, &rows, c) + 2)
        .sum();
    let room = width.saturating_sub(others).max(12);
    rows.iter_mut()
        .for_each(|row| row[flexible] = tail(&row[flexible], room));
    table(columns, rows, paint)
}

/// The text, or its end behind `…` if it is longer than `width` characters.
pub(super) fn tail(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length + 1 - width).collect();
    format!("…{kept}")
}

/// Lines of at most `width` characters, broken at spaces; all but the first begin with `indent`.
pub(super) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = indent.to_owned();
            line.push_str(word);
        } else {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
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

    #[test]
    fn long_texts_keep_their_end() {
        assert_eq!(tail("src/lu.c:12", 20), "src/lu.c:12");
        assert_eq!(tail("a/long/way/src/lu.c:12", 10), "…c/lu.c:12");
        assert_eq!(wrap("one two three", 7, "  "), "one two\n  three\n");
    }
}
