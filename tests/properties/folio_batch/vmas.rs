// SPDX-License-Identifier: GPL-2.0

//! The same where an mm maps the folios by two VMAs of one page table.

use super::*;
use mm_shim::lock::BitLock;
use std::cell::Cell;

/// PTEs of the page table, and of both VMAs.
const NR: usize = 48;

/// A folio of so many pages, and the gap in front of its PTEs.
fn folio() -> impl Strategy<Value = (usize, usize)> {
    (0usize..3, prop::sample::select(vec![1, 1, 2, 4]))
}

proptest! {
    #![proptest_config(crate::cases(512))]

    /// What is wholly in one VMA is unmapped, by one stop for each. What is in both is looked at in
    /// either, and is as it was.
    #[test]
    fn each_vma_is_a_stop(gaps in prop::collection::vec(folio(), 1..9), split in 1..NR) {
        let (mut words, mut at) = (vec![0; NR], 0);
        let (mut folios, mut places) = (Vec::new(), Vec::new());
        for (i, &(gap, nr)) in gaps.iter().enumerate() {
            at += gap;
            let (pfn, slot) = (8 + 8 * i, 64 + 8 * i);
            let folio = Folio::in_swap_cache(pfn, nr, Slots::new(slot, &vec![0; nr], None));
            folio.map(nr);
            (0..nr).for_each(|page| words[at + page] = pte(pfn + page, WRITE | DIRTY));
            places.push(at..at + nr);
            folios.push(folio);
            at += nr;
        }
        let mm = Mm::new(Layout::anonymous(NR), &words);
        let (rmap, stops) = (BitLock::new("anon_vma"), Cell::new(0));
        let vmas = [(&mm, 0..split), (&mm, split..NR)];
        let unlocked = Together::new(&folios).rmap_walk(&vmas, &rmap, |stop| {
            stops.set(stops.get() + 1);
            unmap_anon_folios(stop)
        });
        prop_assert!(unlocked);
        prop_assert!(rmap.trylock(), "the walk keeps the rmap lock");
        let is_in = |places: &Range<usize>, vma: &Range<usize>| {
            vma.contains(&places.start) && places.end <= vma.end
        };
        let mut used = vec![false; vmas.len()];
        let mut in_both = 0;
        for (folio, places) in folios.iter().zip(&places) {
            let vma = vmas.iter().position(|(_, vma)| is_in(places, vma));
            match vma {
                Some(vma) => used[vma] = true,
                None => in_both += 1,
            }
            let mapped = if vma.is_some() { 0 } else { folio.nr as i32 };
            prop_assert_eq!(folio.mapcount(), mapped);
            let slots = folio.swap.as_ref().expect("it is in the swap cache");
            prop_assert_eq!(slots.counts(), vec![u32::from(vma.is_some()); folio.nr]);
            for (page, at) in places.clone().enumerate() {
                let word = match vma {
                    Some(_) => swp_pte(slots.of(page), 0),
                    None => words[at],
                };
                prop_assert_eq!(mm.table.ptep_get(at), word);
            }
        }
        let in_one = used.iter().filter(|&&used| used).count();
        prop_assert_eq!(stops.get(), in_one + 2 * in_both);
    }
}
