# SPDX-License-Identifier: GPL-2.0
"""What a step depends on, as a hash: what runs, and what judges it.

A step that boots is stamped by the kernel, the modules and programs of its guest, scripts, and our own modules without
comments and documentation: not by sources. So a comment makes none of them stale, once the kernel was built and has
turned out to be the same. KUnit's suites are linked into every kernel: of a step that does not run them, the kernel is
the objects of which its image is linked, but for theirs. A step of user space is stamped by its sources without
comments; one that reads prose, as lint does, or runs what is in it, as test does, by all of its files.

report/full.json, which is tracked, says what passed with which hash, and of which sources each kernel was built.
"""

import ast
import hashlib
import json
import re
import subprocess
import tomllib

from ..base.cache import TOP, write_atomically
from ..base.errors import Error
from ..base.modules import closure
from ..base.process import git_files
from ..guest import payload, upstream
from ..guest.boot import THREADS_ARCH, emulator, version
from ..guest.initrd import tree
from ..kernel.kbuild import tool_versions
from ..suites import expected
from .steps import of_full, of_soak

REPORT = TOP / "report/full.json"
# What kernels and the programs of guests are built of.
SOURCES = ("rust/mm_batch/", "patches/", "tests/tools/fetch/packages.sh",
           *(f"tests/kernel/{name}" for name in ("config/", "kunit/", "bench/", "selftests/*.[ch]", "workloads/*.[ch]")))
# What a step writes.
WRITTEN = "patches/versions.md"
# What is for people alone.
PROSE = re.compile(r"\.md$|/0000-cover-letter\.patch$")
# Of a kernel, the hash for steps that run KUnit, and for those that do not.
RUNS = "runs", "runs_but_kunit"
# Of its parts, what comes of the sources and the tools alone.
BUILT = {"objects", "image", "modules"}


def files(names, prose):
    """The files of the work tree that are meant, without what a step itself writes."""
    return sorted(name for name in set(git_files(TOP, *names)) - {WRITTEN}
                  if (prose or not PROSE.search(name)) and (TOP / name).is_file())


def code_of(path):
    """What of a file counts where prose does not."""
    text = path.read_bytes()
    if path.suffix == ".py":
        return without_documentation(text).encode()
    if path.suffix == ".rs":
        # Without lines that are comments.
        return re.sub(rb"(?m)^\s*//.*\n", b"", text)
    if path.is_relative_to(TOP / "patches") and path.suffix == ".patch":
        # Without its message.
        return text[max(text.find(b"\ndiff --git"), 0):]
    if path.suffix == ".toml":
        return repr(tomllib.loads(text.decode())).encode()
    return text


def without_documentation(text):
    """Python as the interpreter has it."""
    parsed = ast.parse(text)
    for node in ast.walk(parsed):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body[0] = ast.Pass()
    return ast.dump(parsed)


def judging(modules):
    """The sources of modules with all that they import, but for what only says how long there is left."""
    return [source for source in closure(modules) if source.parts[-2:] != ("base", "progress.py")]


def hash_of(names, prose=True):
    """SHA-256 over the names and contents of files."""
    digest = hashlib.sha256()
    for name in files(names, prose):
        content = (TOP / name).read_bytes() if prose else code_of(TOP / name)
        digest.update(f"\0{name}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def objects(out):
    """What the image of a build is linked of, but for KUnit's suites: the configuration, and objects, by path."""
    listed = []
    for archive in ("vmlinux.a", *sorted(str(path.relative_to(out)) for path in out.rglob("lib.a"))):
        listed += subprocess.run(["llvm-ar", "t", archive], cwd=out, capture_output=True, text=True,
                                 check=True).stdout.split()
    return [out / ".config", *(out / name for name in listed if "mm/tests/" not in name)]


def hashes(paths):
    return b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)


def what_runs(build, steps):
    """Of a kernel that is built: SHA-256 over what runs, with and without KUnit's suites: over its image or its objects,
    and the modules and programs of its guests. And hashes of its parts, and of the versions of the tools.
    """
    tools = tool_versions().encode()
    if build.arch == "um":
        # Whose steps all run KUnit.
        image = hashlib.sha256(build.image.read_bytes()).hexdigest()
        return dict.fromkeys(RUNS, image) | {"parts": {"tools": short(tools), "image": image[:12]}}
    modules = payload.loadable(build, steps)
    programs = [*payload.selftests(build), *payload.workloads(build)]
    root = tree(build.arch)
    installed = sorted(p for p in upstream.programs(build, root).rglob("*") if p.is_file())
    emulators = {emulator(build.arch, threads) for threads in (False, build.arch == THREADS_ARCH)}
    versions = " ".join(sorted(map(version, emulators)))
    digest = hashlib.sha256(versions.encode())
    digest.update(root.with_name(f"{root.name}.complete").read_bytes())
    for name in (*modules, *programs, *installed):
        digest.update(f"\0{name.name}\0".encode() + name.read_bytes())
    config, *linked = objects(build.out)
    found = {part: hashes(paths) for part, paths in (
        ("configuration", [config]), ("objects", linked), ("image", [build.image]), ("modules", modules),
        ("programs", programs), ("kernel's own selftests", installed))}
    boots = found["image"], found["configuration"] + found["objects"]
    return {of: hashlib.sha256(digest.digest() + what).hexdigest() for of, what in zip(RUNS, boots)} | {
        "parts": {"tools": short(tools), "emulators": versions} | {part: short(what) for part, what in found.items()}}


def short(content):
    return hashlib.sha256(content).hexdigest()[:12]


def differing(was, now):
    """The parts of a kernel that are others than in its record."""
    before = was.get("parts", {})
    return {part for part, of in now["parts"].items() if before.get(part) != of}


def kernel_of(was, now):
    """What to record of a kernel that was built: of the same sources, by the same tools, it is that of the record, even
    if another machine has put something of its own into it.
    """
    same = was and was["sources"] == now["sources"] and differing(was, now) <= BUILT
    return was if same else now


def recorded():
    """What the report says: of kernels, and of steps, by name."""
    try:
        found = json.loads(REPORT.read_text())
        return found.get("kernels", {}), {s["name"]: s for s in found["steps"]}
    except FileNotFoundError:
        return {}, {}
    except (ValueError, KeyError, AttributeError) as error:
        raise Error(f"{REPORT} is not readable ({error})", "remove it, or restore it from git") from None


def record(kernels, steps):
    known = [steps[step.name] for step in (*of_full(), *of_soak()) if step.name in steps]
    write_atomically(REPORT, json.dumps({"kernels": kernels, "steps": known}, indent=1) + "\n")


def inputs(step, kernels, sources):
    """The hash of what a step depends on, or None if one of its kernels was not built of the present sources, of which
    this is the hash.
    """
    digest = hashlib.sha256(step.command.encode())
    for name in step.kernels:
        known = kernels.get(name)
        if not known or known["sources"] != sources:
            return None
        with_kunit, without = RUNS
        digest.update(known[with_kunit if step.kunit else without].encode())
    for source in judging(step.judges):
        digest.update(f"\0{source.name}\0".encode() + code_of(source))
    digest.update(hash_of(step.files, step.prose).encode())
    if step.tests:
        listed = expected.listed()
        digest.update(repr([listed[name] for name in step.tests]).encode())
    return digest.hexdigest()


def state(step, was, now):
    """fresh, failed (on these inputs), stale, never run, or not known until kernels are built: by what is recorded of a
    step, and its inputs.
    """
    if not was:
        return "never run"
    if not now:
        return f"not known, until {', '.join(step.kernels)} is built of the present sources"
    if was["inputs"] != now:
        return "stale"
    return "fresh" if was["status"] == "pass" else "failed"


def states(steps):
    """Step -> its state."""
    kernels, known = recorded()
    sources = hash_of(SOURCES)
    return {step: state(step, known.get(step.name), inputs(step, kernels, sources)) for step in steps}
