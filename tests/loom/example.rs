// SPDX-License-Identifier: GPL-2.0

//! The model to start from: a page, its owner, and a walker by PFN that takes a reference for a
//! moment. Run it with `make loom T=example`; break it to see a failure, and its replay.

use mm_batch::pages::Pfn;
use mm_shim::contig_free::{Layout, Mm};
use mm_shim::lists::State;
use mm_shim::model::{check, Bound};
use mm_shim::sync::{thread, Arc};

const OWNER: usize = 0;
const WALKER: usize = 1;

#[test]
fn example() {
    // Every way in which the model may end: each must occur, and no other.
    let ends = ["the owner freed it", "the walker freed it"];
    check(Bound::Exhaustive, &ends, |outcomes| {
        let pfn = Pfn::new(8);
        let mm = Arc::new(Mm::new(Layout::plain(pfn.get(), 1)));
        let theirs = mm.clone();
        let walker = thread::spawn(move || {
            if theirs.page(pfn).try_get() {
                theirs.page(pfn).write();
                theirs.put_page(pfn, WALKER);
            }
        });
        mm.page(pfn).write();
        mm.put_page(pfn, OWNER);
        walker.join().expect("the walker panicked");
        outcomes.saw(match mm.state(pfn.get()) {
            State::Free(OWNER) => "the owner freed it",
            State::Free(_) => "the walker freed it",
            lost => panic!("{lost:?}"),
        });
    });
}
