//! Programs drawn at random: what a program with this number has in it.

use super::exclusion::Mutex;
use super::loops::{Shape, UNEVEN};
use super::tasks::Shape as Tasks;
use super::writer::Writer;
use crate::hostile::Random;

/// Draws what a program of a kind is drawn for.
pub type Draw = fn(&mut Writer);

/// Kinds of programs. A program's number says which one it is of: so many numbers in a row have each of them.
pub const KINDS: [(&str, Draw); 22] = [
    ("loops", loops),
    ("ranges-by-threads", ranges_by_threads),
    ("waits-for-tasks", waits_for_tasks),
    ("undeferred", undeferred),
    ("ordered-tasks", ordered_tasks),
    ("several-places", several_places),
    ("turns", turns),
    ("copies", copies),
    ("uneven-executions", uneven_executions),
    ("without-barrier", without_barrier),
    ("joins", joins),
    ("copied-objects", copied_objects),
    ("by-number", by_number),
    ("around-main", around_main),
    ("nested", nested),
    ("smaller-teams", smaller_teams),
    ("first-unit", first_unit),
    ("even", even),
    ("hidden", hidden),
    ("untied", untied),
    ("computing", computing),
    ("crowded", crowded),
];

/// The program of this number.
pub(super) fn draw(number: u64) -> Writer {
    let mut random = Random::new(super::scattered(number));
    random.below(2);
    let (_, kind) = KINDS[number as usize % KINDS.len()];
    let threads = [2, 3, 4, 4, 6][random.below(5)];
    let mut writer = Writer::new(random, threads);
    kind(&mut writer);
    // What it has beside it: smaller than what it is drawn for, mostly.
    let more = match writer.computes {
        true => 0,
        false => writer.number(0, 3),
    };
    for _ in 0..more {
        any(&mut writer);
    }
    writer.line("");
    writer.line("int main(void)");
    writer.line("{");
    // The runtime's own start is outside of all phases, whichever call of it comes first.
    writer.line("    omp_get_max_threads();");
    for call in writer.calls.clone() {
        writer.line(format!("    {call}"));
    }
    writer.line("    nearly_over();");
    writer.line("}");
    writer
}

fn any(w: &mut Writer) {
    match w.number(0, 9) {
        0 => w.serial(),
        1 => w.a_loop(Shape::Even, Some("schedule(static)")),
        2 => {
            let shape = w.pick(&UNEVEN);
            w.a_loop(shape, None);
        }
        3 => w.sections(w.threads, false, false),
        4 => w.contended(Mutex::Critical),
        5 => w.block("single"),
        6 => w.tasks(Tasks::Taskloop),
        7 => w.by_thread(),
        _ => w.a_loop(Shape::Even, None),
    }
}

fn loops(w: &mut Writer) {
    let shape = w.pick(&UNEVEN);
    w.a_loop(shape, None);
}

fn ranges_by_threads(w: &mut Writer) {
    let shape = match w.chance(60) {
        true => w.pick(&UNEVEN),
        false => Shape::Even,
    };
    match w.number(0, 4) {
        0 => w.a_loop(shape, Some("schedule(guided)")),
        1 => w.a_loop(shape, Some("schedule(auto)")),
        2 => {
            let value = w.pick(&["static", "dynamic,2", "guided", "static,2"]);
            w.environment.push(("OMP_SCHEDULE", value.to_owned()));
            w.a_loop(shape, Some("schedule(runtime)"));
        }
        _ => w.tasks(Tasks::Taskloop),
    }
}

fn waits_for_tasks(w: &mut Writer) {
    let shape = w.pick(&[
        Tasks::EvenTree,
        Tasks::ShallowTree,
        Tasks::UnevenTree,
        Tasks::OneByOne,
        Tasks::GroupByGroup,
        Tasks::Groups,
        Tasks::Few,
        Tasks::LargeGrains,
        Tasks::Producer,
        Tasks::LongLast,
    ]);
    w.tasks(shape);
}

fn undeferred(w: &mut Writer) {
    let shape = w.pick(&[Tasks::If, Tasks::Final]);
    w.tasks(shape);
}

fn ordered_tasks(w: &mut Writer) {
    let shape = w.pick(&[
        Tasks::Chain,
        Tasks::Wavefront,
        Tasks::Excluding,
        Tasks::Detached,
    ]);
    w.tasks(shape);
}

fn mutex(w: &mut Writer) -> Mutex {
    w.pick(&[Mutex::Critical, Mutex::Lock])
}

fn several_places(w: &mut Writer) {
    let mutex = mutex(w);
    w.holder(mutex);
}

fn turns(w: &mut Writer) {
    let long_part = w.chance(40);
    w.ordered(long_part);
}

fn copies(w: &mut Writer) {
    let mutex = mutex(w);
    w.copies(mutex);
}

fn uneven_executions(w: &mut Writer) {
    let count = w.number(2, w.threads + 3);
    let once = w.chance(60);
    w.sections(count, true, once);
}

fn without_barrier(w: &mut Writer) {
    let uneven = w.pick(&UNEVEN);
    let shapes = match w.number(0, 3) {
        0 => [uneven, Shape::Even],
        1 => [Shape::Even, uneven],
        _ => [uneven, w.pick(&UNEVEN)],
    };
    w.two_loops(shapes);
}

fn joins(w: &mut Writer) {
    w.slow_join();
}

fn copied_objects(w: &mut Writer) {
    let last = w.chance(30);
    w.slow_copies(last);
}

fn by_number(w: &mut Writer) {
    match w.number(0, 5) {
        0 => w.block("master"),
        1 => w.orphaned("nowait"),
        2 => w.orphaned(""),
        3 => w.uncontended(),
        _ => w.by_thread(),
    }
}

fn around_main(w: &mut Writer) {
    match w.number(0, 4) {
        0 => w.around_main(true),
        1 => w.around_main(false),
        2 => {
            w.options.push("--functions=*");
            w.beside();
        }
        _ => w.serial(),
    }
    w.a_loop(Shape::Even, Some("schedule(static)"));
}

fn nested(w: &mut Writer) {
    w.threads = 4;
    let uneven = w.chance(75);
    w.nested(uneven);
}

fn smaller_teams(w: &mut Writer) {
    w.a_loop(Shape::Even, Some("schedule(static)"));
    let by_if = w.chance(40);
    w.smaller(by_if);
}

fn first_unit(w: &mut Writer) {
    match w.number(0, 3) {
        0 => w.tasks(Tasks::LongFirst),
        1 => {
            w.never.push("begin first");
            w.a_loop(Shape::OneFirst, Some("schedule(dynamic)"));
        }
        _ => {
            let shape = w.pick(&[Shape::FirstBlock, Shape::Falling]);
            w.a_loop(shape, Some("schedule(guided)"));
        }
    }
}

fn even(w: &mut Writer) {
    w.a_loop(Shape::Even, Some("schedule(static)"));
    w.a_loop(Shape::Even, Some("schedule(static)"));
}

fn hidden(w: &mut Writer) {
    w.hidden();
}

fn untied(w: &mut Writer) {
    w.tasks(Tasks::Untied);
}

fn computing(w: &mut Writer) {
    w.threads = 2;
    w.computes = true;
    match w.number(0, 4) {
        0 => w.sections(2, true, false),
        1 => w.by_thread(),
        2 => w.block("single"),
        _ => {
            let shape = w.pick(&UNEVEN);
            w.a_loop(shape, Some("schedule(static)"));
        }
    }
}

fn crowded(w: &mut Writer) {
    w.threads = 2;
    w.computes = true;
    w.crowded();
}
