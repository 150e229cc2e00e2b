// SPDX-License-Identifier: GPL-2.0

//! Running one loom model so that its result can be believed.
//!
//! loom ends a run early without a word when a limit of its environment is reached, and a test
//! without the cfg passes without running. So each model prints one line with what was explored,
//! and a run that explored nothing, or was cut, or did not see every outcome that the model is
//! about, fails.

use crate::replay::Exploration;
use std::{
    collections::BTreeMap,
    sync::{
        atomic::Ordering::SeqCst,
        Arc,
        Mutex, //
    },
    time::Instant, //
};

/// How far loom goes.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Every execution.
    Exhaustive,
    /// Every execution with at most this many preemptions.
    Preemptions(usize),
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Exhaustive => f.write_str("exhaustive"),
            Bound::Preemptions(n) => write!(f, "bound={n}"),
        }
    }
}

/// The outcomes that a model has seen, over all of its executions.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Outcomes {
    /// Notes that this execution ended so.
    pub fn saw(&self, outcome: &'static str) {
        *self
            .0
            .lock()
            .expect("no thread panics in here")
            .entry(outcome)
            .or_default() += 1;
    }
}

/// Explores `model` up to `bound`; each of `outcomes` must occur in some execution, and no other
/// may. `name` is that of the test, by which a failure says how to replay it.
///
/// # Panics
///
/// If the model fails in any execution, if no execution was run, or if an outcome never occurred.
pub fn check(
    name: &str,
    bound: Bound,
    outcomes: &[&'static str],
    model: impl Fn(&Outcomes) + Send + Sync + 'static,
) {
    let seen = Outcomes::default();
    let inner_seen = seen.clone();
    let exploration = Exploration {
        name: name.to_string(),
        preemption_bound: match bound {
            Bound::Exhaustive => None,
            Bound::Preemptions(n) => Some(n),
        },
        model: Arc::new(move || model(&inner_seen)),
        executions: Arc::default(),
    };
    let executions = exploration.executions.clone();
    let start = Instant::now();
    if !exploration.run() {
        return;
    }
    let executions = executions.load(SeqCst);
    let seen = seen.0.lock().expect("no thread panics in here");
    println!(
        "loom: {name} {bound} executions={executions} {:.2}s outcomes={seen:?}",
        start.elapsed().as_secs_f64()
    );
    judge(name, executions, outcomes, &seen);
}

/// Whether a run that no execution failed in may be believed.
fn judge(
    name: &str,
    executions: usize,
    outcomes: &[&'static str],
    seen: &BTreeMap<&'static str, usize>,
) {
    assert!(executions > 0, "{name}: loom explored nothing");
    for outcome in outcomes {
        assert!(
            seen.contains_key(outcome),
            "{name}: '{outcome}' never occurred"
        );
    }
    for outcome in seen.keys() {
        assert!(
            outcomes.contains(outcome),
            "{name}: '{outcome}' is not an outcome of this model"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(outcomes: &[&'static str]) -> BTreeMap<&'static str, usize> {
        outcomes.iter().map(|outcome| (*outcome, 1)).collect()
    }

    #[test]
    fn a_model_that_saw_what_it_is_about_passes() {
        judge("a model", 2, &["one", "other"], &seen(&["one", "other"]));
    }

    #[test]
    #[should_panic(expected = "a_model_is_judged: 'other' never occurred")]
    fn a_model_is_judged() {
        let run = |outcomes: &Outcomes| outcomes.saw("one");
        check(
            "a_model_is_judged",
            Bound::Exhaustive,
            &["one", "other"],
            run,
        );
    }

    #[test]
    #[should_panic(expected = "loom explored nothing")]
    fn a_model_that_explored_nothing_fails() {
        judge("a model", 0, &[], &seen(&[]));
    }

    #[test]
    #[should_panic(expected = "'other' never occurred")]
    fn an_outcome_that_never_occurred_fails() {
        judge("a model", 2, &["one", "other"], &seen(&["one"]));
    }

    #[test]
    #[should_panic(expected = "'third' is not an outcome of this model")]
    fn an_unexpected_outcome_fails() {
        judge(
            "a model",
            3,
            &["one", "other"],
            &seen(&["one", "other", "third"]),
        );
    }
}
