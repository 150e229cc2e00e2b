# SPDX-License-Identifier: GPL-2.0
"""Running what is not ours."""

import ctypes
import re
import signal
import subprocess

from .errors import Error


def die_with_parent(by=signal.SIGTERM):
    """In a child: end when the parent is killed, so that nothing runs on unseen."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, by)


def git_files(top, *paths):
    """The files of a work tree, or of some paths in it: git's, and new ones that it does not ignore."""
    done = subprocess.run(["git", "-C", top, "ls-files", "-co", "--exclude-standard", "-z", "--", *paths],
                          capture_output=True)
    if done.returncode:
        why = (done.stderr.decode(errors="replace").splitlines() or ["no reason given"])[0]
        raise Error(f"git does not list the files of {top} ({why})", "run it in a clone of your own")
    return [name for name in done.stdout.decode().split("\0") if name]


def run(command, log, what, cwd=None, env=None, on_line=None):
    """Runs a command into a log. A failure is one line with the log's first error."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w") as out:
        child = subprocess.Popen([str(c) for c in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", preexec_fn=die_with_parent)
        with child.stdout:
            for line in child.stdout:
                out.write(line)
                if on_line:
                    on_line(line)
        code = child.wait()
    if code:
        lines = log.read_text(errors="replace").splitlines()
        error = next((l for l in lines if re.search(r"error[:\[]|\*\*\*", l)), lines[-1] if lines else "no output")
        raise Error(f"{what} failed ({error.strip()[:160]})", f"see {log}")
