//! The strategies on made-up programs: `cargo run --release -p ompfuse-fuse --features test-support --example strategies
//! [XUS] [SEED] [REPETITIONS] [few] [NAME...]`; `few`: only lgl and joint.

use ompfuse_fuse::XuTable;
use ompfuse_fuse::experiment::{Estimate, Method, Setting, experiment};
use ompfuse_fuse::testing::programs::{Shape, execute};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = args.iter().filter(|a| a.parse::<u64>().is_err()).collect();
    let is_wanted =
        |name: &str| names.iter().all(|n| *n == "few") || names.iter().any(|n| *n == name);
    let mut numbers = args.iter().filter_map(|a| a.parse::<u64>().ok());
    let xus = numbers.next().unwrap_or(2000) as usize;
    let seed = numbers.next().unwrap_or(1);
    let repetitions = numbers.next().unwrap_or(3) as usize;
    let setting = Setting {
        slots: 5,
        period_ns: 100_000,
        references: 5,
        repetitions,
        methods: if args.iter().any(|a| a == "few") {
            vec![Method::Lgl, Method::Joint]
        } else {
            Method::ALL.to_vec()
        },
    };
    let show = |e: Option<Estimate>| e.map_or("-".to_owned(), |e| format!("{:.4}", e.mean));
    for shape in Shape::ALL.into_iter().filter(|s| is_wanted(s.name())) {
        let runs: Vec<XuTable> = (0..20).map(|run| execute(shape, xus, seed, run)).collect();
        let runs: Vec<&XuTable> = runs.iter().collect();
        let result = experiment(&runs, &setting, &|| {}).expect("enough runs");
        println!(
            "{} ({} XUs; fresh {})",
            shape.name(),
            result.xus,
            show(result.fresh)
        );
        for m in &result.methods {
            println!(
                "  {:14} {:2} runs  epd {:>8}  ce {:>7}  hidden {:>7}  by event {:>7}  matched {:>6}",
                m.method.name(),
                m.runs,
                show(m.epd),
                show(m.correlation_error),
                show(m.hidden_error),
                show(m.hidden_error_by_event),
                show(m.matched)
            );
        }
    }
}
