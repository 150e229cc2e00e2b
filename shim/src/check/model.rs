// SPDX-License-Identifier: GPL-2.0

//! Running one loom model so that its result can be believed.
//!
//! loom ends a run early without a word when a limit of its environment is reached, and a test
//! without the cfg passes without running. So each model prints one line with what was explored,
//! and a run that explored nothing, or was cut, or did not see every outcome that the model is
//! about, fails; one that sees another outcome fails at once.

use super::replay::Exploration;
use std::{
    collections::BTreeMap,
    sync::{
        atomic::Ordering::SeqCst,
        Arc,
        Mutex,
        MutexGuard, //
    },
    thread,
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

/// The outcomes that a model is about, and those that it has seen, over all of its executions.
#[derive(Clone, Debug)]
pub struct Outcomes {
    expected: Arc<[&'static str]>,
    seen: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Outcomes {
    fn new(expected: &[&'static str]) -> Self {
        Self {
            expected: expected.into(),
            seen: Arc::default(),
        }
    }

    /// Notes that this execution ended so.
    ///
    /// # Panics
    ///
    /// If that is not an outcome of the model: here, so that it is this execution that fails and is
    /// replayed.
    pub fn saw(&self, outcome: &'static str) {
        assert!(
            self.expected.contains(&outcome),
            "'{outcome}' is not an outcome of this model"
        );
        *self.seen().entry(outcome).or_default() += 1;
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.seen.lock().expect("no thread panics in here")
    }
}

/// The path of the test that this thread runs, by which a failure says how to replay it.
fn test_path() -> String {
    // libtest names the thread, and has none of its own that it could run a test on.
    match thread::current().name() {
        Some("main") | None => panic!("a model is explored by a test, on the test's own thread"),
        Some(path) => path.to_string(),
    }
}

/// Explores `model` up to `bound`, for the test that calls this, and whose name the model has; each
/// of `outcomes` must occur in some execution, and no other may.
///
/// # Panics
///
/// If the model fails in any execution, if no execution was run, or if an outcome never occurred.
/// If the thread is not a test's.
pub fn check(
    bound: Bound,
    outcomes: &[&'static str],
    model: impl Fn(&Outcomes) + Send + Sync + 'static,
) {
    let seen = Outcomes::new(outcomes);
    let inner_seen = seen.clone();
    let exploration = Exploration {
        test: test_path(),
        preemption_bound: match bound {
            Bound::Exhaustive => None,
            Bound::Preemptions(n) => Some(n),
        },
        model: Arc::new(move || model(&inner_seen)),
        executions: Arc::default(),
    };
    let name = exploration.name().to_string();
    let executions = exploration.executions.clone();
    let start = Instant::now();
    if !exploration.run() {
        return;
    }
    let executions = executions.load(SeqCst);
    println!(
        "loom: {name} {bound} executions={executions} {:.2}s outcomes={:?}",
        start.elapsed().as_secs_f64(),
        seen.seen()
    );
    judge(&name, executions, &seen);
}

/// Whether a run that no execution failed in may be believed.
fn judge(name: &str, executions: usize, outcomes: &Outcomes) {
    assert!(executions > 0, "{name}: loom explored nothing");
    for outcome in &*outcomes.expected {
        assert!(
            outcomes.seen().contains_key(outcome),
            "{name}: '{outcome}' never occurred"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(outcomes: &[&'static str]) -> Outcomes {
        let both = Outcomes::new(&["one", "other"]);
        outcomes.iter().for_each(|outcome| both.saw(outcome));
        both
    }

    #[test]
    fn a_model_that_saw_what_it_is_about_passes() {
        judge("a model", 2, &saw(&["one", "other"]));
    }

    #[test]
    #[should_panic(expected = "a_model_is_judged: 'other' never occurred")]
    fn a_model_is_judged() {
        let run = |outcomes: &Outcomes| outcomes.saw("one");
        check(Bound::Exhaustive, &["one", "other"], run);
    }

    #[test]
    #[should_panic(expected = "loom explored nothing")]
    fn a_model_that_explored_nothing_fails() {
        judge("a model", 0, &Outcomes::new(&[]));
    }

    #[test]
    #[should_panic(expected = "'other' never occurred")]
    fn an_outcome_that_never_occurred_fails() {
        judge("a model", 2, &saw(&["one"]));
    }

    #[test]
    #[should_panic(expected = "'third' is not an outcome of this model")]
    fn an_unexpected_outcome_fails() {
        saw(&["one", "third"]);
    }

    #[test]
    #[should_panic(expected = "a model is explored by a test")]
    fn a_model_on_another_thread_is_refused() {
        let run = || check(Bound::Exhaustive, &[], |_| ());
        let ended = thread::spawn(run).join();
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    }
}
