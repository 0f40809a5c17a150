use super::super::changes::Write;
use super::*;
use Place::{Memory, Register as Held, Stack};
use iced_x86::Register as R;

/// Blocks with their successors and instructions.
struct Toy {
    succs: Vec<Vec<usize>>,
    steps: Vec<fn() -> Vec<Step>>,
    exposed: Vec<Slot>,
}

impl Code for Toy {
    fn following(&self, block: usize) -> Vec<usize> {
        self.succs[block].clone()
    }

    fn steps(&self, block: usize) -> Vec<Step> {
        self.steps[block]()
    }

    fn is_exposed(&self, at: Slot) -> bool {
        self.exposed.contains(&at)
    }
}

fn write(place: Place, size: u64) -> Write {
    let keeps = false;
    Write { place, size, keeps }
}

/// The first register is so much more than the second.
fn add(to: R, from: R, more: i64) -> Step {
    Step {
        reads: smallvec![Held(from)],
        writes: smallvec![write(Held(to), 0)],
        sum: Some(Sum {
            to: Held(to),
            from: Some(Held(from)),
            more,
            whole: true,
        }),
        call: None,
    }
}

/// The place gets what is computed from another.
fn compute(to: Place, from: Place) -> Step {
    Step {
        reads: smallvec![from],
        writes: smallvec![write(to, 8)],
        ..Step::default()
    }
}

fn slot(by: i64) -> Slot {
    Slot::base(0).plus(by).unwrap()
}

/// A cycle of the blocks 0 to 3, where 1 and 2 are branches; to 0 is its end.
fn cycle(steps: [fn() -> Vec<Step>; 4]) -> Toy {
    Toy {
        succs: vec![vec![1, 2], vec![3], vec![3], vec![0]],
        steps: steps.to_vec(),
        exposed: Vec::new(),
    }
}

fn round(toy: &Toy) -> Lazy<'_> {
    Lazy::within(toy, (0, 0), |_, to| match to {
        0 => Edge::End,
        _ => Edge::Inside,
    })
}

fn recurrence(toy: &Toy, place: Place) -> Option<(Place, i64)> {
    round(toy).recurrence(place, Width::Half).unwrap()
}

#[test]
fn what_all_ways_add_is_a_step() {
    let toy = cycle([
        || vec![add(R::RCX, R::RAX, 1)],
        || vec![add(R::RAX, R::RCX, 2), add(R::RBX, R::RBX, 1)],
        || vec![add(R::RDX, R::RAX, 0), add(R::RAX, R::RDX, 3)],
        || vec![add(R::RSI, R::RDI, 0), add(R::RSI, R::RSI, -8)],
    ]);
    assert_eq!(recurrence(&toy, Held(R::RAX)), Some((Held(R::RAX), 3)));
    // One way only; never; another one's value.
    assert_eq!(recurrence(&toy, Held(R::RBX)), None);
    assert_eq!(recurrence(&toy, Held(R::R8)), Some((Held(R::R8), 0)));
    assert_eq!(recurrence(&toy, Held(R::RSI)), Some((Held(R::RDI), -8)));
}

#[test]
fn inner_cycles_leave_alone_what_they_only_copy() {
    // 1 is a cycle of its own: it copies a register to and fro, and adds to another.
    let toy = Toy {
        succs: vec![vec![1], vec![1, 2], vec![0]],
        steps: vec![
            || vec![add(R::RAX, R::RAX, 1)],
            || {
                let moved = [add(R::RCX, R::RAX, 0), add(R::RAX, R::RCX, 0)];
                moved.into_iter().chain([add(R::RBX, R::RBX, 1)]).collect()
            },
            Vec::new,
        ],
        exposed: Vec::new(),
    };
    assert_eq!(recurrence(&toy, Held(R::RAX)), Some((Held(R::RAX), 1)));
    assert_eq!(recurrence(&toy, Held(R::RCX)), Some((Held(R::RAX), 1)));
    assert_eq!(recurrence(&toy, Held(R::RBX)), None);
}

#[test]
fn slots_change_with_what_may_write_them() {
    let steps: [fn() -> Vec<Step>; 4] = [
        || vec![compute(Memory, Held(R::RAX)), Step::of_call(1, None)],
        || vec![compute(Stack(slot(-20)), Held(R::RAX))],
        Vec::new,
        Vec::new,
    ];
    let mut toy = cycle(steps);
    let same = |toy: &Toy, by| recurrence(toy, Stack(slot(by))) == Some((Stack(slot(by)), 0));
    // The write of 8 bytes reaches into the slots on both sides, and no further.
    let kept: Vec<i64> = (-30..-10).filter(|&by| same(&toy, by)).collect();
    assert_eq!(kept, [-30, -29, -28, -12, -11]);
    toy.exposed.push(slot(-40));
    assert!(same(&toy, -48) && !same(&toy, -40));
    // The call changes the first register.
    assert_eq!(recurrence(&toy, Held(R::RAX)), None);
    assert_eq!(recurrence(&toy, Held(R::RBX)), Some((Held(R::RBX), 0)));
}

#[test]
fn everything_that_a_value_comes_from_is_visited() {
    let toy = cycle([
        || vec![Step::of_call(1, Some(Query::ThreadNum))],
        || vec![compute(Held(R::RCX), Held(R::RAX))],
        || vec![compute(Held(R::RCX), Held(R::RDX))],
        || {
            vec![
                compute(Stack(slot(-8)), Held(R::RCX)),
                compute(Held(R::RBX), Memory),
            ]
        },
    ]);
    let starts = |place| {
        let (mut values, mut out) = (round(&toy), Vec::new());
        let end = values.at_end(place).unwrap();
        let asks = |values: &mut Lazy<'_>, def| {
            if let Def::Start(place) = def {
                out.push(place);
            }
            let asks = values.call(def).flatten().is_some();
            Some(if asks { Visit::Found } else { Visit::On })
        };
        (values.depends(end, asks), out)
    };
    let (found, before) = starts(Stack(slot(-8)));
    assert_eq!(found, Some(true));
    assert!(before.is_empty() || before == [Held(R::RDX)]);
    assert_eq!(starts(Held(R::RBX)), (Some(false), vec![Memory]));
}

#[test]
fn the_effort_is_limited() {
    let toy = cycle([Vec::new, Vec::new, Vec::new, Vec::new]);
    let mut values = round(&toy);
    values.left = 3;
    assert_eq!(values.recurrence(Held(R::RAX), Width::Half), None);
}
