# SPDX-License-Identifier: GPL-2.0
"""What reviewers get."""
