//! The columns of an exported table agree with the report.

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::matrix::Matrix;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{recorded, some};
use std::collections::{BTreeMap, BTreeSet};

/// Names that a region's units can go by, by its address: what it is, and the other half of a combined construct.
fn constructs(report: &serde_json::Value) -> BTreeMap<String, BTreeSet<String>> {
    let regions = report["regions"].as_array().expect("a list of regions");
    let of_region = |region: &serde_json::Value| {
        let names = ["construct", "combined_with"].map(|key| region[key].as_str());
        let names = names.into_iter().flatten().map(str::to_owned).collect();
        let address = region["name"].as_str().expect("a region has a name");
        (address.to_owned(), names)
    };
    regions.iter().map(of_region).collect()
}

fn hex(label: &str) -> String {
    let number = |n: &str| format!("{:#x}", n.parse::<u64>().expect("a label has numbers"));
    label.split('.').map(number).collect::<Vec<_>>().join(".")
}

fn check(build: &Build, xus: &[Xu], report: &serde_json::Value) {
    assert!(!xus.is_empty(), "{build}");
    let constructs = constructs(report);
    for xu in xus {
        let column = |name: &str| xu.columns[name].as_str();
        let of_region = &constructs[column("type")];
        assert!(
            of_region.contains(column("region_construct")),
            "{build}: a part of {}, but the report has {of_region:?}: {xu:?}",
            column("region_construct")
        );
        assert_eq!(column("label_hex"), hex(&xu.label), "{build}");
    }
}

/// Records each variant of a fixture, and compares.
fn agree(name: &str, compiler: &str) {
    let builds = Fixture::open(name).ordinary_builds(compiler).into_iter();
    for build in some(builds) {
        let run = recorded::run(&build, Matrix::get().ordinary_threads()).ok();
        let xus = table::export_with(&run.folder, &["--hex-labels"]);
        check(&build, &xus, &run.report());
    }
}

macro_rules! fixtures {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn gcc() {
                super::agree(stringify!($name), "gcc");
            }
            #[test]
            fn clang() {
                super::agree(stringify!($name), "clang");
            }
        })*
    };
}

fixtures!(listing11 loops sections tasking taskloop teams);
