//! Functions that moved, or were divided.

use super::*;

/// Loops of functions of files, executed so many times.
fn of_functions(build: &str, functions: &[(&str, &str, &[f64])]) -> Side {
    let mut regions = vec![];
    for (function, file, counts) in functions {
        for &count in *counts {
            let at = regions.len() as u32 + 1;
            let mut region = region(u64::from(at), Some(10 * at), count);
            region.key.function = Some((*function).to_owned());
            region.key.file = Some(format!("/src/{file}"));
            regions.push(region);
        }
    }
    side(build, regions)
}

#[test]
fn functions_are_matched_in_other_files_and_namespaces_if_no_other_may_be_meant() {
    let before = of_functions(
        "a",
        &[
            ("old::Mesh::sweep", "one.cc", &[4.0, 2.0]),
            ("solve", "one.cc", &[3.0]),
            ("stay", "two.cc", &[1.0]),
            ("go", "two.cc", &[1.0]),
        ],
    );
    let moved = |mesh: &str, counts: &[f64]| {
        let functions = [
            ("stay", "two.cc", &[1.0][..]),
            ("solve", "two.cc", &[3.0]),
            (mesh, "two.cc", counts),
            ("go", "three.cc", &[1.0]),
        ];
        of_functions("b", &functions)
    };
    let all = [(1, 3), (2, 4), (3, 2), (4, 1), (5, 5)];
    let found = moved("old::Mesh::sweep", &[4.0, 2.0]);
    assert_eq!(addresses(&before, &found), all);
    let bases = matched(&before, &found);
    let by_function = bases.pairs.iter().filter(|p| p.basis == Basis::Function);
    assert_eq!(by_function.count(), 4);
    assert_eq!(
        addresses(&before, &moved("inner::fresh::Mesh::sweep", &[4.0, 2.0])),
        all
    );
    assert_eq!(addresses(&before, &moved("sweep", &[4.0, 2.0])), all);
    // Other counts of the same input: another function, or a changed one.
    let without: Vec<(u64, u64)> = all[2..].to_vec();
    assert_eq!(
        addresses(&before, &moved("fresh::Mesh::sweep", &[9.0, 8.0])),
        without
    );
    assert_eq!(
        addresses(&before, &moved("old::Mesh::sweep", &[9.0, 8.0])),
        without
    );
    // One that is still there has moved nowhere; nor is known which of two has.
    let one = of_functions("a", &[("f", "a.c", &[5.0]), ("f", "b.c", &[5.0])]);
    let other = of_functions("b", &[("f", "a.c", &[5.0]), ("f", "c.c", &[5.0])]);
    assert!(
        addresses(&one, &other).len() <= 2,
        "{:?}",
        addresses(&one, &other)
    );
    let gone = of_functions("a", &[("x::f", "a.c", &[5.0])]);
    let twice = of_functions("b", &[("y::f", "b.c", &[5.0]), ("z::f", "c.c", &[5.0])]);
    assert_eq!(addresses(&gone, &twice), []);
}

#[test]
fn a_function_is_divided_if_new_ones_have_together_what_it_lost() {
    let whole = of_functions(
        "a",
        &[("f", "a.c", &[90.0, 70.0, 60.0]), ("g", "b.c", &[5.0])],
    );
    let parts = |first: &[f64], second: &[f64]| {
        let functions = [
            ("g", "b.c", &[5.0][..]),
            ("f2", "c.c", first),
            ("f1", "d.c", second),
        ];
        of_functions("b", &functions)
    };
    let divided = parts(&[60.0, 70.0], &[90.0]);
    assert_eq!(
        addresses(&whole, &divided),
        [(1, 4), (2, 3), (3, 2), (4, 1)]
    );
    let joined = [(1, 4), (2, 3), (3, 2), (4, 1)].map(|(a, b)| (b, a));
    let mut found = addresses(&divided, &whole);
    found.sort_by_key(|pair| pair.1);
    assert_eq!(found, joined);
    let bases = matched(&whole, &divided);
    assert_eq!(
        bases
            .pairs
            .iter()
            .filter(|p| p.basis == Basis::Parts)
            .count(),
        3
    );
    // One is missing, one is more, one does something else, two are alike, or it is one other function.
    for other in [
        parts(&[60.0], &[90.0]),
        parts(&[60.0, 70.0, 3.0], &[90.0]),
        parts(&[60.0, 71.0], &[90.0]),
        parts(&[60.0, 90.0, 70.0], &[90.0]),
        of_functions(
            "b",
            &[("g", "b.c", &[5.0]), ("h", "c.c", &[90.0, 70.0, 60.0])],
        ),
    ] {
        assert_eq!(addresses(&whole, &other).len(), 1, "{other:?}");
    }
}

#[test]
fn places_tell_regions_of_several_files_apart_if_none_is_gone() {
    let of = |build, files: [&str; 2], places: &[&str]| {
        let (first, second) = ([5.0; 2], vec![5.0; places.len() - 2]);
        let mut side = of_functions(build, &[("f", files[0], &first), ("f", files[1], &second)]);
        for (region, place) in side.regions.iter_mut().zip(places) {
            region.places = Some((*place).to_owned());
        }
        side
    };
    let before = of("a", ["x.c", "y.c"], &["0", "1", "2"]);
    let moved = of("b", ["z.c", "w.c"], &["2", "0", "1"]);
    assert_eq!(addresses(&before, &moved), [(1, 2), (2, 3), (3, 1)]);
    // What is behind the one that is gone stands where others stood.
    let less = of("b", ["z.c", "w.c"], &["0", "1"]);
    assert_eq!(addresses(&before, &less), []);
}
