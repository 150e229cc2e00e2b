// SPDX-License-Identifier: GPL-2.0

//! "Does not compile" is a claim. Of each case is asked that
//!
//! * it has errors of the code that `//! error:` names alone, of which the first is in a line that is
//!   marked by `#[cfg(bad)]`, and which have the words behind the code (a plain `compile_fail` doc test
//!   would pass for any error, a typo among them);
//! * where unsafe is what is missing (E0133), each marked line has the error, so that a port's
//!   methods are a table in one case, and a call that compiles is noticed;
//! * it compiles with what is marked put right, so that nothing else is wrong with it: in an unsafe
//!   function where unsafe is what is missing, or else as `//! right: this -> that` says. What is done
//!   twice, or has no name, is right where it is not there.
#![cfg(not(loom))]

use std::{
    collections::BTreeSet,
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        Output, //
    },
    thread, //
};

/// What is claimed, and the cases of each claim.
const CLAIMS: &str = include_str!("README.md");

/// The cases, by name: so that none is lost with its file, and no claim is without one.
fn cases() -> Vec<&'static str> {
    let rows = CLAIMS.lines().filter(|line| line.starts_with("| "));
    let refused = rows.filter_map(|row| row.rsplit('|').nth(1));
    refused
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compile_fail/cases")
}

fn rustc(source: &Path, out: &Path, more: &[&str]) -> Output {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Command::new(rustc)
        .args([
            "--edition=2021",
            "--crate-type=lib",
            "--emit=metadata",
            "--error-format=short",
            "-Awarnings",
        ])
        .args([
            "--check-cfg=cfg(bad,CONFIG_MM_BATCH,CONFIG_MM_BATCH_KUNIT_TEST)",
            "--out-dir",
        ])
        .arg(out)
        .args(more)
        .arg(source)
        .output()
        .expect("rustc runs")
}

/// A case as it stands in its file.
struct Case {
    name: &'static str,
    lines: Vec<String>,
    /// Of each line, whether it is of what is to fail.
    marked: Vec<bool>,
}

/// Of each line, whether it is of a statement or an item that is `#[cfg(bad)]`.
fn marked(lines: &[String]) -> Vec<bool> {
    let (mut within, mut depth) = (false, 0);
    let mark = |line: &String| {
        let code = line.split("//").next().expect("a line");
        within |= code.trim() == "#[cfg(bad)]";
        let mark = within;
        if within {
            depth += code.matches(['(', '[', '{']).count();
            depth -= code.matches([')', ']', '}']).count();
            within = depth > 0 || !code.trim_end().ends_with([';', '}']);
        }
        mark
    };
    lines.iter().map(mark).collect()
}

impl Case {
    fn read(name: &'static str) -> Self {
        let path = here().join(name).with_extension("rs");
        let text = fs::read_to_string(path).expect("a case");
        assert!(!text.contains("not(bad)"), "{name}: more than a mark");
        let lines: Vec<_> = text.lines().map(String::from).collect();
        let marked = marked(&lines);
        Self {
            name,
            lines,
            marked,
        }
    }

    fn said(&self, what: &str) -> Option<&str> {
        let line = |line: &'_ &String| line.starts_with(what);
        Some(self.lines.iter().find(line)?[what.len()..].trim())
    }

    /// The code of the error, and words that it has.
    fn error(&self) -> (&str, Vec<&str>) {
        let mut parts = self
            .lines
            .iter()
            .filter_map(|line| line.strip_prefix("//! error: "))
            .flat_map(|line| line.split(", "));
        let first = parts.next().and_then(|first| first.split_once(' '));
        let (code, word) = first.expect("'//! error: E.... words'");
        (code, [word].into_iter().chain(parts).collect())
    }

    /// What is marked, put right; `None` if it is right only if it is not there.
    fn put_right(&self) -> Option<Vec<String>> {
        let replaced = |this: &str, that: &str, marked_alone: bool| {
            let said = |line: &String| line.starts_with("//!");
            let line =
                |(line, &marked): (&String, &bool)| match marked || !marked_alone && !said(line) {
                    true => line.replacen(this, that, 1),
                    false => line.clone(),
                };
            let right: Vec<_> = self.lines.iter().zip(&self.marked).map(line).collect();
            (right != self.lines).then_some(right)
        };
        let right = match (self.said("//! right:"), self.error().0) {
            (Some(right), _) => {
                let (this, that) = right.split_once(" -> ").expect("'//! right: this -> that'");
                replaced(this, that, true).or_else(|| replaced(this, that, false))
            }
            (None, "E0133") => replaced("pub fn ", "pub unsafe fn ", false),
            (None, "E0200") => replaced("impl", "unsafe impl", true),
            // Used twice, or while it is lent; private.
            (None, "E0382" | "E0499" | "E0597" | "E0423" | "E0451" | "E0603" | "E0616") => {
                return None
            }
            (None, code) => panic!("{}: what of {code} would be right?", self.name),
        };
        Some(right.unwrap_or_else(|| panic!("{}: nothing is put right", self.name)))
    }

    fn check(&self, out: &Path, with_it: [&str; 2]) {
        let (name, source) = (self.name, out.join(self.name).with_extension("rs"));
        let compile = |lines: &[String], more: &[&str]| {
            fs::write(&source, lines.join("\n") + "\n").expect("a file under target");
            let output = rustc(&source, out, &[&with_it[..], more].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.success(), said)
        };
        let (compiles, said) = compile(&self.lines, &["--cfg", "bad"]);
        assert!(!compiles, "{name} compiles");
        self.judge(&said);
        let (compiles, said) = match self.put_right() {
            Some(right) => compile(&right, &["--cfg", "bad"]),
            None => compile(&self.lines, &[]),
        };
        assert!(compiles, "{name} fails by itself: {said}");
        println!("compile_fail: {name} {}", self.error().0);
    }

    /// Whether these are the errors that the case is for.
    fn judge(&self, said: &str) {
        let (code, words) = self.error();
        let errors: Vec<_> = said
            .lines()
            .filter(|line| line.contains(": error"))
            .collect();
        let of_code = |line: &&str| line.contains(&format!(": error[{code}]: "));
        assert!(
            !errors.is_empty() && errors.iter().all(of_code),
            "{}: not {code}: {said}",
            self.name
        );
        // path:line:column: error[code]: what
        let line_of = |error: &&str| -> usize {
            let line = error.split(':').nth(1).and_then(|line| line.parse().ok());
            line.expect("the number of a line")
        };
        let found: BTreeSet<_> = errors.iter().map(line_of).collect();
        assert!(
            self.marked[line_of(&errors[0]) - 1],
            "{}: elsewhere: {said}",
            self.name
        );
        for (at, line) in self.lines.iter().enumerate() {
            // The call is in the line behind its mark, and lines are counted from one.
            let fails =
                code != "E0133" || line.trim() != "#[cfg(bad)]" || found.contains(&(at + 2));
            assert!(fails, "{}: compiles: {}", self.name, self.lines[at + 1]);
        }
        assert!(
            words.iter().all(|word| errors.concat().contains(word)),
            "{}: not {words:?}: {said}",
            self.name
        );
    }
}

#[test]
fn each_case_fails_by_its_own_error() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    fs::create_dir_all(&out).expect("a folder under target");
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rust/mm_batch/mm_batch.rs");
    let built = rustc(&crate_root, &out, &[]);
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let dependency = format!("mm_batch={}", out.join("libmm_batch.rmeta").display());
    let all = cases();
    let cpus = thread::available_parallelism().map_or(1, |nr| nr.get());
    thread::scope(|scope| {
        for cases in all.chunks(all.len().div_ceil(cpus)) {
            let (out, dependency) = (&out, &dependency);
            scope.spawn(move || {
                for name in cases {
                    Case::read(name).check(out, ["--extern", dependency]);
                }
            });
        }
    });
}

/// Where marks end is told by brackets.
#[test]
fn what_is_marked_ends_with_its_statement_or_item() {
    let text =
        "fn f() {\n    #[cfg(bad)]\n    let x = g(|| {\n        1;\n    })\n    .h();\n    k();\n}";
    let lines: Vec<_> = text.lines().map(String::from).collect();
    let want = [false, true, true, true, true, true, false, false];
    assert_eq!(marked(&lines), want);
}

#[test]
fn the_cases_are_those_of_the_folder() {
    let found: BTreeSet<_> = fs::read_dir(here())
        .expect("the cases")
        .map(|case| case.expect("a file").file_name().into_string())
        .collect();
    let listed: Vec<_> = cases()
        .iter()
        .map(|case| Ok(format!("{case}.rs")))
        .collect();
    let nr = listed.len();
    let listed: BTreeSet<_> = listed.into_iter().collect();
    assert_eq!(found, listed, "the files, and those of README.md");
    assert_eq!(nr, found.len(), "a case has two claims");
}

/// A case that is to fail in its second line.
fn case() -> Case {
    let text = [
        "//! error: E0382 run, walk",
        "#[cfg(bad)]",
        "run.end(walk);",
        "",
    ];
    let lines: Vec<_> = text.map(String::from).into();
    let marked = marked(&lines);
    Case {
        name: "a case",
        lines,
        marked,
    }
}

#[test]
fn the_error_that_a_case_is_for_is_accepted() {
    case().judge("case.rs:3:1: error[E0382]: use of run, walk\nerror: aborting");
}

#[test]
#[should_panic(expected = "a case: elsewhere")]
fn an_error_elsewhere_is_noticed() {
    case().judge("case.rs:4:1: error[E0382]: use of run, walk");
}

#[test]
#[should_panic(expected = "a case: not E0382")]
fn another_error_besides_is_noticed() {
    case().judge("case.rs:3:1: error[E0382]: run, walk\ncase.rs:3:2: error[E0308]: run");
}

#[test]
#[should_panic(expected = "a case: not [\"run\", \"walk\"]")]
fn an_error_of_something_else_is_noticed() {
    case().judge("case.rs:3:1: error[E0382]: use of run");
}

#[test]
#[should_panic(expected = "a case: compiles: walk.b();")]
fn a_call_of_a_table_that_compiles_is_noticed() {
    let text = "//! error: E0133 a\n#[cfg(bad)]\nwalk.a();\n#[cfg(bad)]\nwalk.b();";
    let lines: Vec<_> = text.lines().map(String::from).collect();
    let marked = marked(&lines);
    let name = "a case";
    Case {
        name,
        lines,
        marked,
    }
    .judge("case.rs:3:1: error[E0133]: call to a");
}

#[test]
#[should_panic(expected = "a case: nothing is put right")]
fn a_case_that_puts_nothing_right_is_noticed() {
    let mut case = case();
    case.lines[0] = "//! error: E0277 run".into();
    case.lines[3] = "//! right: this -> that".into();
    case.put_right();
}
