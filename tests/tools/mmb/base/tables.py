# SPDX-License-Identifier: GPL-2.0
"""Tables of text: rows of cells, of which the first has the heads."""


def number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def text_table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(c.ljust(w) if i in (0, len(r) - 1) else c.rjust(w)
                               for i, (c, w) in enumerate(zip(r, widths))).rstrip() for r in rows)


def markdown_table(rows):
    head, *body = ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])
