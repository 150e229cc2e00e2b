// SPDX-License-Identifier: GPL-2.0

//! Models that fail late, in processes of their own, and the commands that they print.

use crate::{
    model::{
        check,
        Bound, //
    },
    page::Page,
    sync::{
        atomic::{
            AtomicUsize,
            Ordering::SeqCst, //
        },
        thread,
        Arc, //
    }, //
};
use std::{
    env,
    fs,
    process::Command,
    sync::{
        Mutex,
        MutexGuard,
        PoisonError, //
    },
    time::{
        Duration,
        Instant, //
    }, //
};

/// Set for the models below in a process of their own: how they are to fail.
const FAIL: &str = "MM_SHIM_FAIL";

/// The tests share the files of an interleaving. (nextest has a process for each, and a group.)
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Aborts the process where the model unwinds.
struct AbortsUnwinding;

impl Drop for AbortsUnwinding {
    fn drop(&mut self) {
        assert!(!std::thread::panicking(), "a drop that panics");
    }
}

/// Three threads that draw numbers; the last order of all fails, if asked to.
fn drawing(name: &'static str) {
    let _running = one_at_a_time();
    let fail = env::var(FAIL).unwrap_or_default();
    let ends = ["the first in front", "another in front"];
    check(Bound::Exhaustive, &ends, move |outcomes| {
        println!("an execution of {name}");
        let next = Arc::new(AtomicUsize::new(0));
        let draw = |next: &AtomicUsize| [(); 2].map(|()| next.fetch_add(1, SeqCst));
        let others = [(); 2].map(|()| {
            let next = next.clone();
            thread::spawn(move || draw(&next))
        });
        let mine = draw(&next);
        let theirs = others.map(|other| other.join().expect("a thread panicked"));
        let _aborts = (fail == "abort").then_some(AbortsUnwinding);
        let last = theirs == [[2, 3], [0, 1]];
        if last && fail == "outcome" {
            return outcomes.saw("[4, 5] is the last order");
        }
        assert!(fail.is_empty() || !last, "{mine:?} is the last order");
        outcomes.saw(ends[usize::from(mine[0] > 0)]);
    });
}

#[test]
fn drawing_and_panicking() {
    drawing("drawing_and_panicking");
}

#[test]
fn drawing_and_aborting() {
    drawing("drawing_and_aborting");
}

#[test]
fn drawing_and_ending() {
    drawing("drawing_and_ending");
}

#[test]
fn taking_and_dropping() {
    let _running = one_at_a_time();
    let fail = env::var(FAIL).unwrap_or_default();
    check(Bound::Exhaustive, &[], move |_| {
        let page = Page::new(1);
        assert!(page.try_get() && !page.put_testzero());
        assert!(fail.is_empty(), "asked to fail");
    });
}

#[test]
fn failing_in_front_of_a_thread() {
    let _running = one_at_a_time();
    let fail = env::var(FAIL).unwrap_or_default();
    check(Bound::Exhaustive, &[], move |_| {
        let page = Arc::new(Page::new(1));
        let theirs = page.clone();
        let other = thread::spawn(move || theirs.try_get());
        assert!(fail.is_empty(), "asked to fail");
        other.join().expect("a thread panicked");
    });
}

#[test]
fn locking_both() {
    let _running = one_at_a_time();
    let fail = env::var(FAIL).unwrap_or_default();
    check(Bound::Exhaustive, &[], move |_| {
        let locks = Arc::new([crate::sync::Mutex::new(()), crate::sync::Mutex::new(())]);
        let theirs = locks.clone();
        let lock = |locks: &[crate::sync::Mutex<()>; 2], first: usize| {
            let _first = locks[first].lock().expect("nobody panics");
            drop(locks[1 - first].lock().expect("nobody panics"));
        };
        let other = thread::spawn(move || lock(&theirs, 0));
        lock(&locks, usize::from(!fail.is_empty()));
        other.join().expect("a thread panicked");
    });
}

/// To replay the one whose name this begins with is not to run this.
#[test]
fn drawing_and_panicking_too() {
    check(Bound::Exhaustive, &[], |_| ());
}

/// Whether it passed, and what it printed.
fn output(command: &mut Command) -> (bool, String) {
    let ended = command.output().expect("a process");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        ended.status.success(),
        text(&ended.stdout) + &text(&ended.stderr),
    )
}

fn process(test: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test knows where it is"));
    command
        .args([
            "--exact",
            &format!("check::replay::tests::{test}"),
            "--nocapture",
        ])
        .env_remove("MM_BATCH_MAKE")
        .envs(variables.iter().copied());
    command
}

fn alone(test: &str, variables: &[(&str, &str)]) -> (bool, String) {
    output(&mut process(test, variables))
}

/// A late failure, and the command that was printed for it: it runs one execution, which fails
/// with the same message, in less than 10 s.
fn fails_and_is_replayed(test: &str, how: &str) {
    let _running = one_at_a_time();
    let (passed, first) = alone(test, &[(FAIL, how)]);
    assert!(!passed, "{first}");
    let message = "[4, 5] is the last order";
    assert_eq!(first.matches(message).count(), 1, "{first}");
    let number = first
        .split("failed in execution ")
        .nth(1)
        .expect("a number");
    let number = number.split(';').next().expect("a number").parse::<usize>();
    assert!(number.expect("a number") > super::INTERVAL, "{first}");
    let command = first
        .lines()
        .find_map(|line| line.strip_prefix("    LOOM_REPLAY="))
        .expect("a command");

    let start = Instant::now();
    let (passed, again) = output(
        Command::new("sh")
            .args(["-c", &format!("LOOM_REPLAY={command}")])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            // Who pastes it has a profile of their own, in which a failure may end the run.
            .env_remove("NEXTEST_PROFILE")
            .env(FAIL, how),
    );
    assert!(!passed, "{again}");
    assert!(again.contains(message), "{again}");
    assert!(!again.contains("is not of"), "{command}: {again}");
    let executions = again.matches(&format!("an execution of {test}\n")).count();
    assert_eq!(executions, 1, "{command}: {again}");
    assert!(start.elapsed() < Duration::from_secs(10), "too slow");

    // What does not fail any more passes, and says so.
    let file = command.split(' ').next().expect("a file");
    let path = fs::read(file).expect("a path");
    let (passed, mended) = alone(test, &[("LOOM_REPLAY", file)]);
    assert!(passed && mended.contains("interleaving passes"), "{mended}");
    assert_eq!(mended.matches("an execution of").count(), 1, "{mended}");
    assert!(path == fs::read(file).expect("a path"), "the path was lost");
}

#[test]
fn a_failure_is_replayed() {
    fails_and_is_replayed("drawing_and_panicking", "panic");
}

#[test]
fn a_failure_that_would_end_in_an_abort_is_replayed() {
    fails_and_is_replayed("drawing_and_aborting", "abort");
}

/// A thread that has not run has what loom does not let go of: the failure ends as one, all the
/// same, and with nothing behind it.
#[test]
fn a_failure_in_front_of_a_thread_ends_as_a_failure() {
    let _running = one_at_a_time();
    let ended = process("failing_in_front_of_a_thread", &[(FAIL, "panic")])
        .output()
        .expect("a process");
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(super::FAILED), "{printed}");
    assert!(printed.contains("asked to fail"), "{printed}");
    assert!(!printed.contains("destructor"), "{printed}");
    let last = printed.lines().last().unwrap_or_default();
    assert!(last.starts_with("    LOOM_REPLAY="), "{printed}");
}

#[test]
fn a_deadlock_is_called_one() {
    let _running = one_at_a_time();
    let (passed, printed) = alone("locking_both", &[(FAIL, "deadlock")]);
    assert!(
        !passed && printed.contains("locking_both: DEADLOCK"),
        "{printed}"
    );
}

#[test]
fn an_unexpected_outcome_is_replayed() {
    fails_and_is_replayed("drawing_and_ending", "outcome");
}

/// By name and value, where loom's own log has neither.
#[test]
fn a_replay_tells_each_step() {
    let _running = one_at_a_time();
    let (passed, printed) = alone("taking_and_dropping", &[(FAIL, "panic")]);
    assert!(!passed, "{printed}");
    let file = printed.split("LOOM_REPLAY=").nth(1).expect("a command");
    let file = file.split(' ').next().expect("a file");
    let log = [("LOOM_REPLAY", file), ("LOOM_LOG", "mm_shim=trace")];
    let (_, steps) = alone("taking_and_dropping", &log);
    let told: Vec<_> = steps
        .lines()
        .filter(|line| line.contains("TRACE"))
        .collect();
    assert_eq!(told.len(), 2, "{steps}");
    assert!(told[0].contains("get_page_unless_zero() = true"), "{steps}");
    assert!(told[1].contains("put_page_testzero() = false"), "{steps}");
    assert!(told[0].contains("by=ThreadId"), "{steps}");
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let _running = one_at_a_time();
    let (passed, other) = alone(
        "drawing_and_panicking",
        &[("LOOM_REPLAY", "/nowhere/other.json")],
    );
    assert!(
        !passed && other.contains("is not of drawing_and_panicking"),
        "{other}"
    );
    let gone = "/nowhere/mm_shim.check.replay.tests.drawing_and_panicking.json";
    let (passed, gone) = alone("drawing_and_panicking", &[("LOOM_REPLAY", gone)]);
    assert!(
        !passed && gone.contains("run the model without it"),
        "{gone}"
    );
}

#[test]
fn the_environment_cannot_cut_a_run() {
    let _running = one_at_a_time();
    let cut = [("LOOM_MAX_PERMUTATIONS", "1"), ("LOOM_MAX_DURATION", "0")];
    let executions = |variables| {
        let (passed, printed) = alone("drawing_and_panicking", variables);
        assert!(passed, "{printed}");
        printed.matches("an execution of").count()
    };
    assert_eq!(executions(&cut), executions(&[]));
}
