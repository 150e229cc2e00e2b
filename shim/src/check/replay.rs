// SPDX-License-Identifier: GPL-2.0

//! A failing model leaves its interleaving in a file, and says the one command that runs it again.
//!
//! loom can write the path that it is about to take, but to write each makes a run four times as
//! long. So a run writes one path in [`INTERVAL`]. When an execution fails, the panic hook goes
//! from the last written path on again, in a thread of its own and writing each path: the last one
//! is the one that fails. Then the process ends, with the exit code of a test that panicked. An
//! unwinding model would drop what other threads were to use, which loom answers with a panic for
//! each, and the process would end in an abort behind these.

use super::target::{
    build_folder,
    command,
    name,
    stem, //
};
use loom::model::Builder;
use std::{
    backtrace::{
        Backtrace,
        BacktraceStatus, //
    },
    cell::RefCell,
    collections::hash_map::DefaultHasher,
    env,
    fs,
    hash::Hasher,
    io::{
        stderr,
        Write, //
    },
    panic,
    path::{
        Path,
        PathBuf, //
    },
    sync::{
        atomic::{
            AtomicUsize,
            Ordering::SeqCst, //
        },
        Arc,
        Once, //
    },
    thread, //
};
use tracing_subscriber::{
    util::SubscriberInitExt,
    EnvFilter, //
};

/// What a test of Rust's that panics exits with.
const FAILED: i32 = 101;

/// A line for whoever looks at the test: not by `eprintln!()`, whose lines `cargo test` keeps until
/// the test has ended, which it does not here.
macro_rules! say {
    ($($what:tt)*) => {
        drop(writeln!(stderr(), $($what)*))
    };
}

/// Executions between two written paths: a fraction of a second.
const INTERVAL: usize = 1000;

/// The file to replay.
const VARIABLE: &str = "LOOM_REPLAY";

thread_local! {
    /// What the panic hook is to do about a panic on this thread. (loom's threads are coroutines of
    /// the one that explores.)
    static ON_PANIC: RefCell<Option<OnPanic>> = const { RefCell::new(None) };
}

enum OnPanic {
    /// The first run failed.
    Find(Exploration),
    /// The run that looks for the path has found it.
    Found(Exploration),
    /// The one execution that is replayed failed.
    Replayed(Exploration, PathBuf),
}

/// One model, as often as it must be run.
#[derive(Clone)]
pub(crate) struct Exploration {
    /// The path of the test, as libtest knows it.
    pub(crate) test: String,
    pub(crate) preemption_bound: Option<usize>,
    pub(crate) model: Arc<dyn Fn() + Send + Sync>,
    pub(crate) executions: Arc<AtomicUsize>,
}

impl Exploration {
    /// The model's name: the test's, without its modules.
    pub(crate) fn name(&self) -> &str {
        name(&self.test)
    }

    fn builder(&self) -> Builder {
        let mut builder = Builder::new();
        // The environment can cut a run; that is not the environment's to decide.
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.preemption_bound = self.preemption_bound;
        builder
    }

    fn check(&self, builder: &Builder) {
        let (model, executions) = (self.model.clone(), self.executions.clone());
        builder.check(move || {
            executions.fetch_add(1, SeqCst);
            model();
        });
    }

    /// Every execution; or only the one that `LOOM_REPLAY` names: then false.
    pub(crate) fn run(self) -> bool {
        if let Some(file) = env::var_os(VARIABLE) {
            self.replay(Path::new(&file));
            return false;
        }
        let file = self.file("part");
        drop(fs::remove_file(&file));
        install_hook();
        let mut builder = self.builder();
        builder.checkpoint_file = Some(file.clone());
        builder.checkpoint_interval = INTERVAL;
        ON_PANIC.set(Some(OnPanic::Find(self.clone())));
        self.check(&builder);
        ON_PANIC.set(None);
        drop(fs::remove_file(&file));
        drop(fs::remove_file(self.file("json")));
        drop(fs::remove_file(self.file("of")));
        true
    }

    /// From the last written path on, one by one, until an execution fails again.
    fn find(self) {
        let failed_in = self.executions.load(SeqCst);
        // The path that was written is the one of the INTERVALth execution, not of the one after it.
        let again_from = (failed_in - failed_in % INTERVAL).max(1);
        self.executions.store(again_from - 1, SeqCst);
        let mut builder = self.builder();
        builder.checkpoint_file = Some(self.file("part"));
        builder.checkpoint_interval = 1;
        let name = self.name().to_string();
        let found = thread::spawn(move || {
            ON_PANIC.set(Some(OnPanic::Found(self.clone())));
            self.check(&builder);
        });
        if found.join().is_ok() {
            say!(
                "loom: {name} failed in execution {failed_in} and then did not: it is not \
                 deterministic, so loom cannot explore it"
            );
        }
    }

    /// Keeps the path that was written last, and says how to replay it.
    fn found(&self) {
        let (part, file) = (self.file("part"), self.file("json"));
        drop(fs::write(self.file("of"), sum()));
        match fs::rename(&part, &file) {
            Ok(()) => say!(
                "loom: {} failed in execution {}; to replay that interleaving:\n    {}",
                self.name(),
                self.executions.load(SeqCst),
                command("loom", VARIABLE, &file, &self.test)
            ),
            Err(error) => say!(
                "loom: the interleaving is lost: {}: {error}",
                file.display()
            ),
        }
    }

    fn replay(&self, file: &Path) {
        assert!(
            file.file_stem()
                .is_some_and(|name| *name == *stem(&self.test)),
            "{VARIABLE}={} is not of {}: run the model that the file is named after, and no other",
            file.display(),
            self.name()
        );
        // A copy, because loom writes the next path to it.
        let copy = self.file("replayed");
        if let Err(error) = fs::copy(file, &copy) {
            panic!(
                "{VARIABLE}={}: {error}: run the model without it",
                file.display()
            );
        }
        let mut builder = self.builder();
        builder.checkpoint_file = Some(copy.clone());
        builder.max_permutations = Some(1);
        builder.checkpoint_interval = 2;
        builder.location = true;
        // What loom::model() does; LOOM_LOG=mm_shim=trace shows the shim's steps.
        let _log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::from_env("LOOM_LOG"))
            .with_test_writer()
            .with_ansi(false)
            .without_time()
            .finish()
            .set_default();
        install_hook();
        ON_PANIC.set(Some(OnPanic::Replayed(self.clone(), file.to_path_buf())));
        self.check(&builder);
        ON_PANIC.set(None);
        drop(fs::remove_file(copy));
        println!(
            "loom: {} replayed: this interleaving passes; without {VARIABLE} all are run",
            self.name()
        );
        self.tell_of_changes(file);
    }

    /// loom goes by the number of an access, and does not see that it is of something else.
    fn tell_of_changes(&self, file: &Path) {
        let failed = fs::read_to_string(file.with_extension("of"));
        if failed.is_ok_and(|failed| failed != sum()) {
            say!(
                "loom: {}: the code is not the one that failed: this was another interleaving, \
                 maybe one that cannot be; run it without {VARIABLE}",
                self.name()
            );
        }
    }

    /// What failed.
    fn tell(&self, info: &panic::PanicHookInfo<'_>) {
        let trace = Backtrace::capture();
        let trace = match trace.status() {
            BacktraceStatus::Captured => trace.to_string(),
            _ => String::new(),
        };
        say!("\n{}: {info}\n{trace}", self.test);
        let said = info.to_string();
        for (what, means) in MEANINGS {
            if said.contains(what) {
                say!("loom: {}: {means}", self.name());
            }
        }
    }

    /// A file of this model's.
    fn file(&self, extension: &str) -> PathBuf {
        build_folder("interleavings").join(format!("{}.{extension}", stem(&self.test)))
    }
}

/// What this test binary is.
fn sum() -> String {
    let exe = env::current_exe().and_then(fs::read);
    let mut hasher = DefaultHasher::new();
    hasher.write(&exe.unwrap_or_default());
    format!("{:016x}", hasher.finish())
}

/// What loom says, and what that means.
const MEANINGS: [(&str, &str); 3] = [
    (
        "deadlock; threads = ",
        "DEADLOCK: each thread waits for what another holds",
    ),
    (
        "Model exceeded maximum number of branches",
        "SPINS: threads wait for bits that nobody clears, as in a deadlock, or the model is too long",
    ),
    (
        "Causality violation",
        "RACE: two threads get at plain memory at once; the replay says where",
    ),
];

fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match ON_PANIC.take() {
            // The same message, a second time.
            Some(OnPanic::Found(exploration)) => {
                exploration.found();
                std::process::exit(FAILED);
            }
            Some(OnPanic::Find(exploration)) => {
                exploration.tell(info);
                exploration.find();
                std::process::exit(FAILED);
            }
            Some(OnPanic::Replayed(exploration, file)) => {
                exploration.tell(info);
                exploration.tell_of_changes(&file);
                std::process::exit(FAILED);
            }
            None => before(info),
        }));
    });
}

#[cfg(test)]
mod tests;
