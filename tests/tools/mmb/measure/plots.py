# SPDX-License-Identifier: GPL-2.0
"""The plots of the documents. SVG without a background, in greys and colours that are seen on a light and a dark page."""

import re

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
PARTS = {"in-ttu-data-4k": "data 4 KiB", "in-ttu-ext4-4k": "file 4 KiB", "order9": "2 MiB range",
         "ext4-16k": "file 16 KiB", "ext4-64k": "file 64 KiB", "ext4-2m-pte": "file 2 MiB",
         "data-16k": "data 16 KiB", "data-64k": "data 64 KiB", "zero-64k": "zeroes 64 KiB", "zero-2m-pmd": "zeroes 2 MiB"}
WHOLES = {"batch-data-4k": "data 4 KiB", "batch-ext4-4k-reclaim": "file 4 KiB",
          "vmalloc-p512-h1": "vmalloc of 2 MiB", "ext4-16k": "file 16 KiB", "ext4-64k": "file 64 KiB",
          "ext4-2m-pte": "file 2 MiB", "data-16k": "data 16 KiB", "data-64k": "data 64 KiB", "zero-64k": "zeroes 64 KiB",
          "zero-2m-pmd": "zeroes 2 MiB"}


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
    found = {"off": 1.0, "C": release.ratio(row, "c", "off", metric), "twin": twins.ratio(row, "c", "off", metric),
             "Rust": release.ratio(row, "rust", "off", metric)}
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
            in_time = figures["time"].of_off(row, metric(row))
            ticks.append((place + (len(by_mode) - 1) / 2, name))
            for mode, value in by_mode.items():
                axis.barh(place, value, height=0.9, color=COLOURS[mode])
                beside = value
                if mode in in_time:
                    time = 100 * in_time[mode]
                    axis.plot(time, place, "D", color=GREY, markersize=5)
                    # The diamond would hide the figure.
                    beside = time if value <= time < value + 8 else value
                axis.text(beside + 2, place, f"{value:.0f}", va="center", fontsize=8)
                place += 1
            place += 1
        axis.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
        axis.tick_params(axis="y", length=0)
        axis.invert_yaxis()
        axis.set_xlim(0, 110)
        axis.set_title(f"instructions per page, % of off: {title}", fontsize=10)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    handles.append(plt.Line2D([], [], color=GREY, marker="D", markersize=5, linestyle=""))
    labels = ["off: page by page", "C: Linux 7.3's batch", "twin: this algorithm in C", "Rust", "time, in User Mode Linux"]
    figure.legend(handles, labels, loc="lower center", ncols=5, bbox_to_anchor=(0.5, -0.04))
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


def by_build(axis, figures, rows, quotient):
    """One row each of what `rows` names; a mark for each build that has it."""
    for (name, label), mark, colour in zip(BUILDS.items(), "osD^", ("#10a070", "#d99000", "#c05050", "#3a9bdc")):
        found = [(place, quotient(figures[name], row)) for place, row in enumerate(rows) if row in figures[name].rows]
        found = [(value, place) for place, value in found if value is not None]
        axis.plot(*zip(*found), mark, color=colour, label=label, markersize=7)
    axis.axvline(1, color=GREY, linewidth=0.8)
    axis.set_yticks(range(len(rows)), list(rows.values()))
    axis.grid(axis="x", color=GREY, alpha=0.25)
    axis.invert_yaxis()


def whole(over, under):
    """Of the whole call, in the metric that a row has it in."""
    return lambda figures, row: figures.ratio(row, over, under, whole_metric(figures, row))


@drawn
def builds(figures, file):
    """By compiler and architecture: Rust against the kernel's own C, the part and the whole call; and against page by
    page.
    """
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.4))
    for axis, rows, quotient, title in (
            (axes[0], COMPARED, lambda of, row: of.ratio(row, "rust", "c"), "Rust/C, the function that changed"),
            (axes[1], COMPARED, whole("rust", "c"), "Rust/C, the whole call"),
            (axes[2], WHOLES, whole("off", "rust"), "off/Rust, the whole call")):
        by_build(axis, figures, rows, quotient)
        axis.set_title(title, fontsize=10)
    axes[1].set_yticklabels([])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, bbox_to_anchor=(0.5, -0.1))
    figure.tight_layout()
    saved(figure, file)


# What a call is made of: a group of functions, and how their names begin. The first that fits counts.
STAGES = [
    ("search for zeroes, write", "swap_writeout|__swap_write|swap_write|swap_zeromap|brd_|submit_bio|bio_|memcpy|copy_page"),
    ("rmap walk and its locks", "folios?_referenced|rmap_walk|__rmap|page_vma_mapped|map_pte|check_pte|_*pte_offset"
     "|folio_lock_anon|(down|up)_|anon_(rmap|vma)|__anon_vma|vma_interval|folio_get_anon"),
    ("unmapping: PTEs, counts, flush", "try_to_unmap|ttu_|<?mm_batch(?!::(dirty_flush|folio_batch)::)|rust_helper"
     "|folio_remove_rmap|flush_tlb|native_flush|_find_next_bit|swap_dup|folio_dup|cond_install|percpu_counter|set_ptes"
     "|folio_put_swap|swap_put"),
    ("swap slots and swap cache", "folios?_alloc_swap|shrink_batch_(alloc_swap|remove)|swap_alloc|swap_range|alloc_swap"
     "|cluster_|__swap_cl|relocate_cl|.*swap_cache|swap_entr|__mem_cgroup_try_charge_swap|__remove_mapping|workingset"
     "|memcg1_swap|free_swap|swap_free|isolate_lock_cl"),
    ("statistics", "lruvec_stat|_*mod_|mem_cgroup_update_lru|.*css_rstat|count_memcg|node_stat|count_vm|__count"),
    ("freeing", "free_|__free|uncharge|__mem_cgroup_uncharge|__memcg|page_counter|get_pfnblock|folio_batch|destroy"),
    ("the loop, isolation, the call", "shrink_|<?mm_batch|folios?_|madvise|do_madvise|isolate|walk_|__walk|reclaim_|lru_"
     "|lruvec_|vm_normal|__lru"),
]
REST = "the rest"
MADE_OF = [("batch-call-4k", "off", "4 KiB, page by page"), ("batch-call-4k", "rust", "4 KiB, folio_batch"),
           ("call-64k", "off", "64 KiB, page by page"), ("call-64k", "rust", "64 KiB, anon_unmap")]
SHADES = ("#3a9bdc", "#d99000", "#10a070", "#8a63c0", "#c05050", "#7a8a99", "#b8a050", "#b0b0b0")


def stage(function):
    return next((name for name, begins in STAGES if re.match(begins, function)), REST)


def by_stage(functions):
    """Instructions by group, the rest last."""
    found = dict.fromkeys([*(name for name, _ in STAGES), REST], 0.0)
    for function, instructions in functions.items():
        found[stage(function)] += instructions
    return found


@drawn
def made_of(figures, file):
    """What a call of MADV_PAGEOUT is made of, per page."""
    figure, axis = plt.subplots(figsize=(10, 3.1))
    for place, (row, mode, _) in enumerate(MADE_OF):
        left = 0.0
        for (name, value), colour in zip(by_stage(figures["profiles"][row][mode]).items(), SHADES):
            axis.barh(place, value, left=left, height=0.7, color=colour, label=name if place == 0 else None)
            if value >= 150:
                axis.text(left + value / 2, place, f"{value:.0f}", ha="center", va="center", fontsize=8, color="white")
            left += value
        axis.text(left + 40, place, f"{left:.0f}", va="center", fontsize=8)
    axis.set_yticks(range(len(MADE_OF)), [name for *_, name in MADE_OF])
    axis.tick_params(axis="y", length=0)
    axis.invert_yaxis()
    axis.set_title("instructions per page of zeroes, the whole call", fontsize=10)
    figure.legend(loc="lower center", ncols=4, bbox_to_anchor=(0.5, -0.22), fontsize=8)
    figure.tight_layout()
    saved(figure, file)


# What Rust is compared with in time -> how the plot calls it.
AGAINST = {"off": "page by page", "C": "Linux 7.3's batch in C", "twin": "this algorithm in C"}


@drawn
def times(data, file):
    """How many times more than Rust others take, with the interval in which that is; of rows in time."""
    rows = list(dict.fromkeys(found["workload"] for found in data["ratios"]))
    found = {name: {} for name in AGAINST}
    for ratio in data["ratios"]:
        # Each kernel of make time has it: the first counts.
        name = "off" if ratio["over"] == "off" else ratio.get("c", "C")
        found[name].setdefault(ratio["workload"], ratio)
    figure, axis = plt.subplots(figsize=(8, 1.2 + 0.36 * len(rows)))
    for offset, (name, by_row) in zip((-0.22, 0, 0.22), found.items()):
        if by_row:
            medians = [ratio["median"] for ratio in by_row.values()]
            below = [ratio["median"] - ratio["low"] for ratio in by_row.values()]
            above = [ratio["high"] - ratio["median"] for ratio in by_row.values()]
            axis.errorbar(medians, [rows.index(row) + offset for row in by_row], xerr=[below, above], fmt="o",
                          color=COLOURS[name], markersize=5, label=f"{AGAINST[name]} / Rust")
    axis.axvline(1, color=GREY, linewidth=0.8)
    axis.set_yticks(range(len(rows)), rows)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color=GREY, alpha=0.25)
    axis.invert_yaxis()
    axis.legend(loc="best", fontsize=8)
    axis.set_title(f"time: median and its 95 % interval, on {data['cpu']}", fontsize=10)
    saved(figure, file)


# name -> what draws it into a file
PLOTS = {"gain": gain, "flushes": flushes, "builds": builds, "made-of": made_of}
