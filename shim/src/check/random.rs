// SPDX-License-Identifier: GPL-2.0

//! Running one test of shuttle so that its result can be believed: it says what it ran, fails if
//! that was nothing or if something that it is about never happened, and can be replayed. For what
//! has more threads or folios than loom can explore.

use shuttle::{
    scheduler::{
        PctScheduler,
        RandomScheduler,
        ReplayScheduler,
        Scheduler, //
    },
    Config,
    FailurePersistence,
    Runner, //
};
use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    sync::{
        Arc,
        Mutex, //
    },
    thread,
    time::Instant, //
};

/// The same for each run, which SHUTTLE_RANDOM_SEED changes.
const SEED: u64 = 7304;

/// How the next thread to run is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Each may be, at each access.
    Random,
    /// One runs for as long as it can, but for so many changes: what waits, waits long.
    Priorities(usize),
}

/// What happened, over all executions, and how often.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Seen {
    /// Notes that it happened in this execution.
    pub fn saw(&self, what: &'static str) {
        let mut seen = self.0.lock().expect("nobody panics with it");
        *seen.entry(what).or_default() += 1;
    }
}

/// Where the failing schedules are: in the build folder that the test is of.
fn failures() -> PathBuf {
    let exe = env::current_exe().expect("a test knows where it is");
    let build = exe.ancestors().nth(2).expect("a test is in <build>/deps");
    build.join("schedules")
}

/// Says, when the test fails, how to run that execution again. shuttle has named the file by then.
struct Replay<'n>(&'n str);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let how = if env::var_os("MM_BATCH_MAKE").is_some() {
                format!("make shuttle T={} REPLAY=<the file named above>", self.0)
            } else {
                "the same command, for this test alone, with SHUTTLE_REPLAY=<the file named above>"
                    .to_string()
            };
            eprintln!(
                "shuttle: {} failed; to replay that execution:\n    {how}",
                self.0
            );
        }
    }
}

/// Runs `test` so many times, for the test that calls this; each of `expected` must happen.
///
/// # Panics
///
/// If the test fails, if it was not run so many times, or if something expected never happened.
pub fn check(
    choice: Choice,
    executions: usize,
    expected: &[&'static str],
    test: impl Fn(&Seen) + Send + Sync + 'static,
) {
    let name = thread::current().name().unwrap_or("a test").to_string();
    let name = name.rsplit("::").next().unwrap_or(&name);
    let replay = Replay(name);
    let seen = Seen::default();
    let inner = seen.clone();
    let run = move || test(&inner);
    if let Ok(file) = env::var("SHUTTLE_REPLAY") {
        let scheduler = ReplayScheduler::new_from_file(&file)
            .unwrap_or_else(|error| panic!("SHUTTLE_REPLAY={file}: {error}"));
        run_all(scheduler, run);
        println!("shuttle: {name} replayed, and it passed");
        return;
    }
    let start = Instant::now();
    let ran = match choice {
        Choice::Random => run_all(RandomScheduler::new_from_seed(SEED, executions), run),
        Choice::Priorities(changes) => {
            let scheduler = PctScheduler::new_from_seed(SEED, changes, executions);
            run_all(scheduler, run)
        }
    };
    // What fails from here on is of no single execution.
    drop(replay);
    let seen = seen.0.lock().expect("nobody panics with it");
    println!(
        "shuttle: {name} {choice:?} executions={ran} {:.2}s seen={seen:?}",
        start.elapsed().as_secs_f64(),
    );
    assert_eq!(ran, executions, "the run was cut");
    for what in expected {
        assert!(seen.contains_key(what), "'{what}' never happened");
    }
}

fn run_all(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) -> usize {
    let failures = failures();
    std::fs::create_dir_all(&failures).expect("a folder for failing schedules");
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::File(Some(failures));
    // Of memory orders that it does not model: it chooses who runs next, and no more.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test)
}
