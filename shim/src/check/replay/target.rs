// SPDX-License-Identifier: GPL-2.0

//! How cargo is told to run the test binary that this is, and no other.

use std::{
    env,
    process::Command, //
};

/// The name of this binary's target, as the compiler knows it: `-` is `_`.
pub(super) fn target() -> String {
    let exe = env::current_exe().unwrap_or_default();
    let stem = exe.file_stem().unwrap_or_default().to_string_lossy();
    let hashless = stem.rsplit_once('-').map(|(target, _hash)| target);
    hashless.unwrap_or(&stem).to_string()
}

/// cargo's arguments. Of a library and a program that are called the same, both.
pub(super) fn chosen() -> String {
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let metadata = Command::new(env::var("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .arg(format!("--manifest-path={folder}/Cargo.toml"))
        .output()
        .map_or(String::new(), |ended| {
            String::from_utf8_lossy(&ended.stdout).into_owned()
        });
    named(&metadata, &folder, &target())
}

/// What is behind a key, up to the next quote.
fn text<'m>(metadata: &'m str, key: &str) -> Option<&'m str> {
    let (_, rest) = metadata.split_once(&format!("\"{key}\":\""))?;
    Some(rest.split_once('"')?.0)
}

/// The same, of what `cargo metadata` says. (It is JSON without spaces, and has the keys of a target
/// in this order: kind, name, src_path.)
fn named(metadata: &str, folder: &str, target: &str) -> String {
    let mut found: Vec<String> = metadata
        .split("{\"kind\":[\"")
        .skip(1)
        .filter_map(|one| {
            let kind = one.split_once('"')?.0;
            let (name, source) = (text(one, "name")?, text(one, "src_path")?);
            let ours =
                name.replace('-', "_") == target && source.starts_with(&format!("{folder}/"));
            ours.then(|| match kind {
                "test" | "bin" | "example" | "bench" => format!("--{kind} {}", quoted(name)),
                _ => "--lib".to_string(),
            })
        })
        .collect();
    found.sort();
    let Some(root) = text(metadata, "workspace_root") else {
        // No cargo: what is called the same is most likely it.
        return format!("--test {target}");
    };
    let manifest = quoted(&format!("{root}/Cargo.toml"));
    format!("--manifest-path {manifest} {}", found.join(" "))
}

/// For a shell.
pub(super) fn quoted(text: &str) -> String {
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

    #[test]
    fn a_binary_is_told_from_others_of_its_name() {
        let target = |kind: &str, name: &str, path: &str| {
            format!("{{\"kind\":[\"{kind}\"],\"crate_types\":[\"{kind}\"],\"name\":\"{name}\",\"src_path\":\"{path}\"}}")
        };
        let all = [
            target("lib", "renamed", "/w/a/src/lib.rs"),
            target("bin", "my-tool", "/w/a/src/main.rs"),
            target("test", "model", "/w/a/tests/model.rs"),
            target("test", "model", "/w/b/tests/model.rs"),
            target("lib", "both", "/w/b/src/lib.rs"),
            target("bin", "both", "/w/b/src/main.rs"),
        ]
        .concat()
            + "\"workspace_root\":\"/my w\"";
        let chosen = |folder, target| named(&all, folder, target);
        let root = "--manifest-path '/my w/Cargo.toml'";
        assert_eq!(chosen("/w/a", "renamed"), format!("{root} --lib"));
        assert_eq!(chosen("/w/a", "my_tool"), format!("{root} --bin my-tool"));
        assert_eq!(chosen("/w/b", "model"), format!("{root} --test model"));
        assert_eq!(chosen("/w/b", "both"), format!("{root} --bin both --lib"));
        assert_eq!(named("", "/w/a", "gone"), "--test gone");
    }
}
