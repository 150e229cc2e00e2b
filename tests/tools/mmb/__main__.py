# SPDX-License-Identifier: GPL-2.0
"""The verbs that need a kernel. Exit codes: 0 pass, 1 fail, 2 timeout, 255 panic."""

import argparse
import os
import sys

from .base.errors import FAIL, PASS, Error, say
from .base.process import die_with_parent
from .kernel.compiled import same_source
from .kernel.kbuild import Build, flavour, named_config, staged_build
from .kernel.tree import Base, stage, tree_of
from .guest import debian, payload, rootfs
from .suites import kselftest, kunit
from .suites.mutants import mutants_kernel
from .measure import evaluate, profile, uml
from .measure.documents import make_report
from .measure.meter import meter
from .series import before
from .series.branch import make_export, make_import
from .series.check import checkpatch_series, patches_check, versions
from .series.deb import asked as asked_of_deb, make_deb
from .series.write import make_series
from .full import lanes


def do_kernel(args):
    build, steps = staged_build(args.arch, "kernel")
    steps.done()
    print(build.image)
    return PASS


def do_kunit(args):
    parts = kunit.parts(flavour())
    seconds = {"release": 15, "debug": 90}[flavour()]
    build, steps = staged_build(args.arch, "kunit",
                                payload.STEP | {f"{args.arch} {flavour()} {p.name}": seconds for p in parts})
    return booted(parts, build, payload.modules(build, steps), steps)


def do_uml(_):
    if named_config() or flavour() == "debug":
        raise Error("User Mode Linux has one configuration", "leave CONFIG= and DEBUG= out, or give EXTRA_CONFIG=")
    parts = kunit.parts_at_boot("uml")
    build, steps = staged_build("um", "uml", {f"um {flavour()} {p.name}": 2 for p in parts})
    return booted(parts, build, [], steps)


def booted(parts, build, modules, steps):
    """Runs boots with KUnit, and prints a line for each."""
    results = []
    for part in parts:
        steps.start(f"{build.arch} {flavour()} {part.name}", f"booting: {part.what}")
        results.append(part.run(build, modules))
    steps.done()
    print(*(line for _, line in results), sep="\n")
    return max(code for code, _ in results)


def do_lint(args):
    found = Build(*stage(), args.arch, "clippy").clippy()
    for line in found:
        print(line)
    return FAIL if found else PASS


def do_stage(_):
    print(stage()[1])
    return PASS


def do_kselftest(args):
    build, steps = staged_build(args.arch, kselftest.verb(), payload.STEP | kselftest.estimates())
    return kselftest.kselftest(build, payload.loadable(build, steps), steps, kunit.slower(build, 1))


def do_shell(args):
    build, steps = staged_build(args.arch, "shell", payload.STEP)
    modules = payload.loadable(build, steps)
    steps.done()
    command = rootfs.shell_command(build, modules)
    say("booting to a prompt; 'exit' leaves")
    # A terminal that is closed ends make, which must not leave a guest behind.
    die_with_parent()
    os.execvp(command[0], command)


def do_same_source(args):
    # The tree as it was built: staging it anew would hide a difference.
    base = Base()
    return same_source(Build(base, tree_of(base), args.arch), args.built)


# What is asked for must be there, before anything is locked or built.
ASKED = {
    "kselftest": lambda args: kselftest.asked(),
    "evaluate": lambda args: evaluate.asked(args.arch, args.scale),
    "profile": lambda args: profile.chosen(),
    "time": lambda args: uml.asked(),
    "before": lambda args: before.asked(),
    "deb": lambda args: asked_of_deb(args.arch),
}
VERBS = {
    "kernel": do_kernel,
    "kunit": do_kunit,
    "uml": do_uml,
    "kselftest": do_kselftest,
    "lint": do_lint,
    "shell": do_shell,
    "evaluate": lambda args: evaluate.evaluate(args.arch, args.scale),
    "time": lambda args: uml.time(args.scale),
    "before": lambda args: before.before(args.arch, args.scale),
    "meter": lambda args: meter(args.arch),
    "profile": lambda args: profile.profile(args.arch, args.scale),
    "report": lambda args: make_report(args.check),
    "stage": do_stage,
    "series": lambda args: make_series(),
    "deb": lambda args: make_deb(args.arch),
    "follow": lambda args: debian.follow(args.name),
    "patches-check": lambda args: patches_check(args.arch),
    "checkpatch": lambda args: checkpatch_series(),
    "versions": lambda args: versions(),
    "same-source": do_same_source,
    "full": lambda args: lanes.run("full", lanes.chosen()),
    "full-kernel": lambda args: lanes.build_kernel(args.name),
    "full-step": lambda args: lanes.run_step(args.name),
    "soak": lambda args: lanes.run("soak", lanes.of_soak()),
    "stale": lambda args: lanes.stale(),
    "mutants-kernel": lambda args: mutants_kernel(args.arch),
    "import": lambda args: make_import(),
    "export": lambda args: make_export(),
}


def main():
    parser = argparse.ArgumentParser(prog="mmb", description="build, boot and measure mm_batch")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("name", nargs="?", help="of a step or a kernel of make full, or of a disk")
    parser.add_argument("--built", action="append", default=[], help="NAME=FILE with cargo's messages of a build")
    parser.add_argument("--check", action="store_true", help="report: say what differs, and write nothing")
    args = parser.parse_args()
    # tests/tools/given has seen what the environment has.
    args.arch, args.scale = os.environ.get("ARCH") or "x86_64", os.environ.get("SCALE") or "short"
    try:
        ASKED.get(args.verb, lambda _: None)(args)
        return VERBS[args.verb](args)
    except Error as error:
        say(f"error: {error}")
        return error.code
    except BrokenPipeError:
        # Whoever read has seen enough. Nothing is written again at the end, as that would fail, too.
        os._exit(FAIL)
    except OSError as error:
        program = isinstance(error, FileNotFoundError) and "/" not in str(error.filename)
        mend = "see make doctor" if program else "check the cache's disk and permissions, then run the same command again"
        say(f"error: {error}: {mend}")
        return FAIL
    except KeyboardInterrupt:
        say("interrupted: run the same command again to go on")
        return 130


sys.exit(main())
