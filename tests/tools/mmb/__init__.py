# SPDX-License-Identifier: GPL-2.0
"""Building, booting and measuring the patched kernel. Entry: __main__.py."""
