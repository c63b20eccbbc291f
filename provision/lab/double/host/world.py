"""Where the double keeps what it knows, inside the host that shows it. Standard library only: this runs on
the host.

Everything below /run is gone after a reboot, as persistence, clocks and a loaded module are on a real host.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "GPU double, not real hardware"
FORGOTTEN = ("clocks", "power", "compute")
LIBRARY_DIRS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")

FAULTS = {
    "off-the-bus": "the GPU answers no more: no handle for it, Xid 79, all ones on the PCI bus",
    "lost": "nvidia-smi goes on, with 'GPU is lost' in place of the GPU's readings",
    "unknown-error": "NVML does not come up: Unknown Error",
    "version-mismatch": "NVML does not come up: Driver/library version mismatch",
    "no-permission": "NVML does not come up: Insufficient Permissions",
    "no-devices": "the module is loaded and finds no GPU",
    "hang": "nvidia-smi hangs and ignores what asks it to end",
    "clocks-deprecated": "application clocks answer as they do from branch 590 on",
    "drop": "the GPU is gone from the PCI bus from the next boot on",
    "ecc-uncorrectable": "the GPU counts uncorrectable memory errors",
    "remap-pending": "a row remapping waits for a reset of the GPU",
    "remap-failure": "a row could not be remapped: the GPU wants to be replaced",
    "recovery-reset": "the driver asks for a reset of the GPU",
    "nvlink-down": "the GPU has lost its NVLinks",
    "pcie-width": "the GPU's PCIe link runs at a quarter of its width",
    "throttle": "the GPU slows down for heat",
}
"""Every fault that can be switched on, and what it looks like."""


class World:
    """The double's files below `root`, which is `/` on the host and a plain directory in tests."""

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self.root = Path(root)
        self.kept = self.root / "var/lib/gpu-double"
        self.run = self.root / "run/gpu-double"
        self._machine: dict[str, Any] | None = None

    @property
    def machine(self) -> dict[str, Any]:
        if self._machine is None:
            self._machine = json.loads((self.kept / "machine.json").read_text())
        return self._machine

    def faults(self) -> dict[str, list[int]]:
        """Name -> the GPUs it is switched on for; every GPU where the list is empty."""
        return _read(self.kept / "faults.json")

    def has_fault(self, name: str, gpu: int | None = None) -> bool:
        on = self.faults().get(name)
        return on is not None and (gpu is None or not on or gpu in on)

    def gpus(self) -> list[dict[str, Any]]:
        """The GPUs that the bus shows since this boot."""
        gone = _read(self.run / "dropped.json").get("gpus", [])
        return [gpu for gpu in self.machine["gpus"] if gpu["index"] not in gone]

    def card(self, gpu: dict[str, Any]) -> dict[str, Any]:
        card: dict[str, Any] = self.machine["models"][gpu["model"]]
        return card

    def state(self) -> dict[str, Any]:
        """What lasts till reboot: `loaded` (the module), and by GPU `persistence`, `clocks`, `power`,
        `compute` and `mig` (the mode of cards that do not keep it).
        """
        state: dict[str, Any] = {"loaded": None, "daemon": None, "mig": {}}
        state.update({name: {} for name in ("persistence", *FORGOTTEN)})
        state.update(_read(self.run / "state.json"))
        if state["daemon"] and not self._runs(state["daemon"]):
            state.update(daemon=None, persistence={})
        kept = {key for key, on in state["persistence"].items() if on}
        for name in FORGOTTEN:
            # The driver forgets a GPU's settings when its last user goes and nothing holds it open.
            state[name] = {key: value for key, value in state[name].items() if key in kept}
        return state

    def inforom(self) -> dict[str, dict[str, bool]]:
        """What cards keep over a reboot, by GPU: the modes `ecc` and `mig` that were set last."""
        return _read(self.kept / "inforom.json")

    def keep(self, gpu: str, mode: str, on: bool) -> None:
        """Have a card keep a mode. One at a time, below changing()."""
        kept = self.inforom()
        kept.setdefault(gpu, {})[mode] = on
        write(self.kept / "inforom.json", json.dumps(kept))

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yield the state, and keep what became of it. One at a time. Raises PermissionError for other users
        than root.
        """
        self.run.mkdir(parents=True, exist_ok=True)
        with (self.run / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.state()
            yield state
            write(self.run / "state.json", json.dumps(state))

    def userspace_version(self) -> str | None:
        """The version of the driver's user space: of the libnvidia-ml that the loader would find."""
        for directory in LIBRARY_DIRS:
            name = self.resolve(self.root / directory / "libnvidia-ml.so.1").name
            if name.startswith("libnvidia-ml.so.") and name.count(".") > 2:
                return name[len("libnvidia-ml.so.") :]
        return None

    def resolve(self, path: Path) -> Path:
        """Follow a chain of symbolic links as the host would, whose `/` is our root."""
        for _ in range(10):
            if not path.is_symlink():
                break
            target = str(path.readlink())
            path = self.root / target[1:] if target.startswith("/") else path.parent / target
        return path

    def log(self, *lines: str) -> None:
        """Add to what `dmesg` shows on this host."""
        self.run.mkdir(parents=True, exist_ok=True)
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        with (self.run / "kmsg").open("a") as file:
            file.writelines(f"[{now:12.6f}] {line}\n" for line in lines)

    def process(self, pid: int) -> dict[str, int]:
        """A process as we remember it: its number alone may come to mean another one."""
        fields = (self.root / f"proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return {"pid": pid, "started": int(fields[19])}

    def _runs(self, process: dict[str, int]) -> bool:
        try:
            return self.process(process["pid"]) == process
        except OSError:
            return False


def write(path: Path, text: str) -> None:
    """Put a whole file in place at once: readers see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return content


def relation(one: list[Any], other: list[Any]) -> str:
    """How two slots [NUMA node, host bridge, switch, port] are joined, in the words of `nvidia-smi topo
    -m`.
    """
    if one[:2] == other[:2] and one[2] is not None and one[2] == other[2]:
        return "PIX" if one[3] == other[3] else "PXB"
    if one[:2] == other[:2]:
        return "PHB"
    return "NODE" if one[0] == other[0] else "SYS"
