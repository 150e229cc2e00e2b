// SPDX-License-Identifier: GPL-2.0

//! The tests of `mm_batch`: see the folders beside this file.
