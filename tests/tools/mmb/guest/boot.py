# SPDX-License-Identifier: GPL-2.0
"""Booting a kernel under QEMU, or as a process, so that every end of it is told apart.

A guest that works ends by powering off or by its job's last line; one that does not reaches the time limit
or panics. Nothing hangs, and no end is taken for another.
"""

import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass

from ..base.cache import brought
from ..base.errors import FAIL, PANIC, PASS, TIMEOUT, Error
from ..base.process import die_with_parent

MACHINES = {
    # q35: the interrupts' table of the older machine is computed, in AML, which took the debug kernel on a busy host
    # more than the 30 s that ACPI allows; its disks were then without interrupts, and init waited for them.
    "x86_64": ["qemu-system-x86_64", "-M", "q35", "-bios", "qboot.rom", "-cpu", "max"],
    "arm64": ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a76"],
}
# 5-level paging and KASAN: identify_cpu() clears the CPU's features for a moment, and by what is left of them
# KASAN takes the addresses that an interrupt uses then for wild ones (7.3).
FLAVOURS = {"debug": "no5lvl "}
# Without icount, x86's early check of the timer fails on a busy host, and panics.
UNTIMED = {"x86_64": "no_timer_check "}
CONSOLES = {"x86_64": "ttyS0", "arm64": "ttyAMA0"}
ICOUNT = ["-accel", "tcg", "-icount", "shift=0,sleep=off"]
# So for what is to be in step and not to be timed: a guest's second is that much less work.
IN_STEP = ["-accel", "tcg", "-icount", "shift=4,sleep=off"]
# One host thread for all CPUs: with a thread for each, QEMU 7.2 ends some boots in an int3
# oops while static keys are switched, and QEMU 10 was not seen to (docs/measuring.md).
SMP = ["-accel", "tcg,thread=single"]
THREADS = ["-accel", "tcg,thread=multi"]
THREADS_QEMU = 10
# What a disk called slow writes: so that a write takes time.
SLOW = ",throttling.bps-write=16000000,throttling.iops-write=400"
# Of the other nobody has looked whether it holds.
THREADS_ARCH = "x86_64"


@dataclass
class Ended:
    """How a boot ended."""

    code: int  # PASS, FAIL, TIMEOUT or PANIC
    why: str
    lines: list


def kvm():
    """Whether ACCEL= asks for it."""
    return os.environ.get("ACCEL") == "kvm"


def version(program):
    """QEMU's."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return re.search(r"\d+\.\d+\.\d+", text).group(0)


def emulator(arch, threads=False):
    """The QEMU of a boot: for a host thread per CPU one that is new enough, which may have to be brought."""
    program = MACHINES[arch][0]
    if not threads or kvm():
        return program
    if shutil.which(program) and int(version(program).split(".")[0]) >= THREADS_QEMU:
        return program
    return f"{brought('threads')}/mm_batch/bin/{program}"


def accelerator(icount, threads=False):
    """QEMU's options for the clock: icount, unless ACCEL=kvm or there is a host thread per CPU."""
    if kvm():
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            raise Error("ACCEL=kvm, but /dev/kvm cannot be opened", "load kvm, or leave ACCEL= out")
        return ["-accel", "kvm"]
    return THREADS if threads else {True: ICOUNT, False: SMP, "in step": IN_STEP}[icount]


def memory_options(cpus, memory, nodes, slower):
    """The CPUs, and the memory: in so many NUMA nodes, with a part of both each; or, of x86_64, in a node that has the
    CPUs, and one of slower memory without, as a table of ACPI says.
    """
    if slower:
        options = ["-machine", "hmat=on", "-smp", str(cpus)]
        parts = [(memory - slower, f"initiator=0,cpus=0-{cpus - 1}"), (slower, "initiator=0")]
    elif nodes > 1:
        # A node has sockets of its own: the kernel warns (topology_sane()) of one whose CPUs are on two.
        options = ["-smp", f"{cpus},sockets={nodes}"]
        parts = [(memory // nodes, f"cpus={n * cpus // nodes}-{(n + 1) * cpus // nodes - 1}") for n in range(nodes)]
    else:
        return ["-smp", str(cpus)]
    for node, (mib, its) in enumerate(parts):
        options += ["-object", f"memory-backend-ram,id=node{node},size={mib}M",
                    "-numa", f"node,nodeid={node},memdev=node{node},{its}"]
    for node, latency, bandwidth in ((0, 10, "10G"), (1, 100, "1G")) if slower else ():
        lb = f"hmat-lb,initiator=0,target={node},hierarchy=memory"
        options += ["-numa", f"{lb},data-type=access-latency,latency={latency}",
                    "-numa", f"{lb},data-type=access-bandwidth,bandwidth={bandwidth}"]
    return options


def qemu_command(build, arguments, initrd, cpus, memory, icount, console="stdio", drives=(), nodes=1,
                 threads=False, slower=0, more=()):
    """QEMU's command line; `console` is its character device for the guest's serial line, `more` is added."""
    program = emulator(build.arch, threads)
    if not shutil.which(program):
        raise Error(f"{program} is not installed",
                    "apt-get install qemu-system-x86 qemu-system-arm, or leave MM_BATCH_TOOLS= unset")
    icount = not threads and icount
    append = (f"console={CONSOLES[build.arch]} panic=-1 oops=panic {FLAVOURS.get(build.flavour, '')}"
              f"{'' if icount else UNTIMED.get(build.arch, '')}{arguments}")
    # Disks that a boot leaves as they were: what it writes goes with it.
    disks = [f"file={path},if=virtio,format=raw,snapshot=on,cache=unsafe{SLOW if 'slow' in path.name else ''}"
             for path in drives]
    return [program, *MACHINES[build.arch][1:], "-nodefaults", "-serial", console, *accelerator(icount, threads),
            "-m", str(memory), "-display", "none", "-no-reboot", "-kernel", str(build.image),
            "-append", append, *(["-initrd", str(initrd)] if initrd else []),
            *(option for disk in disks for option in ("-drive", disk)),
            *memory_options(cpus, memory, nodes, slower), *more]


def uml_command(build, arguments, initrd, memory):
    """User Mode Linux's command line."""
    # Where its process id is kept, which would be in the user's home folder, by a name that each boot takes over.
    return [str(build.image), f"mem={memory}M", "console=tty", f"uml_dir={build.out}", "umid=uml",
            *([f"initrd={initrd}"] if initrd else []), *arguments.split()]


def uml_environment(build, memory):
    """Where its memory is a file: in /dev/shm; or, as containers have little of that, beside it."""
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    return os.environ | ({} if room > memory * 2**20 else {"TMPDIR": str(build.out)})


def end_with_parent():
    """In a child that boots: as boot() ends it, and without a core, which a panic of User Mode Linux would leave."""
    die_with_parent(signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent_on_one_cpu():
    """The same of User Mode Linux: one of its processes runs at a time, and each switch to another one wakes up a CPU if
    they are on several. Five times faster so, and its times differ less.
    """
    end_with_parent()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def end(child):
    """Ends a boot, and what User Mode Linux, which has a session of its own, has started."""
    child.kill()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()


def boot(build, arguments="", initrd=None, cpus=1, memory=None, icount=True, timeout=300, log=None,
         finished=None, on_line=None, **machine):
    """Boots until the guest is off, `finished` matches a line, it panics, or time is up. `machine`: see qemu_command().

    Time begins anew when on_line returns a number of seconds.
    """
    if build.arch == "um":
        memory = memory or 512
        return followed(uml_command(build, arguments, initrd, memory), timeout, log, finished, on_line,
                        env=uml_environment(build, memory), preexec_fn=end_with_parent_on_one_cpu)
    return followed(qemu_command(build, arguments, initrd, cpus, memory or 2048, icount, **machine), timeout, log,
                    finished, on_line)


def followed(command, timeout, log=None, finished=None, on_line=None, preexec_fn=end_with_parent, **popen):
    """The same of a command, which ends with this process."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             preexec_fn=preexec_fn, **popen)
    try:
        return watch(child, time.monotonic() + timeout, timeout, log, finished, on_line)
    finally:
        end(child)


def watch(child, deadline, timeout, log, finished, on_line):
    lines, rest, panic, done = [], b"", None, False
    with open(log or os.devnull, "w") as out:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return Ended(PANIC, panic, lines) if panic else Ended(
                    TIMEOUT, f"no end after {timeout} s; last line: {lines[-1] if lines else 'none'}", lines)
            if not select.select([child.stdout], [], [], left)[0]:
                continue
            chunk = os.read(child.stdout.fileno(), 65536)
            whole, _, rest = (rest + chunk).rpartition(b"\n") if chunk else (rest, b"", b"")
            for line in whole.decode(errors="replace").replace("\r", "").split("\n") if whole else []:
                lines.append(line)
                out.write(line + "\n")
                out.flush()
                if not panic and re.search(r"Kernel panic - not syncing", line):
                    panic = line.strip()
                if on_line and (more := on_line(line)):
                    deadline, timeout = time.monotonic() + more, more
                done = done or bool(finished and re.search(finished, line))
            if done and not panic:
                return Ended(PASS, "finished", lines)
            if chunk:
                continue
            if panic:
                return Ended(PANIC, panic, lines)
            if code := child.wait():
                program, last = pathlib.Path(child.args[0]).name, lines[-1] if lines else "no output"
                return Ended(FAIL, f"{program} exited with {code}: {last}", lines)
            if finished:
                return Ended(FAIL, "the guest went off before its job was done", lines)
            return Ended(PASS, "powered off", lines)

