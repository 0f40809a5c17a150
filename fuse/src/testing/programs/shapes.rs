//! The XUs of made-up programs.

use super::Random;

/// What a program's XUs are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Tasks that create tasks (knapsack): their work is anything from nothing to much, and fixed by the label.
    Tree,
    /// The same with little work per task (n-queens).
    Bushes,
    /// A few loops of static ranges, again and again (CG): the same range does the same work on the same thread each time.
    Rows,
    /// The same with a dynamic schedule.
    RowsDynamic,
    /// Loops over grids of very different sizes (MG).
    Levels,
    /// Tasks of four types, equal work in each (Cholesky): they differ by where their data was.
    Tiles,
    /// Loops whose ranges depend on timing: no two runs have the same labels.
    Guided,
    /// Labels without meaning: what an XU does is drawn again in each run (work from a queue).
    Lottery,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 8] = [
        Shape::Tree,
        Shape::Bushes,
        Shape::Rows,
        Shape::RowsDynamic,
        Shape::Levels,
        Shape::Tiles,
        Shape::Guided,
        Shape::Lottery,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Tree => "tree",
            Shape::Bushes => "bushes",
            Shape::Rows => "rows",
            Shape::RowsDynamic => "rows-dynamic",
            Shape::Levels => "levels",
            Shape::Tiles => "tiles",
            Shape::Guided => "guided",
            Shape::Lottery => "lottery",
        }
    }

    pub(super) fn is_static(self) -> bool {
        self == Shape::Rows
    }
}

/// An XU, as far as the program determines it.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) label: Vec<u64>,
    pub(super) site: u32,
    /// Instructions.
    pub(super) work: f64,
    /// Shares of the instructions.
    pub(super) memory: f64,
    pub(super) branches: f64,
    pub(super) float: f64,
    /// Share of the branches that are mispredicted.
    pub(super) surprise: f64,
    /// Cache lines that it needs.
    pub(super) lines: f64,
    /// Where its data is, from 0 to 1.
    pub(super) place: f64,
}

/// What is typical of a type.
#[derive(Debug, Clone, Copy)]
struct Kind {
    memory: f64,
    branches: f64,
    float: f64,
    surprise: f64,
}

fn kind(site: u32) -> Kind {
    let mut random = Random::new(u64::from(site) + 77);
    Kind {
        memory: 0.15 + 0.3 * random.share(),
        branches: 0.05 + 0.15 * random.share(),
        float: 0.3 * random.share(),
        surprise: 0.01 + 0.08 * random.share(),
    }
}

/// An XU of a type; `vary`: how much its mixture of instructions differs from the type's.
fn unit(
    label: Vec<u64>,
    site: u32,
    work: f64,
    lines: f64,
    place: f64,
    vary: f64,
    random: &mut Random,
) -> Unit {
    let k = kind(site);
    Unit {
        label,
        site,
        work: work.max(50.0).round(),
        memory: (k.memory * random.factor(vary)).min(0.6),
        branches: (k.branches * random.factor(vary)).min(0.25),
        float: (k.float * random.factor(vary)).min(0.5),
        surprise: (k.surprise * random.factor(2.0 * vary)).min(0.3),
        lines: lines.max(2.0),
        place,
    }
}

/// The XUs in the order in which they are executed. `run`: random numbers of the run.
pub(super) fn units(shape: Shape, xus: usize, seed: u64, run: &mut Random) -> Vec<Unit> {
    // What the program fixes is drawn from the seed alone.
    let mut program = Random::new(seed);
    let random = &mut program;
    match shape {
        Shape::Tree => tree(xus, random, 20_000.0, 1.0),
        Shape::Bushes => tree(xus, random, 900.0, 0.5),
        Shape::Rows | Shape::RowsDynamic => rows(xus, random),
        Shape::Levels => levels(xus, random),
        Shape::Tiles => tiles(xus, random),
        Shape::Guided => guided(xus, random, run),
        Shape::Lottery => (0..xus)
            .map(|at| {
                let work = 6000.0 * run.factor(0.9);
                let lines = work / 40.0 * run.factor(0.3);
                let place = run.share();
                unit(vec![0, 1 + at as u64, 3], 0, work, lines, place, 0.15, run)
            })
            .collect(),
    }
}

fn tree(xus: usize, random: &mut Random, work: f64, spread: f64) -> Vec<Unit> {
    let mut units = vec![];
    // Depth first, as one thread would execute them.
    let mut stack: Vec<(Vec<u64>, f64, f64)> = (0..8u64)
        .map(|thread| {
            (
                vec![0, 1, 11, 0, thread, 22],
                work,
                (thread as f64 + 0.5) / 8.0,
            )
        })
        .collect();
    let mut queue = std::collections::VecDeque::from(std::mem::take(&mut stack));
    while units.len() < xus {
        let Some((label, work, place)) = queue.pop_front() else {
            break;
        };
        let own = work * random.factor(spread);
        let lines = own / 60.0 * random.factor(0.4);
        for child in 1..=2 + random.next() % 2 {
            let place = (place + 0.1 * random.normal()).rem_euclid(1.0);
            // The others' turn never comes.
            if units.len() + queue.len() < xus {
                let mut label = label.clone();
                label.extend([child, 22]);
                queue.push_back((label, work * 0.9, place));
            }
        }
        units.push(unit(label, 0, own, lines, place, 0.12, random));
    }
    units
}

fn rows(xus: usize, random: &mut Random) -> Vec<Unit> {
    const RANGES: usize = 64;
    let sizes: Vec<(f64, f64)> = (0..RANGES)
        .map(|_| (random.factor(0.5), random.factor(0.2)))
        .collect();
    let mut units = vec![];
    for iteration in 0..xus.div_ceil(2 * RANGES) {
        for (site, work) in [(0, 40_000.0), (1, 4000.0)] {
            for (range, size) in sizes.iter().enumerate() {
                let label = vec![
                    0,
                    1 + iteration as u64,
                    11,
                    1 + u64::from(site),
                    20 + u64::from(site),
                    range as u64 * 100,
                ];
                // Equal in each iteration.
                let mut of_range = Random::new(range as u64 * 2 + u64::from(site));
                let (work, place) = (work * size.0, range as f64 / RANGES as f64);
                let lines = work / 30.0 * size.1;
                units.push(unit(label, site, work, lines, place, 0.05, &mut of_range));
            }
        }
    }
    units.truncate(xus);
    units
}

fn levels(xus: usize, random: &mut Random) -> Vec<Unit> {
    const RANGES: usize = 16;
    let mut units = vec![];
    let mut cycle = 0;
    while units.len() < xus {
        cycle += 1;
        for (visit, level) in (0..).zip([0, 1, 2, 3, 2, 1, 0]) {
            for site in 0..3u32 {
                for range in 0..RANGES {
                    let label = vec![
                        0,
                        cycle,
                        11,
                        1 + 3 * visit + u64::from(site),
                        20 + u64::from(site),
                        range as u64 * 32,
                    ];
                    let work = 60_000.0 / 8f64.powi(level) * random.factor(0.02);
                    let place = (range as f64 + 0.1 * f64::from(level)) / RANGES as f64;
                    units.push(unit(label, site, work, work / 25.0, place, 0.02, random));
                }
            }
        }
    }
    units.truncate(xus);
    units
}

fn tiles(xus: usize, random: &mut Random) -> Vec<Unit> {
    // n^3/6 tasks: potrf, trsm, syrk, gemm.
    let n = (6.0 * xus as f64).cbrt().ceil() as usize;
    let mut units = vec![];
    let mut rank = 0;
    let mut task = |site: u32, work: f64, place: f64, random: &mut Random| {
        rank += 1;
        let label = vec![0, 1, 11, 1, 15, rank, 20 + u64::from(site)];
        units.push(unit(label, site, work, work / 50.0, place, 0.01, random));
    };
    for k in 0..n {
        let at = |i: usize, j: usize| (i * n + j) as f64 / (n * n) as f64;
        task(0, 20_000.0, at(k, k), random);
        for i in k + 1..n {
            task(1, 36_000.0, at(i, k), random);
        }
        for i in k + 1..n {
            task(2, 34_000.0, at(i, i), random);
            for j in k + 1..i {
                task(3, 60_000.0, at(i, j), random);
            }
        }
    }
    units.truncate(xus);
    units
}

fn guided(xus: usize, random: &mut Random, run: &mut Random) -> Vec<Unit> {
    const ITERATIONS: u64 = 4000;
    // What an iteration costs, smoothly varying.
    let mut cost = 60.0;
    let costs: Vec<f64> = (0..ITERATIONS)
        .map(|_| {
            cost = (cost * random.factor(0.05)).clamp(10.0, 400.0);
            cost
        })
        .collect();
    let mut units = vec![];
    let mut instance = 0;
    while units.len() < xus {
        instance += 1;
        let mut first = 0;
        while first < ITERATIONS {
            let left = (ITERATIONS - first) as f64;
            let n =
                ((left / 16.0 * (0.7 + 0.6 * run.share())) as u64).clamp(4, ITERATIONS - first + 4);
            let n = n.min(ITERATIONS - first);
            let work: f64 = costs[first as usize..(first + n) as usize].iter().sum();
            let label = vec![0, instance, 11, 1, 20, first];
            let place = first as f64 / ITERATIONS as f64;
            units.push(unit(label, 0, work, work / 30.0, place, 0.03, run));
            first += n;
        }
    }
    units.truncate(xus);
    units
}
