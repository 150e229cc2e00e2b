# SPDX-License-Identifier: GPL-2.0
"""One KUnit case, for tests/mutants/run: does it fail in a kernel built from a tree with a planted bug?"""

import re

from . import kunit
from .boot import boot
from .common import PASS, Error
from .kbuild import staged_build

FAILED = 100  # as of nextest: not the code of a kernel that does not build


def do_case(arch, name):
    """PASS or FAILED as the case ended; a kernel that does not come that far is an error."""
    suite, case = name.split(".")
    build, steps = staged_build(arch, f"KUnit case {name}", {"case": 15})
    steps.start("case", "booting with KUnit")
    log = build.base.work / f"{build.out.name}-case.log"
    # The first of the boots that has what the case needs.
    suites = next((s for s in kunit.BOOTS[build.flavour] if name not in s.skips(build)), None)
    if not suites:
        raise Error(f"{name} is skipped in every boot of the {build.flavour} kernel", "name another case")
    # By icount, a busy host cannot make the guest's timers fail, which would look like a missed bug.
    ended = boot(build, f"{kunit.arguments(f'{suite}.{case}')} {suites.arguments}", cpus=1, icount=True, timeout=180,
                 log=log)
    steps.done()
    found = re.search(rf"^ *(not )?ok \d+ {case}$", "\n".join(ended.lines), re.M)
    if not found:
        why = ended.why if ended.code != PASS else "KUnit did not run it"
        raise Error(f"{name} has no result ({why})", f"see {log}")
    print(f"{name}: {'failed' if found.group(1) else 'passed'}")
    return FAILED if found.group(1) else PASS
