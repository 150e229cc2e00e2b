# SPDX-License-Identifier: GPL-2.0
"""Where things are, how an error reads, how long is left."""
