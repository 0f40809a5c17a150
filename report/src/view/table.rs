//! Tables without frames that fit into the lines of a terminal: columns leave before a line would be broken.

mod place;

pub use place::place;

use ompfuse_fuse::names::narrowed;

/// On which side a column's texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// Which part of a text stays where its column is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Front,
    End,
    /// A place: file and line, or the end of what has none.
    Place,
}

/// Of words that are cut before places and numbers are, so many characters stay.
const WORD: usize = 8;

/// Blanks between two columns.
const GAP: usize = 2;

/// A column: its name, and what may become of it where lines are short.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    name: &'a str,
    align: Align,
    /// The column with the highest rank leaves first; one with 0 stays.
    rank: u8,
    /// What is left of texts that are cut, and the fewest characters of them.
    cut: Option<(Kept, usize)>,
}

impl<'a> Column<'a> {
    /// A column of words.
    pub fn left(name: &'a str) -> Column<'a> {
        Column {
            name,
            align: Align::Left,
            rank: 0,
            cut: None,
        }
    }

    /// A column of numbers.
    pub fn right(name: &'a str) -> Column<'a> {
        Column {
            align: Align::Right,
            ..Column::left(name)
        }
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// It leaves where there is no room, before all columns of a lower rank.
    #[must_use]
    pub fn leaves(self, rank: u8) -> Column<'a> {
        Column { rank, ..self }
    }

    /// Its texts may lose their beginning, but for this many characters of their end: paths.
    #[must_use]
    pub fn keeps_end(self, least: usize) -> Column<'a> {
        Column {
            cut: Some((Kept::End, least)),
            ..self
        }
    }

    /// Its texts are places, which [`place`] shortens, but not below this many characters.
    #[must_use]
    pub fn keeps_place(self, least: usize) -> Column<'a> {
        Column {
            cut: Some((Kept::Place, least)),
            ..self
        }
    }

    /// Its texts may lose their end, but for this many characters: sentences.
    #[must_use]
    pub fn keeps_front(self, least: usize) -> Column<'a> {
        Column {
            cut: Some((Kept::Front, least)),
            ..self
        }
    }
}

/// How a cell is coloured: by its column and its text, which must keep its width.
pub type Style<'s> = &'s dyn Fn(usize, &str) -> String;

/// A table that was laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// Its lines, the names of the columns first; none is wider than was allowed.
    pub text: String,
    /// Names of the columns that had no room.
    pub left_out: Vec<String>,
}

impl Fitted {
    /// A line that names the columns that had no room; `where_else` says how they can be seen.
    pub fn missing(&self, where_else: &str) -> Option<String> {
        let names = self.left_out.iter().map(String::as_str);
        let names: Vec<&str> = names.filter(|n| !n.is_empty()).collect();
        (!names.is_empty()).then(|| format!("no room for: {} ({where_else})", names.join(", ")))
    }
}

/// Lays a table out. `width`: characters in a line; `None`: as many as it takes. Each row has a text per column.
/// `head` colours the line with the columns' names.
///
/// ```
/// # use ompfuse_report::view::table::{Column, fitted};
/// let columns = [Column::left("place").keeps_end(6), Column::right("n"), Column::left("why").leaves(1)];
/// let rows = vec![vec!["src/lu.c:12".to_owned(), "3".to_owned(), "since it is so".to_owned()]];
/// let narrow = fitted(&columns, rows, Some(12), &|_, cell| cell.to_owned(), &|head| head.to_owned());
/// assert_eq!(narrow.text, "place      n\n…/lu.c:12  3\n");
/// assert_eq!(narrow.left_out, ["why"]);
/// ```
pub fn fitted(
    columns: &[Column<'_>],
    mut rows: Vec<Vec<String>>,
    width: Option<usize>,
    style: Style<'_>,
    head: &dyn Fn(&str) -> String,
) -> Fitted {
    let natural: Vec<usize> = (0..columns.len())
        .map(|c| widest(columns[c].name, &rows, c))
        .collect();
    let width = width.unwrap_or(usize::MAX);
    let (kept, widths) = shares(columns, &natural, width);
    for row in &mut rows {
        for (&c, &room) in kept.iter().zip(&widths) {
            let kept = columns[c].cut.map_or(Kept::Front, |(kept, _)| kept);
            row[c] = cut(&row[c], room, kept);
        }
    }
    let mut text = String::new();
    let names = kept.iter().map(|&c| columns[c].name.to_owned()).collect();
    let plain = |_: usize, cell: &str| cell.to_owned();
    text.push_str(&head(
        line(columns, &kept, &widths, names, &plain).trim_end(),
    ));
    text.push('\n');
    for row in rows {
        let cells = kept.iter().map(|&c| row[c].clone()).collect();
        text.push_str(line(columns, &kept, &widths, cells, style).trim_end());
        text.push('\n');
    }
    let left_out = (0..columns.len()).filter(|c| !kept.contains(c));
    Fitted {
        text,
        left_out: left_out.map(|c| columns[c].name.to_owned()).collect(),
    }
}

/// Which columns there is room for, and how wide each of them is.
pub fn shares(columns: &[Column<'_>], natural: &[usize], width: usize) -> (Vec<usize>, Vec<usize>) {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let least = |c: usize| {
        columns[c]
            .cut
            .map_or(natural[c], |(_, n)| n.min(natural[c]))
    };
    let needed = |kept: &[usize]| {
        let gaps = GAP * kept.len().saturating_sub(1);
        kept.iter().map(|&c| least(c)).sum::<usize>() + gaps
    };
    while needed(&kept) > width {
        let leaving = kept.iter().copied().filter(|&c| columns[c].rank > 0);
        let Some(first) = leaving.max_by_key(|&c| (columns[c].rank, c)) else {
            break;
        };
        kept.retain(|&c| c != first);
    }
    // What can be cut shares the rest: the widest is cut first.
    let mut widths: Vec<usize> = kept.iter().map(|&c| natural[c]).collect();
    let gaps = GAP * kept.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
    // Where even that isn't enough, words are cut, and in the end whatever is widest.
    let word = |c: usize| match (columns[c].align, columns[c].cut) {
        (Align::Right, _) | (_, Some((Kept::Place, _))) => least(c),
        (Align::Left, _) => least(c).min(WORD.max(columns[c].name.chars().count())),
    };
    let rounds: [&dyn Fn(usize) -> usize; 3] = [&least, &word, &|_| 1];
    for least in rounds {
        while excess > 0 {
            let least = |at: usize| least(kept[at]);
            let cuttable = (0..kept.len()).filter(|&at| widths[at] > least(at));
            let Some(at) = cuttable.max_by_key(|&at| widths[at]) else {
                break;
            };
            widths[at] -= 1;
            excess -= 1;
        }
    }
    (kept, widths)
}

/// A line of cells, each filled up to its column's width.
fn line(
    columns: &[Column<'_>],
    kept: &[usize],
    widths: &[usize],
    cells: Vec<String>,
    style: Style<'_>,
) -> String {
    let cell = |((&c, &width), cell): ((&usize, &usize), String)| {
        let cell = cut(&cell, width, Kept::Front); // a name may be wider than all that is below
        let blanks = " ".repeat(width - cell.chars().count());
        match columns[c].align {
            Align::Left => style(c, &cell) + &blanks,
            Align::Right => blanks + &style(c, &cell),
        }
    };
    let cells: Vec<String> = kept.iter().zip(widths).zip(cells).map(cell).collect();
    cells.join(&" ".repeat(GAP))
}

/// Widest text of a column, its name included.
fn widest(name: &str, rows: &[Vec<String>], column: usize) -> usize {
    let of = |text: &str| text.chars().count();
    let cells = rows.iter().map(|row| of(&row[column]));
    cells.max().unwrap_or(0).max(of(name))
}

fn cut(text: &str, width: usize, kept: Kept) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    match kept {
        Kept::End => "…".to_owned() + &text.chars().skip(length - room).collect::<String>(),
        Kept::Front => front(&narrowed(text, width), width),
        Kept::Place => place(text, width),
    }
}

/// The text, or its beginning before `…` if it is longer than `width` characters.
pub fn front(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let front: String = text.chars().take(width.saturating_sub(1)).collect();
    front.trim_end().to_owned() + "…"
}

/// Lines of at most `width` characters, broken at spaces; all but the first begin with `indent`.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
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

    fn plain(columns: &[Column<'_>], rows: &[&[&str]], width: Option<usize>) -> Fitted {
        let rows = rows.iter();
        let rows = rows.map(|row| row.iter().map(|&cell| cell.to_owned()).collect());
        let cell = |_: usize, cell: &str| cell.to_owned();
        fitted(columns, rows.collect(), width, &cell, &|head| {
            head.to_owned()
        })
    }

    #[test]
    fn columns_leave_in_their_order_and_no_line_is_too_long() {
        let columns = [
            Column::right("#"),
            Column::left("place").keeps_end(8),
            Column::right("count").leaves(1),
            Column::left("why").leaves(2).keeps_front(10),
        ];
        let rows: [&[&str]; 2] = [
            &["1", "src/solver/lu.c:12", "123456", "for many reasons"],
            &["12", "main.c:7", "1", ""],
        ];
        let whole = plain(&columns, &rows, None);
        assert_eq!(
            whole.text,
            " #  place                count  why\n \
             1  src/solver/lu.c:12  123456  for many reasons\n\
             12  main.c:7                 1\n"
        );
        assert_eq!(whole.missing("x"), None);
        for width in 1..60 {
            let narrow = plain(&columns, &rows, Some(width));
            let longest = narrow.text.lines().map(|l| l.chars().count()).max();
            assert!(longest <= Some(width.max(7)), "{width}: {}", narrow.text);
            let left: Vec<&str> = narrow.left_out.iter().map(String::as_str).collect();
            let wanted: &[&str] = match width {
                ..20 => &["count", "why"],
                20..32 => &["why"],
                _ => &[],
            };
            assert_eq!(left, wanted, "{width}");
        }
        let narrow = plain(&columns, &rows, Some(20));
        assert!(narrow.text.contains(" 1  …lu.c:12  123456\n"), "{narrow:?}");
        assert_eq!(
            narrow.missing("as JSON").unwrap(),
            "no room for: why (as JSON)"
        );
    }

    #[test]
    fn long_texts_keep_their_end_or_their_beginning() {
        assert_eq!(cut("src/lu.c:12", 20, Kept::End), "src/lu.c:12");
        assert_eq!(cut("a/long/way/src/lu.c:12", 10, Kept::End), "…c/lu.c:12");
        assert_eq!(cut("one two three", 8, Kept::Front), "one two…");
        assert_eq!(wrap("one two three", 7, "  "), "one two\n  three\n");
    }
}
