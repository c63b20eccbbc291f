"""modprobe, rmmod and lsmod: the driver's modules go to the double, all others to the real programs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from . import modules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .world import World

CONFIG = (
    "etc/modprobe.d",
    "run/modprobe.d",
    "usr/local/lib/modprobe.d",
    "usr/lib/modprobe.d",
    "lib/modprobe.d",
)
# Asking, not loading: and whatever is asked for another kernel, which is how initramfs-tools asks.
ASKS = {
    "-n",
    "--dry-run",
    "--show",
    "-D",
    "--show-depends",
    "-c",
    "--showconfig",
    "--show-config",
    "-R",
    "--resolve-alias",
    "--show-modversions",
    "--dump-modversions",
    "--show-exports",
    "-S",
    "--set-version",
    "-d",
    "--dirname",
    "-V",
    "--version",
    "-h",
    "--help",
}


def config(world: World) -> Iterator[list[str]]:
    """The lines of modprobe's configuration, split into words; a file hides its namesake further down."""
    seen: dict[str, Path] = {}
    for directory in CONFIG:
        for file in sorted((world.root / directory).glob("*.conf")):
            seen.setdefault(file.name, file)
    for name in sorted(seen):
        path = world.resolve(seen[name])
        for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
            words = line.split(None, 2) if line.startswith(("install", "remove", "softdep")) else line.split()
            if words and not words[0].startswith("#"):
                yield words


def same(one: str, other: str) -> bool:
    return one.replace("-", "_") == other.replace("-", "_")


def blacklisted(world: World, name: str) -> bool:
    return any(words[0] == "blacklist" and same(words[1], name) for words in config(world) if len(words) > 1)


def assignments(words: list[str]) -> dict[str, str]:
    """The `NAME=VALUE` among some words."""
    return {name: value for name, equals, value in (word.partition("=") for word in words) if equals}


def options(world: World, name: str) -> dict[str, str]:
    """Module parameters that the configuration gives."""
    found: dict[str, str] = {}
    for words in config(world):
        if words[0] == "options" and len(words) > 2 and same(words[1], name):
            found.update(assignments(words[2:]))
    return found


def modprobe(world: World, args: list[str], *, silent: bool = False) -> int:
    names = [arg for arg in args if not arg.startswith("-") and "=" not in arg]
    flags = {arg.partition("=")[0] for arg in args if arg.startswith("-")}
    if not names or flags & ASKS or not all(modules.OURS.match(name) for name in names):
        return real("modprobe", args)
    quiet, removing = silent or bool(flags & {"-q", "--quiet"}), bool(flags & {"-r", "--remove"})
    plain = bool(flags & {"-i", "--ignore-install", "--ignore-remove"})
    every = names if flags & {"-a", "--all"} or removing else names[:1]
    given = dict(arg.split("=", 1) for arg in args if not arg.startswith("-") and "=" in arg)
    if flags & {"-b", "--use-blacklist"}:
        every = [name for name in every if not blacklisted(world, name)]
    for name in every:
        command = None if plain else _command(world, "remove" if removing else "install", name)
        if command is not None:
            line = " ".join(f"{key}={value}" for key, value in given.items())
            said = subprocess.run(
                ["/bin/sh", "-c", command],
                env={**os.environ, "CMDLINE_OPTS": line},
                capture_output=silent,
                check=False,
            )
            code = said.returncode
        else:
            code = _one(world, name, given, removing=removing, quiet=quiet)
        if code:
            return code
    return 0


def _command(world: World, kind: str, name: str) -> str | None:
    """What the configuration says to run in place of loading or removing a module."""
    for words in config(world):
        if words[0] == kind and len(words) == 3 and same(words[1], name):
            return words[2]
    return None


def _aliased(world: World, name: str) -> str:
    """The module that a plain alias stands for."""
    for words in config(world):
        if words[0] == "alias" and len(words) == 3 and same(words[1], name):
            return words[2]
    return name


def _one(world: World, name: str, given: dict[str, str], *, removing: bool, quiet: bool) -> int:
    try:
        if removing:
            modules.unload(world, name)
        else:
            name = _aliased(world, name)
            base = modules.base_module(world)
            if re.search(r"[-_](uvm|modeset|drm|peermem)$", name) and not world.state()["loaded"] and base:
                modules.load(world, base, options(world, base) | options(world, "nvidia"))
            modules.load(world, name, {**options(world, name), **options(world, "nvidia"), **given})
    except modules.LoadError as failure:
        if removing and "not currently loaded" in str(failure):
            return 0
        if not quiet:
            in_use = "in use" in str(failure)
            print(
                f"modprobe: FATAL: Module {name} is in use." if in_use else f"modprobe: {failure}",
                file=sys.stderr,
            )
        return 1
    except PermissionError:
        what = f"{'remove' if removing else 'insert'} '{name.replace('-', '_')}'"
        print(f"modprobe: ERROR: could not {what}: Operation not permitted", file=sys.stderr)
        return 1
    return 0


def rmmod(world: World, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    if not names or not all(modules.OURS.match(name) for name in names):
        return real("rmmod", args)
    for name in names:
        try:
            modules.unload(world, name)
        except modules.LoadError as failure:
            print(f"rmmod: {failure}", file=sys.stderr)
            return 1
        except PermissionError:
            print(f"rmmod: ERROR: could not remove module {name}: Operation not permitted", file=sys.stderr)
            return 1
    return 0


def lsmod(world: World, args: list[str]) -> int:
    """The machine's modules and ours. The real lsmod reads /proc/modules, which a kernel built without
    modules has not got.
    """
    print("Module                  Size  Used by")
    listing = world.run / "modules"
    for line in listing.read_text().splitlines() if listing.exists() else ():
        name, size, count, users = line.split()[:4]
        print(f"{name:<19} {size:>8}  {count} {'' if users == '-' else users.rstrip(',')}".rstrip())
    return 0


def dmesg(world: World, args: list[str]) -> int:
    """The double's lines of the kernel's log; the machine's own log is not this host's to read."""
    if any(arg in ("-V", "--version", "-h", "--help") for arg in args):
        return real("dmesg", args)
    log = world.run / "kmsg"
    sys.stdout.write(log.read_text() if log.exists() else "")
    return 0


def real(program: str, args: list[str]) -> int:
    """Become the diverted program. kmod's programs are one, which goes by the name it is called with."""
    diverted = {"dmesg": "/usr/lib/gpu-double/diverted/dmesg"}.get(program, "/bin/kmod")
    try:
        os.execv(diverted, [program, *args])
    except OSError as problem:
        print(f"{program}: {shlex.quote(diverted)}: {problem.strerror}", file=sys.stderr)
        return 127
