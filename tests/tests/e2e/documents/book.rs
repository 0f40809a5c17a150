//! The documents are a book, which mdBook makes without a warning.

use mdbook_driver::MDBook;
use ompfuse_tests::repository;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher};

#[test]
fn the_book_builds_without_warnings() {
    let folder = tempfile::tempdir().expect("there is room for a book");
    let warnings = Warnings::default();
    let heard = warnings.0.clone();
    dispatcher::with_default(&Dispatch::new(warnings), || {
        let mut book = MDBook::load(repository().join("docs")).expect("docs/ is a book");
        book.config.build.build_dir = folder.path().join("book");
        book.build().expect("the book can be built");
    });
    let heard = heard.lock().expect("nobody panics with it").clone();
    assert!(heard.is_empty(), "mdBook warns:\n{}", heard.join("\n"));
    for page in [
        "index.html",
        "design/overview.html",
        "reference/commands.html",
    ] {
        assert!(
            folder.path().join("book").join(page).exists(),
            "{page} is in the book"
        );
    }
}

/// Keeps warnings and errors.
#[derive(Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().expect("nobody panics with it").push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event's fields as text.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}
