"""What the kernel shows of loaded modules: below /sys/module and /proc, and as device files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .world import MARK, World, write

if TYPE_CHECKING:
    from pathlib import Path


def show(world: World, loaded: dict[str, Any] | None) -> None:
    """What the kernel shows of the modules: /sys/module, /proc/modules, /proc/driver/nvidia and the device
    files.
    """
    names = loaded["modules"] if loaded else []
    sys_module = world.root / "sys/module"
    for name in names:
        users = len(names) - 1 if name == "nvidia" else 0
        for file, text in {
            "initstate": "live",
            "refcnt": str(users),
            "version": loaded["version"] if loaded else "",
            "taint": "OE",
        }.items():
            directory = sys_module / name
            directory.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text + "\n")
    for directory in sys_module.glob("nvidia*"):
        if directory.name not in names:
            _remove(directory)
    real = world.run / "modules.real"
    # Written in place: this file lies over /proc/modules.
    (world.run / "modules").write_text(_listing(names) + (real.read_text() if real.exists() else ""))
    proc = world.root / "proc/driver/nvidia"
    if loaded:
        flavour = "Open Kernel Module for x86_64" if loaded["open"] else "x86_64 Kernel Module"
        text = f"NVRM version: NVIDIA UNIX {flavour}  {loaded['version']}  Release Build\n{MARK}\n"
        write(proc / "version", text)
        write(proc / "params", "".join(f"{key}: {value}\n" for key, value in _parameters(loaded).items()))
        for gpu in world.gpus():
            write(proc / "gpus" / gpu["address"] / "information", _information(world, gpu, loaded))
        if any(device["class"] == "068000" for device in world.machine["devices"]):
            (world.root / "proc/driver/nvidia-nvswitch/devices").mkdir(parents=True, exist_ok=True)
    else:
        _remove(proc)
    _device_files(world, loaded)


def _listing(names: list[str]) -> str:
    """Our lines of /proc/modules: the others use the base module."""
    lines = ""
    for name in reversed(names):
        users = [each for each in names if each != "nvidia"] if name == "nvidia" else []
        size = 56823808 if name == "nvidia" else 1470464
        by = "".join(f"{user}," for user in users) or "-"
        lines += f"{name} {size} {len(users)} {by} Live 0x0000000000000000 (OE)\n"
    return lines


def _parameters(loaded: dict[str, Any]) -> dict[str, str]:
    shown = {
        "ResmanDebugLevel": "4294967295",
        "ModifyDeviceFiles": "1",
        "DeviceFileUID": "0",
        "DeviceFileGID": "0",
        "DeviceFileMode": "438",
        "RmProfilingAdminOnly": "1",
        "PreserveVideoMemoryAllocations": "0",
    }
    if value := loaded["parameters"].get("NVreg_RestrictProfilingToAdminUsers"):
        shown["RmProfilingAdminOnly"] = value
    return shown


def _information(world: World, gpu: dict[str, Any], loaded: dict[str, Any]) -> str:
    vbios = world.card(gpu)["board"]["vbios"].lower() if gpu["index"] in loaded["gpus"] else "??.??.??.??.??"
    return (
        f"Model: \t\t {gpu['model']}\nIRQ:   \t\t {32 + gpu['index']}\nGPU UUID: \t {gpu['uuid']}\n"
        f"Video BIOS: \t {vbios}\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
        f"Bus Location: \t {gpu['address']}\nDevice Minor: \t {gpu['index']}\n"
        f"GPU Firmware: \t {loaded['version'] if loaded['open'] else 'N/A'}\nGPU Excluded:\t No\n"
    )


def _device_files(world: World, loaded: dict[str, Any] | None) -> None:
    """Placeholders for the device files: programs ask whether they are there and who may open them."""
    names = [
        "nvidiactl",
        "nvidia-uvm",
        "nvidia-uvm-tools",
        *(f"nvidia{index}" for index in (loaded["gpus"] if loaded else [])),
    ]
    for name in names if loaded else ():
        path = world.root / "dev" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{MARK}\n")
            path.chmod(0o666)
    for path in (world.root / "dev").glob("nvidia*"):
        if not loaded and path.is_file():
            path.unlink()


def _remove(directory: Path) -> None:
    """rmtree without what it asks of a file system: these lie on overlays over /sys and /proc."""
    if not directory.is_dir():
        return
    for below in directory.iterdir():
        if below.is_dir() and not below.is_symlink():
            _remove(below)
        else:
            below.unlink()
    directory.rmdir()
