# SPDX-License-Identifier: GPL-2.0
"""The boots that rows of several paths run in. One of a single path alone stands in its declaration."""

from .model import Boot

# The module mm_batch_bench, and upstream's test_vmalloc.
BENCH = Boot("bench", "bench.sh")
# Reclaim of memory that is mapped and used in a cgroup, metered around try_to_unmap().
RECLAIM = Boot("reclaim", "reclaim.sh", disk=True, loops=False, programs=("reclaim.c",), reader="mm_batch_meter_unmap")
RECLAIM_2CPU = Boot("reclaim-2cpu", "reclaim.sh", cpus=2, disk=True, loops=False, programs=("reclaim.c",),
                    reader="mm_batch_meter_unmap")
