// SPDX-License-Identifier: GPL-2.0

//! Running one loom model so that its result can be believed.
//!
//! loom ends a run early without a word when a limit of its environment is reached, and a test
//! without the cfg passes without running. So each model prints one line with what was explored,
//! and a run that explored nothing, or was cut, or did not see every outcome that the model is
//! about, fails.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::{
            AtomicUsize,
            Ordering::SeqCst, //
        },
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
/// may.
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
    let mut builder = loom::model::Builder::new();
    // The environment can cut a run; that is not the environment's to decide.
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.preemption_bound = match bound {
        Bound::Exhaustive => None,
        Bound::Preemptions(n) => Some(n),
    };
    let seen = Outcomes::default();
    let executions = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let (inner_seen, inner_executions) = (seen.clone(), executions.clone());
    let _replay = Replay(name);
    builder.check(move || {
        inner_executions.fetch_add(1, SeqCst);
        model(&inner_seen);
    });
    let executions = executions.load(SeqCst);
    let seen = seen.0.lock().expect("no thread panics in here");
    println!(
        "loom: {name} {bound} executions={executions} {:.2}s outcomes={seen:?}",
        start.elapsed().as_secs_f64()
    );
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

/// Says on the way out of a failing model how to run that model again.
struct Replay<'a>(&'a str);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "loom: {} failed; to run it again: make loom T={}",
                self.0, self.0
            );
        }
    }
}
