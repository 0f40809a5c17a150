use super::*;
use crate::watching::{Picture, Row};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A picture with so many regions, named f0, f1, ..., and these counts in each.
fn picture(regions: u32, counts: &[(&str, u64)]) -> Picture {
    let events = counts.iter().map(|&(name, n)| (name.to_owned(), n));
    let region = |n: u32| Row {
        site: (0, n),
        pid: 1,
        among: None,
        module: None,
        address: None,
        construct: Some("task"),
        function: Some(format!("f{n}")),
        source: None,
        off: n == 3,
        entered: 0,
        xus: u64::from(n),
        rate_per_s: 1.0,
        share: 0.5 / f64::from(n + 1),
        wait_share: 0.0,
        runtime_share: 0.0,
        imbalance: 0.0,
        threads: 1,
        events: events.clone().collect(),
    };
    Picture {
        processes: Vec::new(),
        threads: 3,
        seconds: 1.5,
        recorded_s: None,
        lost: 2,
        damaged: Vec::new(),
        regions: (0..regions).map(region).collect(),
        per_thread: Vec::new(),
    }
}

fn app(picture: Picture) -> App {
    App::new(picture, "cycles".to_owned(), false)
}

fn shown(app: &mut App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(frame, app, &History::default()))
        .unwrap();
    terminal.backend().to_string()
}

fn press(app: &mut App, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            key => KeyCode::Char(key),
        };
        app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

#[test]
fn a_picture_without_regions_is_drawn() {
    let text = shown(&mut app(picture(0, &[])), 100, 6);
    let title = "3 threads · 1.50 s · 2 records lost since the last picture";
    assert!(text.contains(title), "{text}");
    assert!(text.contains("share") && text.contains("q quit"), "{text}");
    assert!(text.contains("nothing yet"), "{text}");
}

#[test]
fn events_without_room_or_counts_are_left_out_before_anything_else() {
    let counts = [
        ("cycles", 12_345_678),
        ("instructions", 12),
        ("major-faults", 0),
    ];
    let mut app = app(picture(2, &counts));
    app.counted = "all".to_owned();
    for (width, most) in [(130, 2), (110, 2), (90, 1), (60, 0)] {
        let text = shown(&mut app, width, 8);
        assert!(text.contains("task") && text.contains("f1"), "{text}");
        let names = counts.iter().filter(|c| text.contains(c.0)).count();
        assert!(names <= most, "{width}: {text}");
        assert!(
            text.contains(&format!("{} more events", 3 - names)),
            "{text}"
        );
    }
}

#[test]
fn rows_are_selected_sorted_and_filtered() {
    let mut app = app(picture(30, &[("cycles", 12)]));
    let is_there = |text: &str, n: u32| text.contains(&format!("  f{n} "));
    let text = shown(&mut app, 120, 10);
    assert!(
        is_there(&text, 0) && is_there(&text, 5) && !is_there(&text, 6),
        "{text}"
    );
    assert!(
        text.contains("task (off)") && text.contains("30 rows"),
        "{text}"
    );
    press(&mut app, "G");
    assert!(is_there(&shown(&mut app, 120, 10), 29));
    press(&mut app, "g>>>>>>>"); // by units
    let text = shown(&mut app, 120, 10);
    assert!(is_there(&text, 29) && !is_there(&text, 0), "{text}");
    press(&mut app, "r");
    assert!(is_there(&shown(&mut app, 120, 10), 0));
    press(&mut app, "/F17\n");
    let text = shown(&mut app, 120, 10);
    assert!(is_there(&text, 17) && !is_there(&text, 0), "{text}");
    assert!(text.contains("only with \"F17\""), "{text}");
    press(&mut app, "4");
    assert!(shown(&mut app, 120, 10).contains("nothing with this text"));
    press(&mut app, "e");
    assert!(shown(&mut app, 120, 10).contains("press 1 first") || app.shown.is_empty());
}

#[test]
fn the_help_fits_on_small_screens() {
    for (width, height) in [(80, 24), (200, 50), (20, 5)] {
        let mut app = app(picture(3, &[]));
        press(&mut app, "?");
        let text = shown(&mut app, width, height);
        if width >= 80 {
            assert!(text.contains("any key goes back"), "{text}");
            assert!(text.contains("relative to the largest"), "{text}");
        }
        press(&mut app, "x");
        assert!(!app.help);
    }
}
