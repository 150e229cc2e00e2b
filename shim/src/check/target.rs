// SPDX-License-Identifier: GPL-2.0

//! The test binary that this is, and how it is told to run one test again: by itself, so that it is
//! the very code that failed, from any folder, and whatever cargo was given.

use std::{
    env,
    fs,
    path::{
        Path,
        PathBuf, //
    }, //
};

fn exe() -> PathBuf {
    env::current_exe().expect("a test knows where it is")
}

/// The name of a test's files: of the test binary, without its hash, the modules and the test, as
/// others may be called the same in part.
pub(super) fn stem(test: &str) -> String {
    let exe = exe();
    let stem = exe.file_stem().unwrap_or_default().to_string_lossy();
    let target = stem
        .rsplit_once('-')
        .map_or(&*stem, |(target, _hash)| target);
    format!("{target}.{}", test.replace("::", "."))
}

/// A folder of that name in the build folder that the test is of.
pub(super) fn build_folder(name: &str) -> PathBuf {
    let exe = exe();
    let build = exe.ancestors().nth(2).expect("a test is in <build>/deps");
    let folder = build.join(name);
    fs::create_dir_all(&folder).expect("a folder in the build folder");
    folder
}

/// A test's name, without its modules.
pub(super) fn name(test: &str) -> &str {
    test.rsplit_once("::").map_or(test, |(_modules, name)| name)
}

/// What the user has to type to run a test again, with `variable` set to a file; or with `make`, if
/// the verb of that was typed before.
pub(super) fn command(verb: &str, variable: &str, file: &Path, test: &str) -> String {
    let (file, exe) = (file.display().to_string(), exe().display().to_string());
    let (file, exe) = (quoted(&file), quoted(&exe));
    if env::var_os("MM_BATCH_MAKE").is_some() {
        return format!("make {verb} T={} REPLAY={file}", name(test));
    }
    format!("{variable}={file} {exe} --exact {test} --nocapture")
}

/// For a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted() {
        assert_eq!(quoted("/a/b-c.json"), "/a/b-c.json");
        assert_eq!(quoted("/it's a/b"), r"'/it'\''s a/b'");
        assert_eq!(quoted(""), "''");
    }
}
