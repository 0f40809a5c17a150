//! Against schedules worked out by hand.

use super::{Play, play};
use crate::run::nodes::NONE;
use crate::span::graph::{Graph, Kind, Step, Strand, Team};

/// A team of two threads, and tasks: by strand what it is, who has created it, and its steps.
fn graph(strands: &[(Kind, u32, &[Step])]) -> Graph {
    let mut graph = Graph::default();
    for (at, &(kind, creator, steps)) in (0..).zip(strands) {
        let first = graph.steps.len() as u32;
        graph.steps.extend(steps);
        graph.strands.push(Strand {
            kind,
            first,
            end: graph.steps.len() as u32,
            task: at,
            creator,
            since: 0,
            team: 0,
            preds: (0, 0),
            is_detached: false,
            rec: 0,
            iterations: 1,
        });
    }
    graph.teams.push(Team {
        size: 2,
        members: vec![0, 1],
    });
    graph
}

/// The other thread has taken a task and made two of it. Who waits for that task may execute one of these, or not.
#[test]
fn who_waits_executes_what_its_runtime_lets_it() {
    let create = |task| Step::Create { ticks: 0, task };
    let code = |ticks| Step::Code { ticks, rec: 0 };
    let mut graph = graph(&[
        (
            Kind::Member(0),
            NONE,
            &[create(2), code(5), Step::Wait, Step::Barrier],
        ),
        (Kind::Member(1), NONE, &[Step::Barrier]),
        (Kind::Task, 0, &[create(3), create(4), Step::Wait]),
        (Kind::Task, 2, &[code(10)]),
        (Kind::Task, 2, &[code(10)]),
    ]);
    let ticks = |graph: &Graph| play(graph, Play::default()).expect("it ends").ticks;
    assert_eq!(ticks(&graph), 15);
    graph.children_only = true;
    assert_eq!(ticks(&graph), 20);
}
