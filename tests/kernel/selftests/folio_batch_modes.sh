#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The modes of folio_batch from user space, in KTAP. The load is what dirty_flush has, of which
# the selftests dirty_flush and dirty_flush_write are beside it.
#
#	folio_batch_modes.sh [SECONDS]
#
# The load goes on for so long, each kind of it ten times as long as without.

path=folio_batch default=off
. "${0%/*}/dirty_flush_modes.sh"
