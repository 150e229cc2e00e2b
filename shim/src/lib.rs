// SPDX-License-Identifier: GPL-2.0

//! Linux mm in user space: enough of it to run `mm_batch`'s algorithms against, and no more.
//!
//! It is a model. Each module says what of the kernel it models, by function and source file, and
//! what it leaves out. A passing test says that the algorithm is right against this model, under
//! the memory model of loom, within the bound that the test prints; it is no proof about the
//! kernel.
//!
//! | module     | models                                                | as                   |
//! |------------|-------------------------------------------------------|----------------------|
//! | [`page`]   | a page's reference count and what its holders wrote   | trusted model        |
//! | [`lists`]  | the allocator's end: who may be freed, and how        | trusted model        |
//! | [`contig`] | `ContigMm`: counts, prepare, zones, sections          | trusted model        |
//! | [`smp`]    | the kernel's barriers and ordered atomics             | mapping to C11       |
//! | [`sync`]   | std or loom                                           | facade               |
//! | `model`    | one loom model: run, count, report                    | tested with itself   |

#![forbid(unsafe_code)]

pub mod contig;
pub mod lists;
#[cfg(loom)]
pub mod model;
pub mod page;
pub mod smp;
pub mod sync;
