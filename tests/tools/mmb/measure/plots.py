# SPDX-License-Identifier: GPL-2.0
"""The plots of the documents. SVG without a background, in greys and colours that are seen on a light and a dark page."""

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

GREY = "#808080"
COLOURS = {"off": "#b0b0b0", "C": "#3a9bdc", "twin": "#d99000", "Rust": "#10a070"}
STYLE = {
    "svg.hashsalt": "mm_batch", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 10,
    "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
    "axes.titlecolor": GREY, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
}

# row -> what a reader calls it
PARTS = {"order9": "2 MiB range", "ext4-16k": "file 16 KiB", "ext4-64k": "file 64 KiB", "ext4-2m-pte": "file 2 MiB",
         "zero-16k": "anonymous 16 KiB", "zero-64k": "anonymous 64 KiB", "zero-2m-pmd": "anonymous 2 MiB"}
WHOLES = {"vmalloc-p512-h1": "vmalloc of 2 MiB", "ext4-16k": "file 16 KiB", "ext4-64k": "file 64 KiB",
          "ext4-2m-pte": "file 2 MiB", "zero-4k": "anonymous 4 KiB", "zero-16k": "anonymous 16 KiB",
          "zero-64k": "anonymous 64 KiB", "zero-2m-pmd": "anonymous 2 MiB"}


def saved(figure, file):
    figure.savefig(file, transparent=True, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def drawn(draw):
    def within(figures, file):
        with plt.rc_context(STYLE):
            draw(figures, file)
    return within


def whole_metric(figures, row):
    return "insn_total" if "insn_total" in figures.rows[row]["metrics"] else None


def modes_of(figures, row, metric):
    """What a row takes, in % of off, by mode; the twin's as part of its own kernel's off."""
    release, twins = figures["release"], figures["twins"]
    found = {"off": 1.0, "C": release.ratio(row, "c", "off", metric)}
    # What is measured of contig_free there is 7.3's batch: it was before that had a twin.
    if row in twins.rows and twins.rows[row]["path"] != "contig_free":
        found["twin"] = twins.ratio(row, "c", "off", metric)
    found["Rust"] = release.ratio(row, "rust", "off", metric)
    return {mode: 100 * value for mode, value in found.items() if value is not None}


@drawn
def gain(figures, file):
    """Part and whole call, per path and folio size."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 6.2), sharex=True)
    for axis, rows, title, metric in ((axes[0], PARTS, "the function that changed", lambda row: None),
                                      (axes[1], WHOLES, "the whole call", lambda row: whole_metric(figures["release"], row))):
        place, ticks = 0.0, []
        for row, name in rows.items():
            by_mode = modes_of(figures, row, metric(row))
            ticks.append((place + (len(by_mode) - 1) / 2, name))
            for mode, value in by_mode.items():
                axis.barh(place, value, height=0.9, color=COLOURS[mode])
                axis.text(value + 1.5, place, f"{value:.0f}", va="center", fontsize=8)
                place += 1
            place += 1
        axis.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
        axis.tick_params(axis="y", length=0)
        axis.invert_yaxis()
        axis.set_xlim(0, 110)
        axis.set_title(f"instructions per page, % of off: {title}", fontsize=10)
    figure.legend(handles=[plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()],
                  labels=["off: page by page", "C: Linux 7.3's batch", "twin: this algorithm in C", "Rust"],
                  loc="lower center", ncols=4, bbox_to_anchor=(0.5, -0.04))
    figure.tight_layout()
    saved(figure, file)


FLUSHES = [
    ("pageout-4cpu", "flushes_per_dirty_folio", "MADV_PAGEOUT, 4 CPUs:\nflushes per dirty folio"),
    ("stress-ng-4cpu", "tlb_shootdowns_per_stolen", "stress-ng, 4 CPUs:\nshootdowns per page"),
    ("stress-ng-4cpu", "call_ipis_per_stolen", "stress-ng, 4 CPUs:\nIPIs per page"),
    ("stress-ng-4cpu-classic", "tlb_shootdowns_per_stolen", "the same without LRU_GEN:\nshootdowns per page"),
    ("stress-ng-16cpu", "tlb_shootdowns_per_stolen", "stress-ng, 16 CPUs:\nshootdowns per page"),
]


@drawn
def flushes(figures, file):
    """Flushes and interrupts per page, with the extremes of five runs."""
    figure, axis = plt.subplots(figsize=(8, 3.6))
    for place, (row, metric, _) in enumerate(FLUSHES):
        for offset, mode, name in ((-0.2, "off", "off"), (0.2, "rust", "Rust")):
            found = figures["release"].entry(row, mode, metric)
            low, high = found["median"] - found["min"], found["max"] - found["median"]
            axis.barh(place + offset, found["median"], height=0.38, color=COLOURS[name], xerr=[[low], [high]],
                      ecolor="#686868", label=name if place == 0 else None)
            axis.text(found["max"] + 0.02, place + offset, f"{found['median']:.3f}", va="center", fontsize=8)
    axis.set_yticks(range(len(FLUSHES)), [name for *_, name in FLUSHES], fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.invert_yaxis()
    axis.legend(loc="center right")
    axis.set_title("median and range of five runs, in turn", fontsize=10)
    saved(figure, file)


BUILDS = {"release": "x86_64, clang, helpers inlined", "noinline": "x86_64, clang, helpers not inlined",
          "distro": "x86_64, gcc, helpers not inlined", "arm64": "arm64, clang, helpers inlined"}
COMPARED = {"ext4-16k": "file 16 KiB", "ext4-64k": "file 64 KiB", "shmem-64k": "shmem 64 KiB",
            "lazyfree-64k": "lazyfree 64 KiB", "ext4-2m-pte": "file 2 MiB"}


@drawn
def builds(figures, file):
    """Rust against the kernel's own C, by compiler and architecture: the part, and the whole call."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True)
    marks = dict(zip(BUILDS, "osD^"))
    colours = dict(zip(BUILDS, ("#10a070", "#d99000", "#c05050", "#3a9bdc")))
    for axis, whole in zip(axes, (False, True)):
        for name, label in BUILDS.items():
            places, values = [], []
            for place, row in enumerate(COMPARED):
                metric = whole_metric(figures[name], row) if whole else None
                if whole and metric is None:
                    continue
                places.append(place)
                values.append(figures[name].ratio(row, "rust", "c", metric))
            axis.plot(values, places, marks[name], color=colours[name], label=label, markersize=7)
        axis.axvline(1, color=GREY, linewidth=0.8)
        axis.set_title("Rust/C, " + ("the whole call" if whole else "the function that changed"), fontsize=10)
        axis.set_yticks(range(len(COMPARED)), list(COMPARED.values()))
        axis.grid(axis="x", color=GREY, alpha=0.25)
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2, bbox_to_anchor=(0.5, -0.16))
    figure.tight_layout()
    saved(figure, file)


# name -> what draws it into a file
PLOTS = {"gain": gain, "flushes": flushes, "builds": builds}
