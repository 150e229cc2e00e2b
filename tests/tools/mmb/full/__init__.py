# SPDX-License-Identifier: GPL-2.0
"""What is fresh, and what is not."""
