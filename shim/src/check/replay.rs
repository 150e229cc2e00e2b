// SPDX-License-Identifier: GPL-2.0

//! A failing model leaves its interleaving in a file, and says the one command that runs it again.
//!
//! loom can write the path that it is about to take, but to write each makes a run four times as
//! long. So a run writes one path in [`INTERVAL`]. When an execution fails, the panic hook goes
//! from the last written path on again, in a thread of its own and writing each path: the last one
//! is the one that fails. Then the process ends, with the exit code of a test that panicked. An
//! unwinding model would drop what other threads were to use, which loom answers with a panic for
//! each, and the process would end in an abort behind these.

use loom::model::Builder;
use std::{
    backtrace::{
        Backtrace,
        BacktraceStatus, //
    },
    cell::RefCell,
    env,
    fs,
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
use target::{
    chosen,
    quoted,
    target, //
};
use tracing_subscriber::{
    util::SubscriberInitExt,
    EnvFilter, //
};

mod target;

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
    Replayed(Exploration),
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
        self.test
            .rsplit_once("::")
            .map_or(&*self.test, |(_modules, name)| name)
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
        match fs::rename(&part, &file) {
            Ok(()) => say!(
                "loom: {} failed in execution {}; to replay that interleaving:\n    {}",
                self.name(),
                self.executions.load(SeqCst),
                command(self, &file)
            ),
            Err(error) => say!(
                "loom: the interleaving is lost: {}: {error}",
                file.display()
            ),
        }
    }

    fn replay(&self, file: &Path) {
        assert!(
            file.file_stem().is_some_and(|stem| *stem == *self.stem()),
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
        ON_PANIC.set(Some(OnPanic::Replayed(self.clone())));
        self.check(&builder);
        ON_PANIC.set(None);
        drop(fs::remove_file(copy));
        println!(
            "loom: {} replayed: this interleaving passes now; without {VARIABLE} all are run",
            self.name()
        );
    }

    /// What failed.
    fn tell(&self, info: &panic::PanicHookInfo<'_>) {
        let trace = Backtrace::capture();
        let trace = match trace.status() {
            BacktraceStatus::Captured => trace.to_string(),
            _ => String::new(),
        };
        say!("\n{}: {info}\n{trace}", self.test);
        if info.to_string().contains(DEADLOCK) {
            say!(
                "loom: {}: DEADLOCK: each thread waits for what another holds",
                self.name()
            );
        }
    }

    /// A file of this model's, in the build folder that the test is of.
    fn file(&self, extension: &str) -> PathBuf {
        let exe = env::current_exe().expect("a test knows where it is");
        let build = exe.ancestors().nth(2).expect("a test is in <build>/deps");
        let folder = build.join("interleavings");
        fs::create_dir_all(&folder).expect("a folder in the build folder");
        folder.join(format!("{}.{extension}", self.stem()))
    }

    /// The name of its files: of the test binary, the modules and the test, as others may be called
    /// the same in part.
    fn stem(&self) -> String {
        format!("{}.{}", target(), self.test.replace("::", "."))
    }
}

/// What the user has to type, in the words of whoever ran the test. It runs this test and no other.
fn command(exploration: &Exploration, file: &Path) -> String {
    let file = quoted(&file.display().to_string());
    if env::var_os("MM_BATCH_MAKE").is_some() {
        return format!("make loom T={} REPLAY={file}", exploration.name());
    }
    let exe = env::current_exe().unwrap_or_default();
    let profile = if exe.iter().any(|part| part == "release") {
        " --release"
    } else {
        ""
    };
    let flags = env::var("RUSTFLAGS").unwrap_or_else(|_| "--cfg loom".into());
    let folder = env::var("CARGO_TARGET_DIR").map_or(String::new(), |dir| {
        format!("CARGO_TARGET_DIR={} ", quoted(&dir))
    });
    let test = &exploration.test;
    let (run, only) = if env::var_os("NEXTEST").is_some() {
        ("nextest run", format!("--no-capture -E 'test(={test})'"))
    } else {
        ("test", format!("{test} -- --exact --nocapture"))
    };
    // No -p: it would choose other features for the dependencies, and build all of them again.
    let which = chosen();
    format!("{VARIABLE}={file} {folder}RUSTFLAGS=\"{flags}\" cargo {run}{profile} {which} {only}")
}

/// What loom's panic says of a model of which each thread waits for another.
const DEADLOCK: &str = "deadlock; threads = ";

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
            Some(OnPanic::Replayed(exploration)) => {
                exploration.tell(info);
                std::process::exit(FAILED);
            }
            None => before(info),
        }));
    });
}

#[cfg(test)]
mod tests;
