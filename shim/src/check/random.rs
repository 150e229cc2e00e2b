// SPDX-License-Identifier: GPL-2.0

//! Running one test of shuttle so that its result can be believed: it says what it ran, fails if
//! that was nothing or if something that it is about never happened, and can be replayed. For what
//! has more threads or folios than loom can explore.

use super::target::{
    build_folder,
    command,
    name,
    stem, //
};
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
    fs,
    path::{
        Path,
        PathBuf, //
    },
    sync::{
        Arc,
        Mutex, //
    },
    thread,
    time::Instant, //
};

/// The file to replay.
const VARIABLE: &str = "SHUTTLE_REPLAY";

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

/// Says, when the test fails, how to run that execution again.
struct Replay {
    test: String,
    /// Where shuttle writes the schedule.
    folder: PathBuf,
}

impl Replay {
    /// The schedule that failed.
    fn file(&self) -> Option<PathBuf> {
        let entry = fs::read_dir(&self.folder).ok()?.next()?;
        Some(entry.ok()?.path())
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let Some(file) = thread::panicking().then(|| self.file()).flatten() else {
            return;
        };
        eprintln!(
            "shuttle: {} failed; to replay that execution:\n    {}",
            name(&self.test),
            command("shuttle", VARIABLE, &file, &self.test)
        );
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
    let test_path = thread::current().name().unwrap_or("a test").to_string();
    let replay = Replay {
        folder: build_folder("schedules").join(stem(&test_path)),
        test: test_path,
    };
    let name = name(&replay.test).to_string();
    let seen = Seen::default();
    let inner = seen.clone();
    let run = move || test(&inner);
    if let Ok(file) = env::var(VARIABLE) {
        let of = Path::new(&file).parent().and_then(Path::file_name);
        assert!(
            of == replay.folder.file_name(),
            "{VARIABLE}={file} is not of {name}: run the test that its folder is named after"
        );
        let scheduler = ReplayScheduler::new_from_file(&file)
            .unwrap_or_else(|error| panic!("{VARIABLE}={file}: {error}"));
        run_all(scheduler, FailurePersistence::None, run);
        println!("shuttle: {name} replayed, and it passed");
        return;
    }
    drop(fs::remove_dir_all(&replay.folder));
    fs::create_dir_all(&replay.folder).expect("a folder for a failing schedule");
    let keep = FailurePersistence::File(Some(replay.folder.clone()));
    let start = Instant::now();
    let ran = match choice {
        Choice::Random => run_all(RandomScheduler::new_from_seed(SEED, executions), keep, run),
        Choice::Priorities(changes) => {
            let scheduler = PctScheduler::new_from_seed(SEED, changes, executions);
            run_all(scheduler, keep, run)
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

fn run_all(
    scheduler: impl Scheduler + 'static,
    keep: FailurePersistence,
    test: impl Fn() + Send + Sync + 'static,
) -> usize {
    let mut config = Config::new();
    config.failure_persistence = keep;
    // Of memory orders that it does not model: it chooses who runs next, and no more.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test)
}
