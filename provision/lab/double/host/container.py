"""NVIDIA's container toolkit: nvidia-ctk, the runtime and its hook. What they put into a container is the
double
itself, so that nvidia-smi answers there as it does on the host.

The double is a program in Python: it goes along with the host's /usr and with what the double knows of the
machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .world import LIBRARY_DIRS, MARK, World, write

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARY = re.compile(r"lib(cuda|nvidia-(?!container)[a-z0-9-]+)\.so\.\d+\.\d+(\.\d+)?")
_FOLDERS = ("/usr", "/run/gpu-double", "/var/lib/gpu-double")
_SPEC = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"
_NOBODY = ("", "void", "none")


def ctk(world: World, args: list[str]) -> int:
    """nvidia-ctk: the commands that a host's roles and units call."""
    words = [arg for arg in args if not arg.startswith("-")]
    if "--version" in args or "-v" in args:
        print(f"NVIDIA Container Toolkit CLI version {_version(world)} ({MARK})")
        return 0
    if words[:2] == ["cdi", "generate"]:
        given = [arg.partition("=")[2] for arg in args if arg.startswith("--output=")]
        return _generate(world, (given or [os.environ.get(_SPEC, "")])[-1])
    if words[:2] == ["system", "create-dev-char-symlinks"]:
        return _links(world)
    print(f"nvidia-ctk: {MARK}: it has no `{' '.join(args)}`", file=sys.stderr)
    return 1


def _version(world: World) -> str:
    said = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", "nvidia-container-toolkit-base"],
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.rpartition("-")[0] or "unknown"


def _generate(world: World, output: str) -> int:
    if not world.state()["loaded"]:
        print("nvidia-ctk: failed to initialize NVML: Driver Not Loaded", file=sys.stderr)
        return 1
    mounts = [*_FOLDERS, *_nodes(world), *_libraries(world)]
    names = [*(str(gpu["index"]) for gpu in world.gpus()), "all"]
    lines = [f"# {MARK}", "cdiVersion: 0.5.0", "kind: nvidia.com/gpu", "devices:"]
    lines += [f'  - name: "{name}"\n    containerEdits: {{env: [GPU_DOUBLE={name}]}}' for name in names]
    lines += ["containerEdits:", "  mounts:"]
    for path in mounts:
        access = "rw" if path.startswith("/run/") else "ro"
        lines.append(
            f"    - {{hostPath: {path}, containerPath: {path}, options: [{access}, nosuid, nodev, rbind]}}"
        )
    text = "\n".join(lines) + "\n"
    if output:
        write(world.root / output.lstrip("/"), text)
    else:
        sys.stdout.write(text)
    return 0


def _libraries(world: World) -> list[str]:
    """The driver's libraries, whose names carry its version."""
    found = []
    for folder in LIBRARY_DIRS:
        for path in sorted((world.root / folder).glob("**/lib*.so.*.*")):
            if _LIBRARY.fullmatch(path.name) and not path.is_symlink():
                found.append("/" + str(path.relative_to(world.root)))
    return list(dict.fromkeys(found))


def _nodes(world: World) -> list[str]:
    return sorted("/dev/" + path.name for path in (world.root / "dev").glob("nvidia*") if path.is_file())


def _links(world: World) -> int:
    """Links in /dev/char for what are device nodes; the double's own are plain files, to which none leads."""
    for path in (world.root / "dev").glob("nvidia*"):
        if path.is_char_device():
            device = path.stat().st_rdev
            link = world.root / f"dev/char/{os.major(device)}:{os.minor(device)}"
            link.parent.mkdir(exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(f"../{path.name}")
    return 0


def runtime(world: World, args: list[str]) -> int:
    """nvidia-container-runtime: put the GPUs into the specification of a new container, and become runc."""
    if "create" in args or "run" in args:
        path = Path(_bundle(args)) / "config.json"
        spec = json.loads(path.read_text())
        if _asks(spec):
            spec.setdefault("mounts", []).extend(_mounts(world))
            path.write_text(json.dumps(spec))
    os.execvp("runc", ["runc", *args])


def _bundle(args: list[str]) -> str:
    for place, arg in enumerate(args):
        if arg in ("--bundle", "-b"):
            return args[place + 1]
        if arg.startswith("--bundle="):
            return arg.partition("=")[2]
    return "."


def _asks(spec: dict[str, Any]) -> bool:
    """Whether the container asks for GPUs, which it does by a variable."""
    for entry in spec.get("process", {}).get("env", []):
        name, _, value = entry.partition("=")
        if name == "NVIDIA_VISIBLE_DEVICES":
            return value not in _NOBODY
    return False


def _mounts(world: World) -> Iterator[dict[str, Any]]:
    for path in (*_FOLDERS, *_nodes(world)):
        access = "rw" if path.startswith(("/run/", "/dev/")) else "ro"
        yield {"destination": path, "type": "bind", "source": path, "options": ["rbind", access]}


def hook(world: World, args: list[str]) -> int:
    """nvidia-container-runtime-hook: runc calls it with the new container's state, before its root is its
    own.
    """
    if "prestart" not in args:
        return 0
    state = json.load(sys.stdin)
    bundle = Path(state["bundle"])
    spec = json.loads((bundle / "config.json").read_text())
    if not _asks(spec):
        return 0
    root = bundle / spec["root"]["path"]
    for path in (*_FOLDERS, *_nodes(world)):
        inside = f"{root}{path}"
        make = f"touch {inside}" if path.startswith("/dev/") else f"mkdir -p {inside}"
        script = f"{make} && mount --rbind {path} {inside}"
        done = subprocess.run(
            ["nsenter", "-t", str(state["pid"]), "-m", "sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"nvidia-container-runtime-hook: {MARK}: {done.stderr.strip()}", file=sys.stderr)
            return 1
    return 0
