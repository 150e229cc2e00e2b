# SPDX-License-Identifier: GPL-2.0
"""What must pass."""
