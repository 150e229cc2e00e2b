# SPDX-License-Identifier: GPL-2.0
"""A source becomes an image."""
