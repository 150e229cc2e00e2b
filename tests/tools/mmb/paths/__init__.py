# SPDX-License-Identifier: GPL-2.0
"""The paths: each is declared in a module here, and named below."""

from importlib import import_module

# In the order in which they build upon each other, which is that of the series.
ORDER = ["contig_free", "file_unmap", "anon_unmap", "dirty_flush", "folio_batch"]

PATHS = {name: import_module(f".{name}", __name__).PATH for name in ORDER}
