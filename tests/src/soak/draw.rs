//! Programs drawn at random: constructs that may stand inside each other, with a result that doesn't depend on who executes
//! what.

use super::program::{ANYWHERE, Form, Kind, Part, Program, Range};
use crate::hostile::Random;

/// What may stand at a place.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// All threads of a team come by: work may be shared here.
    team: bool,
    /// The `parallel` that this belongs to is in the same function.
    lexical: bool,
    /// No other team can be here at the same time.
    alone: bool,
    /// Inside a critical section: nothing that may run other tasks.
    closed: bool,
    /// Teams around it.
    depth: usize,
    /// How often it is executed, roughly.
    times: usize,
}

/// Most executions of a part.
const MOST: usize = 3000;

/// Draws programs.
struct Draw {
    random: Random,
    next: usize,
    left: usize,
    functions: usize,
}

/// Numbers far from each other for numbers that follow each other (the finaliser of MurmurHash3).
pub(super) fn scattered(number: u64) -> u64 {
    let number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let number = (number ^ number >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}

/// The program of this number.
pub(super) fn draw(number: u64) -> Program {
    let mut draw = Draw {
        random: Random::new(scattered(!number)),
        next: 1,
        left: 0,
        functions: 0,
    };
    let functions = draw.random.below(3);
    let inside = Place {
        team: true,
        lexical: false,
        alone: false,
        closed: false,
        depth: 1,
        times: 40,
    };
    let functions = (0..functions)
        .map(|number| {
            draw.left = 4 + draw.random.below(5);
            draw.functions = number;
            draw.list(inside, 3)
        })
        .collect::<Vec<_>>();
    draw.functions = functions.len();
    draw.left = 8 + draw.random.below(16);
    let outside = Place {
        lexical: false,
        alone: true,
        depth: 0,
        times: 1,
        ..inside
    };
    let mut main = Vec::new();
    while draw.left > 0 {
        main.extend(draw.list(outside, 3));
    }
    Program { functions, main }
}

impl Draw {
    fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    /// One part or some.
    fn list(&mut self, place: Place, most: usize) -> Vec<Part> {
        let parts = 1 + self.random.below(most);
        (0..parts).map(|_| self.part(place)).collect()
    }

    fn part(&mut self, place: Place) -> Part {
        self.next += 1;
        let id = self.next;
        if self.left == 0 || place.times > MOST {
            return leaf(id, self.random.below(ANYWHERE));
        }
        self.left -= 1;
        let mut part = match self.random.below(20) {
            0..=2 => leaf(id, self.random.below(ANYWHERE)),
            3 => self.repeat(place),
            4 => self.around(Form::When, place),
            5 => self.around(Form::Throw, place),
            6 => self.call(place),
            7 | 8 if place.depth < 2 && !place.closed => self.parallel(place),
            9 | 10 if !place.closed => self.shared(place),
            11 if !place.closed => self.loop_of(Kind::ParallelFor, place),
            12 if !place.closed => self.sections(place),
            13 => self.excluding(place),
            14 if place.team => self.single(place),
            15 if place.team => leaf(id, ANYWHERE),
            16..=18 if !place.closed => self.tasking(place),
            19 if place.team && !place.closed => Part {
                form: Form::Barrier,
                ..leaf(id, 0)
            },
            _ => leaf(id, self.random.below(ANYWHERE)),
        };
        part.id = id;
        part
    }

    /// A part with one body.
    fn around(&mut self, form: Form, place: Place) -> Part {
        let body = self.list(place, 2);
        Part {
            id: 0,
            form,
            clauses: Vec::new(),
            bodies: vec![body],
        }
    }

    fn repeat(&mut self, place: Place) -> Part {
        let times = 2 + self.random.below(2);
        let place = Place {
            times: place.times * times,
            ..place
        };
        self.around(Form::Repeat(times), place)
    }

    fn call(&mut self, place: Place) -> Part {
        // A function may share work among a team, and may run tasks.
        if self.functions == 0 || !place.team || place.closed {
            return leaf(0, 3);
        }
        Part {
            form: Form::Call(self.random.below(self.functions)),
            ..leaf(0, 0)
        }
    }

    fn parallel(&mut self, place: Place) -> Part {
        let inside = inside_team(place);
        let mut part = self.around(Form::Parallel, inside);
        part.clauses = self.team_clauses();
        part
    }

    fn team_clauses(&mut self) -> Vec<String> {
        let mut clauses = Vec::new();
        if self.chance(50) {
            clauses.push(format!("num_threads({})", 1 + self.random.below(4)));
        }
        if self.chance(12) {
            clauses.push(format!("if({})", self.pick(&["K(0)", "x & 1", "1"])));
        }
        if self.chance(12) {
            clauses.push(format!("proc_bind({})", self.pick(&["close", "spread"])));
        }
        clauses
    }

    /// A loop that a team shares, if there is one.
    fn shared(&mut self, place: Place) -> Part {
        if !place.team {
            return self.loop_of(Kind::ParallelFor, place);
        }
        let ordered = place.alone && place.lexical && self.chance(25);
        self.loop_of(if ordered { Kind::Ordered } else { Kind::For }, place)
    }

    fn loop_of(&mut self, kind: Kind, place: Place) -> Part {
        if kind == Kind::ParallelFor && place.depth >= 2 {
            return leaf(0, 1);
        }
        let count = self.random.below(self.random.clone().below(2) * 30 + 12);
        let inner = (kind != Kind::Ordered && self.chance(20)).then(|| self.random.below(5));
        let types = [
            "int",
            "int",
            "unsigned",
            "unsigned",
            "long",
            "unsigned long",
            "short",
            "unsigned short",
            "signed char",
        ];
        let of = match (self.pick(&types), kind) {
            // clang has the tasks themselves test whether there are iterations, and tells libomp that there are 2^32: it makes
            // as many tasks as it is asked for, which an OMPT tool counts too.
            ("unsigned", Kind::Taskloop(_)) if count == 0 || inner == Some(0) => "int",
            ("unsigned long", Kind::Taskloop(_)) if count == 0 || inner == Some(0) => "long",
            (of, _) => of,
        };
        let own = match kind {
            Kind::ParallelFor => true,
            Kind::Taskloop(_) => false,
            _ => place.lexical,
        };
        let range = Range {
            of,
            count,
            style: self.random.below(8),
            inner,
            reduces: own && self.chance(30),
            lasts: own && self.chance(20) && count > 0 && inner != Some(0),
        };
        let mut clauses = Vec::new();
        match kind {
            Kind::Taskloop(tasks) => clauses.push(format!("num_tasks({tasks})")),
            _ => clauses.extend(self.schedule(kind != Kind::Ordered)),
        }
        if kind == Kind::Ordered {
            clauses.push("ordered".to_owned());
        }
        // What is reduced or kept must be whole before the next loop begins with it.
        if kind == Kind::For && !range.reduces && !range.lasts && self.chance(40) {
            clauses.push("nowait".to_owned());
        }
        if kind == Kind::ParallelFor {
            clauses.extend(self.team_clauses());
        }
        let inside = Place {
            team: false,
            lexical: false,
            alone: false,
            closed: place.closed,
            depth: place.depth + usize::from(kind == Kind::ParallelFor),
            times: place.times * count.max(1) * inner.unwrap_or(1).max(1),
        };
        let mut part = self.around(Form::Loop(kind, range), inside);
        part.clauses = clauses;
        part
    }

    /// A schedule; `modified`: a modifier may stand before it.
    fn schedule(&mut self, modified: bool) -> Option<String> {
        let kind = self.pick(&[
            "", "static", "static", "dynamic", "guided", "runtime", "auto",
        ]);
        if kind.is_empty() {
            return None;
        }
        let chunked = !matches!(kind, "runtime" | "auto") && self.chance(60);
        let modifier = match (kind, self.random.below(6)) {
            ("dynamic" | "guided", 0) if modified => "nonmonotonic:",
            ("dynamic" | "guided", 1) if modified => "monotonic:",
            _ => "",
        };
        Some(match chunked {
            true => format!("schedule({modifier}{kind}, {})", 1 + self.random.below(5)),
            false => format!("schedule({modifier}{kind})"),
        })
    }

    fn sections(&mut self, place: Place) -> Part {
        let combined = !place.team;
        if combined && place.depth >= 2 {
            return leaf(0, 2);
        }
        let inside = Place {
            team: false,
            lexical: false,
            alone: false,
            depth: place.depth + usize::from(combined),
            ..place
        };
        let bodies = 1 + self.random.below(4);
        let mut clauses = match combined {
            true => self.team_clauses(),
            false => Vec::new(),
        };
        if !combined && self.chance(40) {
            clauses.push("nowait".to_owned());
        }
        Part {
            id: 0,
            form: Form::Sections(combined),
            clauses,
            bodies: (0..bodies).map(|_| self.list(inside, 2)).collect(),
        }
    }

    fn excluding(&mut self, place: Place) -> Part {
        let form = self.pick(&[0, 1]);
        let inside = Place {
            team: false,
            closed: true,
            ..place
        };
        self.around([Form::Critical, Form::Lock][form].clone(), inside)
    }

    fn single(&mut self, place: Place) -> Part {
        let inside = Place {
            team: false,
            lexical: false,
            alone: false,
            ..place
        };
        if self.chance(30) {
            return self.around(Form::Master, inside);
        }
        let copies = self.chance(25);
        let mut part = self.around(Form::Single(copies), inside);
        if !copies && self.chance(40) {
            part.clauses.push("nowait".to_owned());
        }
        part
    }

    fn tasking(&mut self, place: Place) -> Part {
        // Outside of all teams, libgomp hangs in a team that a task begins, and crashes in some reductions.
        let serial = place.depth == 0;
        let inside = Place {
            team: false,
            lexical: false,
            alone: false,
            depth: place.depth + 2 * usize::from(serial),
            ..place
        };
        match self.random.below(10) {
            0..=3 => {
                let mut part = self.around(Form::Task, inside);
                for (percent, clause) in [
                    (15, "if(x & 1)"),
                    (10, "if(K(0))"),
                    (10, "final(x & 1)"),
                    // libomp trips over most of these.
                    (9, "UNTIED"),
                    (3, "untied"),
                    (8, "mergeable"),
                    (8, "priority(2)"),
                ] {
                    let taken = part
                        .clauses
                        .iter()
                        .any(|c| c[..2].eq_ignore_ascii_case(&clause[..2]));
                    if !taken && self.chance(percent) {
                        part.clauses.push(clause.to_owned());
                    }
                }
                part
            }
            4 | 5 => {
                let tasks = 1 + self.random.below(6);
                self.loop_of(Kind::Taskloop(tasks), place)
            }
            6 => {
                let tasks = 2 + self.random.below(4);
                self.around(Form::Chain(tasks), inside)
            }
            7 if !serial => {
                let tasks = 2 + self.random.below(4);
                self.around(Form::Reducing(tasks), inside)
            }
            8 => Part {
                form: Form::Taskwait,
                ..leaf(0, 0)
            },
            _ => self.around(Form::Taskgroup, inside),
        }
    }
}

/// What a part with arithmetic only is.
fn leaf(id: usize, variant: usize) -> Part {
    Part {
        id,
        form: Form::Work(variant),
        clauses: Vec::new(),
        bodies: Vec::new(),
    }
}

fn inside_team(place: Place) -> Place {
    Place {
        team: true,
        lexical: true,
        alone: place.alone && place.depth == 0,
        closed: false,
        depth: place.depth + 1,
        times: place.times * 3,
    }
}
