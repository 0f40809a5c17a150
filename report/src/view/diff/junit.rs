//! JUnit XML: a test case for each `--fail-on`; without any, one for the verdict.

use crate::compare::Diff;
use crate::compare::gate::{Outcome, Verdict};
use crate::words;
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// The XML.
///
/// # Errors
/// [`SerializeError`] if it can't be encoded.
pub fn junit(diff: &Diff, outcomes: &[Outcome]) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(format!("{} against {}", diff.b.name, diff.a.name));
    for outcome in outcomes {
        let status = match (outcome.is_error(), outcome.holds()) {
            (true, _) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_message(words::outcome(outcome));
                status
            }
            (false, true) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(words::outcome(outcome));
                if let Verdict::Holds { hits } = &outcome.verdict {
                    let all: Vec<String> =
                        hits.iter().map(|hit| words::explained(hit, diff)).collect();
                    status.set_description(all.join("\n"));
                }
                status
            }
            (false, false) => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(outcome.expression.as_str(), status);
        case.set_classname("ompfuse.diff");
        if !outcome.holds() && !outcome.is_error() {
            case.set_system_out(words::outcome(outcome));
        }
        suite.add_test_case(case);
    }
    if outcomes.is_empty() {
        let mut case = TestCase::new("verdict", TestCaseStatus::success());
        case.set_classname("ompfuse.diff");
        case.set_system_out(words::verdict(diff));
        suite.add_test_case(case);
    }
    let mut report = Report::new("ompfuse diff");
    report.add_test_suite(suite);
    report.to_string()
}
