//! What people see at a terminal: the report's options, the pager, questions, `watch` and `report --browse` on the whole screen, `doctor` and `cache`.

mod asked;
mod browse;
mod cache;
mod doctor;
mod names;
mod places;
mod report;
mod watch;

/// The widest line, in characters.
fn widest(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}
