// SPDX-License-Identifier: GPL-2.0

//! Four reclaimers and four users, at random.

#![cfg(shuttle)]

use mm_shim::{
    random::{check, Choice},
    sync::{spawn, Arc},
};
use outside::Cache;

const NR_CPUS: usize = 4;

#[test]
fn many_evict_and_pin() {
    let expected = ["taken out", "written to", "pinned"];
    check(Choice::Random, 1000, &expected, |seen| {
        let cache = Arc::new(Cache::new(NR_CPUS));
        let reclaimers: Vec<_> = (0..NR_CPUS)
            .map(|cpu| {
                let cache = cache.clone();
                spawn("a reclaimer", move || cache.evict(cpu))
            })
            .collect();
        let users: Vec<_> = (0..4)
            .map(|user| {
                let (cache, seen) = (cache.clone(), seen.clone());
                spawn("a user", move || match cache.pin() {
                    Some(pin) if user == 0 => pin.write(),
                    Some(_) => seen.saw("pinned"),
                    None => (),
                })
            })
            .collect();
        users
            .into_iter()
            .for_each(|user| user.join().expect("a user panicked"));
        let evicted = |reclaimer: mm_shim::sync::thread::JoinHandle<bool>| {
            reclaimer.join().expect("a reclaimer panicked")
        };
        let evicted = reclaimers
            .into_iter()
            .map(evicted)
            .filter(|&evicted| evicted)
            .count();
        assert!(evicted <= 1 && evicted == cache.evicted(NR_CPUS));
        assert!(
            evicted == 0 || cache.folio.written() == 0,
            "a write was lost"
        );
        seen.saw(if evicted == 1 { "taken out" } else { "kept" });
        if cache.folio.written() > 0 {
            seen.saw("written to");
        }
    });
}
