// SPDX-License-Identifier: GPL-2.0

//! Two reclaimers and a user, in every interleaving.

#![cfg(loom)]

use mm_shim::{
    model::{check, Bound},
    sync::{spawn, Arc},
};
use outside::Cache;

const NR_CPUS: usize = 2;

#[test]
fn evict_against_pin() {
    let ends = ["taken out", "written to"];
    check(Bound::Preemptions(3), &ends, |outcomes| {
        let cache = Arc::new(Cache::new(NR_CPUS));
        let (ours, theirs) = (cache.clone(), cache.clone());
        let reclaimers = [
            spawn("reclaimer 0", move || ours.evict(0)),
            spawn("reclaimer 1", move || theirs.evict(1)),
        ];
        let written = cache.pin().map(|pin| {
            assert_eq!(
                cache.folio.incarnation(),
                0,
                "a write to somebody else's folio"
            );
            pin.write();
        });
        let evicted = reclaimers.map(|reclaimer| reclaimer.join().expect("a reclaimer panicked"));
        let evicted = evicted.into_iter().filter(|&evicted| evicted).count();
        assert_eq!(evicted, cache.evicted(NR_CPUS));
        outcomes.saw(match (evicted, written.is_some()) {
            (1, true) => panic!("a write was lost"),
            (1, false) if cache.folio.ref_count() == 1 => "taken out",
            (0, true) => "written to",
            (evicted, _) => panic!("taken out {evicted} times"),
        });
    });
}
