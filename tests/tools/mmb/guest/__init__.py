# SPDX-License-Identifier: GPL-2.0
"""An image runs."""
