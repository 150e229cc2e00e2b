// SPDX-License-Identifier: GPL-2.0

//! "Does not compile" is a claim: each case compiles without its marked lines, and fails with them,
//! by the error that it names. (A plain `compile_fail` doc test would pass for any error, a typo
//! among them.)
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
    }, //
};

/// Every case, by name: so that none is lost with its file.
const CASES: &[&str] = &[
    "batch_filled_after_the_flush",
    "batch_of_another_list",
    "block_by_hand",
    "block_copied",
    "block_freed_twice",
    "cleared_run_beyond_the_lock",
    "cleared_run_committed_twice",
    "cleared_run_restored_and_committed",
    "counted_run_committed",
    "counter_by_a_number",
    "counter_by_hand",
    "exclusive_asked_by_hand",
    "exclusive_cleared_by_hand",
    "flush_before_restore_by_hand",
    "flush_of_another_list",
    "flush_owed_by_another_task",
    "flush_owed_by_hand",
    "flush_owed_copied",
    "flush_owed_noted_by_hand",
    "flush_while_a_folio_is_locked",
    "flushed_by_the_port",
    "folio_activated_by_hand",
    "folio_counted_as_mapped_by_hand",
    "folio_kept_by_hand",
    "folio_kept_locked_by_hand",
    "folio_lock_by_hand",
    "folio_lock_copied",
    "folio_locked_by_hand",
    "folio_of_another_list",
    "folio_paged_out_by_the_port",
    "folio_paged_out_twice",
    "folio_unlocked_by_hand",
    "folio_unmapped_by_hand",
    "frozen_freed_as_counted",
    "gone_by_hand",
    "gone_unreplaced",
    "held_by_hand",
    "kept_run_unmapped",
    "last_stage_of_safe_code",
    "left_behind_by_hand",
    "list_of_safe_code",
    "list_unmapped_from_twice",
    "lock_by_another_task",
    "lock_of_another_list",
    "locked_paged_out",
    "lone_page_from_a_range",
    "mappings_removed_by_hand",
    "mixed_run_restored",
    "nothing_owed_by_hand",
    "nothing_owed_outlives_the_flush",
    "pageout_without_a_flush",
    "part_cut_and_kept",
    "part_longer",
    "pins_tested_before_counting",
    "prepared_by_hand",
    "prepared_run_freed_twice",
    "pte_index_by_hand",
    "ptes_set_by_hand",
    "range_by_hand",
    "range_empty",
    "range_freed_twice",
    "range_prepared_twice",
    "range_prepared_whole",
    "range_split_and_kept",
    "references_put_by_hand",
    "revalidated_by_hand",
    "run_cleared_by_hand",
    "run_flushed_by_hand",
    "run_length_by_hand",
    "stage_by_hand",
    "stage_completed_by_hand",
    "stage_entered_by_hand",
    "stage_of_safe_code",
    "stage_undone_by_hand",
    "stages_undone_by_hand",
    "swap_counter_by_hand",
    "swap_counts_by_hand",
    "swap_counts_put_by_hand",
    "swap_entries_by_hand",
    "swap_stage_by_hand",
    "two_folios_locked",
    "unmapped_paged_out",
    "unmapped_run_by_hand",
    "unmapping_between_flush_and_pageout",
    "vanished_twice",
    "waiting_copied",
    "waiting_locked",
    "waiting_paged_out",
    "waiting_pushed_twice",
    "walk_unmapped_twice",
];

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
    let with_it = ["--extern", dependency.as_str()];

    for name in CASES {
        let case = &here().join(name).with_extension("rs");
        let text = fs::read_to_string(case).expect("a case");
        let want = text
            .lines()
            .find_map(|line| line.strip_prefix("//! error: "))
            .expect("'//! error: E....'");
        let good = rustc(case, &out, &with_it);
        assert!(
            good.status.success(),
            "{name} fails by itself: {}",
            String::from_utf8_lossy(&good.stderr)
        );
        let bad = rustc(case, &out, &[&with_it[..], &["--cfg", "bad"]].concat());
        let errors = String::from_utf8_lossy(&bad.stderr).into_owned();
        assert!(!bad.status.success(), "{name} compiles");
        let codes: Vec<_> = errors
            .lines()
            .filter(|line| line.starts_with("error["))
            .collect();
        assert!(
            !codes.is_empty() && codes.iter().all(|line| line.contains(want)),
            "{name}: not {want}: {errors}"
        );
        println!("compile_fail: {name} {want}");
    }
}

#[test]
fn the_cases_are_those_of_the_folder() {
    let found: BTreeSet<_> = fs::read_dir(here())
        .expect("the cases")
        .map(|case| case.expect("a file").file_name().into_string())
        .collect();
    let listed = CASES.iter().map(|case| Ok(format!("{case}.rs"))).collect();
    assert_eq!(found, listed, "the files, and those listed in {}", file!());
}
