use super::metrics::EVENTS;
use super::*;
use crate::{caliper, collapsed, cube, extrap, tau};

/// The program, a function and a region of these names, on two threads. Times are 1, 0 and 2 of the first, 0, 0 and 3 of the other.
fn tree(names: [&str; 3]) -> CallTree {
    let kinds = [
        FrameKind::Program,
        FrameKind::Function,
        FrameKind::Region(None),
    ];
    let frame = |(name, kind): (&str, FrameKind)| Frame {
        name: name.to_owned(),
        kind,
        function: None,
        file: Some("a dir/{f}.c".to_owned()).filter(|_| kind == kinds[2]),
        line: Some(7),
        module: None,
        build_id: None,
        address: None,
    };
    let metrics = metrics(&[("cycles", false)]);
    let values = |time: u64| {
        let mut values = vec![0; metrics.len()];
        (values[TIME], values[VISITS], values[EVENTS]) = (time, 1, 10 * time);
        values
    };
    let node = |frame: usize, own: &[(usize, u64)]| Node {
        parent: frame.checked_sub(1),
        frame,
        own: own
            .iter()
            .map(|&(thread, time)| (thread, values(time)))
            .collect(),
    };
    let thread = |number| Thread { process: 0, number };
    CallTree {
        program: names[0].to_owned(),
        host: "host".to_owned(),
        duration_ns: None,
        team: 2,
        processes: vec![Process {
            pid: Some(7),
            mpi_rank: None,
            host: "host".to_owned(),
        }],
        threads: vec![thread(0), thread(1)],
        frames: names.into_iter().zip(kinds).map(frame).collect(),
        nodes: vec![node(0, &[(0, 1)]), node(1, &[]), node(2, &[(0, 2), (1, 3)])],
        metrics,
        left_out: vec![],
        samples: None,
        paths: vec![],
    }
}

const HOSTILE: [&str; 3] = ["#a;b", "f => \"g\"->h", "{l} [{x} {1,2}]\t\u{1}"];

#[test]
fn own_values_and_what_is_inside() {
    let tree = tree(["p", "main", "region"]);
    let time = |thread: usize| -> Vec<Option<u64>> {
        let all = tree.inclusive(thread);
        all.into_iter().map(|values| Some(values?[TIME])).collect()
    };
    assert_eq!(time(0), [Some(3), Some(2), Some(2)]);
    assert_eq!(time(1), [Some(3), Some(3), Some(3)]);
    assert_eq!(tree.own(2, EVENTS), 50);
    assert_eq!(
        tree.metric("Limited-Parallelism"),
        tree.metric("limited parallelism")
    );
    assert_eq!(tree.metric("CYCLES"), Some(EVENTS));
    assert_eq!(tree.metric("loads"), None);
}

#[test]
fn signs_of_stacks_are_no_part_of_names() {
    let mut text = vec![];
    collapsed::write(&mut text, &tree(HOSTILE), TIME).unwrap();
    let text = String::from_utf8(text).unwrap();
    let region = "{l} [{x} {1,2}]";
    assert_eq!(text, format!("_#a:b 1\n_#a:b;f => \"g\"->h;{region} 5\n"));
}

#[test]
fn signs_of_tau_are_no_part_of_names() {
    let mut files = BTreeMap::new();
    let keep = |name: &str, bytes: &[u8]| {
        files.insert(name.to_owned(), String::from_utf8(bytes.to_vec()).unwrap());
        Ok(())
    };
    tau::write(&tree(HOSTILE), keep).unwrap();
    let text = &files["MULTI__CYCLES/profile.0.0.0"];
    let region = "(l) [(x) (1,2)] [{a_dir/_f_.c} {7,0}]";
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "5 templated_functions_MULTI_CYCLES");
    let expected = [
        "\"#a;b\" 1 0 10 30 0 GROUP=\"TAU_DEFAULT\"".to_owned(),
        "\"f -> 'g'->h\" 1 1 0 20 0 GROUP=\"TAU_USER\"".to_owned(),
        format!("\"{region}\" 1 0 20 20 0 GROUP=\"OpenMP\""),
        "\"#a;b => f -> 'g'->h\" 1 1 0 20 0 GROUP=\"TAU_CALLPATH\"".to_owned(),
        format!("\"#a;b => f -> 'g'->h => {region}\" 1 0 20 20 0 GROUP=\"TAU_CALLPATH\""),
        "0 aggregates".to_owned(),
    ];
    assert_eq!(lines[2..], expected);
}

#[test]
fn signs_of_caliper_are_no_part_of_names() {
    let mut text = vec![];
    caliper::write(&mut text, &tree(["a,b=c", "d\\e", "f"])).unwrap();
    let text = String::from_utf8(text).unwrap();
    let nodes: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("attr=21,"))
        .collect();
    let id = |line: &str| line.split("id=").nth(1).unwrap()[..2].to_owned();
    let [program, function, region] = nodes[..] else {
        panic!("{text}")
    };
    assert!(program.ends_with("data=a\\,b\\=c"), "{program}");
    assert!(
        function.ends_with(&format!("data=d\\\\e,parent={}", id(program))),
        "{function}"
    );
    let record = format!("__rec=ctx,ref={},attr=23=", id(region));
    let record = text.lines().find(|line| line.starts_with(&record)).unwrap();
    assert!(
        record.ends_with(",data=0.000000005=0=0=0=0=0=2=50"),
        "{record}"
    );
}

#[test]
fn models_have_all_paths_of_all_profiles() {
    let (small, mut large) = (tree(["p", "main", "a->b"]), tree(["p", "main", "other"]));
    large.team = 4;
    large.metrics[EVENTS].name = "loads".to_owned();
    let mut text = vec![];
    extrap::write(&mut text, &[small, large]).unwrap();
    let text = String::from_utf8(text).unwrap();
    let of = |path: &str, metric: &str| -> Vec<(u64, f64)> {
        let lines = text
            .lines()
            .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
        let lines = lines.filter(|l| l["callpath"] == path && l["metric"] == metric);
        let point = |l: serde_json::Value| {
            (
                l["params"]["threads"].as_u64().unwrap(),
                l["value"].as_f64().unwrap(),
            )
        };
        lines.map(point).collect()
    };
    assert_eq!(of("p->main->a→b", "visits"), [(2, 2.0), (4, 0.0)]);
    assert_eq!(of("p->main->other", "visits"), [(2, 0.0), (4, 2.0)]);
    assert_eq!(of("p", "inclusive time"), [(2, 6e-9), (4, 6e-9)]);
    // Not every profile has it.
    assert!(of("p", "cycles").is_empty());
}

#[test]
fn an_archive_is_the_same_each_time() {
    let write = || {
        let mut bytes = vec![];
        cube::write(&mut bytes, &tree(HOSTILE)).unwrap();
        bytes
    };
    assert_eq!(write(), write());
    let bytes = write();
    let mut archive = tar::Archive::new(&*bytes);
    assert_eq!(
        archive.entries().unwrap().count(),
        1 + 2 * tree(HOSTILE).metrics.len()
    );
}
