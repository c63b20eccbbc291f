"""Loading the double's driver, keeping it, and coming and going with the packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from double_world import KERNEL, Host

from provision.lab.double import install, nspawn_binds, parse_gpus
from provision.lab.double.host import boot, control, daemon, kmod, main, modules, nvml, sync
from provision.lab.double.host.faults import switch
from provision.lab.double.host.world import World
from provision.lab.double.placing import MODPROBE

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Host]:
    return lambda gpus: Host(tmp_path, gpus, monkeypatch, capsys)


def driver_of(host: Host, gpu: int = 0) -> str | None:
    address = host.world.gpus()[gpu]["address"]
    link = host.root / str((host.world.run / "pci/bus/devices" / address).readlink())[1:] / "driver"
    return link.readlink().name if link.is_symlink() else None


def test_nothing_loads_that_was_not_built(host: Callable[[str], Host]) -> None:
    made = host("T4")
    with pytest.raises(modules.LoadError, match="FATAL: Module nvidia not found in directory /lib/modules/"):
        modules.load(made.world, "nvidia")


def test_loading_shows_where_the_kernel_would_show_it(host: Callable[[str], Host]) -> None:
    made = host("A100:2")
    modules.load(made.world, made.module("550.163.01"))
    assert (made.root / "sys/module/nvidia/version").read_text() == "550.163.01\n"
    version = (made.root / "proc/driver/nvidia/version").read_text()
    assert version.startswith(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build\n"
    )
    information = (made.root / "proc/driver/nvidia/gpus/0000:03:00.0/information").read_text()
    assert "Model: \t\t NVIDIA A100-SXM4-80GB\n" in information
    assert driver_of(made) == "nvidia"
    assert (made.root / "dev/nvidiactl").exists()
    assert "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  550.163.01" in made.log()
    modules.load(made.world, "nvidia-current-open-uvm")
    assert (
        (made.world.run / "modules")
        .read_text()
        .splitlines()[1]
        .startswith("nvidia 56823808 1 nvidia_uvm, Live")
    )
    with pytest.raises(modules.LoadError, match="Module nvidia is in use by: nvidia_uvm"):
        modules.unload(made.world, "nvidia")
    for name in ("nvidia_uvm", "nvidia"):
        modules.unload(made.world, name)
    for path in ("sys/module/nvidia", "proc/driver/nvidia", "dev/nvidiactl"):
        assert not (made.root / path).exists()
    assert driver_of(made) is None


def test_version_and_flavour_are_the_modules_own(host: Callable[[str], Host]) -> None:
    made = host("A100:2")
    made.user_space("580.105.08")
    modules.load(made.world, made.module("535.309.01", is_open=False))
    assert (made.root / "sys/module/nvidia/version").read_text() == "535.309.01\n"
    assert (
        "NVIDIA UNIX x86_64 Kernel Module  535.309.01"
        in (made.root / "proc/driver/nvidia/version").read_text()
    )


def test_kernels_of_a_container_and_of_a_machine_of_its_own(host: Callable[[str], Host]) -> None:
    made = host("T4")
    for kernel in ("6.1.0-9-amd64", "6.1.0-57-amd64"):
        made.module("535.309.01", kernel=kernel)
    assert modules.kernels(made.world) == ["6.1.0-57-amd64", "6.1.0-9-amd64"]
    made.module("550.163.01", kernel=os.uname().release)
    assert modules.kernels(made.world) == [os.uname().release]
    for file in (made.root / "lib/modules" / os.uname().release).rglob("*"):
        if file.is_file():
            file.unlink()
    assert modules.find(made.world, "nvidia-current-open") is None


def test_a_machine_of_its_own_takes_no_other_kernels_module(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.module("535.309.01")
    (made.root / "run/systemd/container").unlink()
    assert modules.kernels(made.world) == []
    assert modules.base_module(made.world) is None


@pytest.mark.parametrize(
    ("gpus", "version", "is_open", "loads", "log"),
    [
        ("V100:8", "580.105.08", False, True, "loading NVIDIA UNIX x86_64"),
        ("V100:8", "595.91.07", False, False, "supported through the NVIDIA 580.xx Legacy drivers"),
        ("V100:8", "550.163.01", True, False, "does not include the required GPU"),
        ("B200:8", "580.105.08", False, True, "requires use of the NVIDIA open kernel modules"),
        ("B200:8", "550.163.01", True, False, "is not supported by the NVIDIA 550.163.01 driver release"),
        ("T4:1,V100:1", "550.163.01", True, True, "does not include the required GPU"),
    ],
)
def test_who_drives_what(
    host: Callable[[str], Host], gpus: str, version: str, is_open: bool, loads: bool, log: str
) -> None:
    made = host(gpus)
    made.user_space(version)
    name = made.module(version, is_open=is_open)
    if loads:
        modules.load(made.world, name)
    else:
        with pytest.raises(modules.LoadError, match="No such device"):
            modules.load(made.world, name)
        assert made.world.state()["loaded"] is None
    assert log in made.log()


def test_a_mixed_host_shows_the_gpus_that_its_driver_serves(host: Callable[[str], Host]) -> None:
    made = host("T4:1,V100:1")
    made.driver("550.163.01")
    assert made.smi("--query-gpu=index,name", "--format=csv,noheader") == ("0, Tesla T4\n", 0)


def configure(host: Host, **files: str) -> None:
    for name, text in files.items():
        (host.root / f"etc/modprobe.d/{name}.conf").write_text(text)


def test_boot_loads_what_udev_would(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.module("535.309.01")
    configure(made, options="options nvidia NVreg_RestrictProfilingToAdminUsers=0\n")
    boot.autoload(made.world)
    assert "RmProfilingAdminOnly: 0\n" in (made.root / "proc/driver/nvidia/params").read_text()


def test_boot_loads_what_modules_load_names(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.module("535.309.01")
    (made.root / "etc/modules-load.d").mkdir()
    (made.root / "etc/modules-load.d/nvidia.conf").write_text("# more\nnvidia-current-open-uvm\n")
    boot.autoload(made.world)
    assert made.world.state()["loaded"]["modules"] == ["nvidia", "nvidia_uvm"]


def test_a_blacklist_keeps_from_loading_at_boot_and_not_by_hand(
    host: Callable[[str], Host], capsys: pytest.CaptureFixture[str]
) -> None:
    made = host("T4")
    name = made.module("535.309.01")
    configure(made, blacklist="# no\nblacklist nvidia\n")
    boot.autoload(made.world)
    assert made.world.state()["loaded"] is None
    assert kmod.modprobe(made.world, ["-b", name]) == 0
    assert kmod.modprobe(made.world, [name]) == 0
    assert made.world.state()["loaded"]["version"] == "535.309.01"


def test_no_gpu_no_module(host: Callable[[str], Host]) -> None:
    made = host("none")
    name = made.module("535.309.01")
    boot.autoload(made.world)
    assert made.world.state()["loaded"] is None
    assert kmod.modprobe(made.world, [name]) == 1


def test_modprobe_runs_what_its_configuration_says(host: Callable[[str], Host], tmp_path: Path) -> None:
    made = host("T4")
    made.module("535.309.01")
    said = tmp_path / "said"
    configure(made, install=f"install nvidia echo called with $CMDLINE_OPTS >{said}; exit 3\n")
    assert kmod.modprobe(made.world, ["nvidia", "NVreg_X=1"]) == 3
    assert said.read_text() == "called with NVreg_X=1\n"
    assert kmod.modprobe(made.world, ["-i", "nvidia-current-open"]) == 0


def test_modprobe_leaves_others_to_the_real_one(
    host: Callable[[str], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = host("T4")
    calls: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, args: calls.append((program, args)))
    for args in (["br_netfilter"], ["-n", "nvidia"], ["--show-depends", "nvidia"], ["-r", "nvme"], []):
        kmod.modprobe(made.world, args)
    assert [args[1:] for _, args in calls] == [
        ["br_netfilter"],
        ["-n", "nvidia"],
        ["--show-depends", "nvidia"],
        ["-r", "nvme"],
        [],
    ]
    assert {program for program, _ in calls} == {"/bin/kmod"}


def test_modprobe_unloads_and_says_what_is_in_use(
    host: Callable[[str], Host], capsys: pytest.CaptureFixture[str]
) -> None:
    made = host("T4")
    made.driver("535.309.01")
    made.smi("-pm", "1")
    assert kmod.modprobe(made.world, ["-r", "nvidia"]) == 1
    assert capsys.readouterr().err == "modprobe: FATAL: Module nvidia is in use.\n"
    made.smi("-pm", "0")
    assert kmod.rmmod(made.world, ["nvidia"]) == 0
    assert kmod.modprobe(made.world, ["-r", "nvidia"]) == 0
    assert kmod.rmmod(made.world, ["nvidia"]) == 1
    assert "is not currently loaded" in capsys.readouterr().err


def test_lsmod_lists_both_kinds(host: Callable[[str], Host], capsys: pytest.CaptureFixture[str]) -> None:
    made = host("T4")
    (made.world.run / "modules.real").write_text("kvm 1146880 1 kvm_intel, Live 0x0000000000000000\n")
    made.driver("535.309.01")
    modules.load(made.world, "nvidia-current-open-uvm")
    capsys.readouterr()
    kmod.lsmod(made.world, [])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["Module", "Size", "Used", "by"],
        ["nvidia_uvm", "1470464", "0"],
        ["nvidia", "56823808", "1", "nvidia_uvm"],
        ["kvm", "1146880", "1", "kvm_intel"],
    ]


def test_gpus_dropped_at_boot_are_gone_everywhere(
    host: Callable[[str], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = host("T4:4")
    monkeypatch.setattr(boot, "_cover", lambda world: None)
    switch(made.world.kept, "drop", 2)
    made.driver("535.309.01")
    assert made.smi("-L")[0].count("\n") == 4
    boot.boot(made.world)
    assert made.world.state()["loaded"]["gpus"] == [0, 1, 3]
    assert made.smi("-L")[0].count("\n") == 3
    assert len(list((made.world.run / "pci/bus/drivers/nvidia").iterdir())) == 3


def test_boot_forgets_what_a_reboot_forgets(
    host: Callable[[str], Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = host("A100:1")
    monkeypatch.setattr(boot, "_cover", lambda world: None)
    made.driver("535.309.01")
    made.smi("-pm", "1")
    made.smi("-lgc", "1410")
    switch(made.world.kept, "off-the-bus", 0)
    boot.boot(made.world)
    state = made.world.state()
    assert (state["persistence"], state["clocks"]) == ({}, {})
    assert "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus." in made.log()


def test_persistence_ends_with_its_daemon(host: Callable[[str], Host]) -> None:
    made = host("A100:1")
    made.driver("535.309.01")
    proc = made.root / "proc/4711/stat"
    proc.parent.mkdir(parents=True)
    proc.write_text("4711 (nvidia-persiste) S " + " ".join(str(number) for number in range(1, 50)))
    with made.world.changing() as state:
        state["daemon"] = made.world.process(4711)
        state["persistence"] = {"0": True}
    made.smi("-lgc", "1410")
    clocks = ("--query-gpu=persistence_mode,clocks.sm", "--format=csv,noheader,nounits")
    assert made.smi(*clocks)[0] == "Enabled, 1410\n"
    # Another process came by the same number.
    proc.write_text("4711 (sleep) S " + " ".join(str(number) for number in range(2, 51)))
    assert made.smi(*clocks)[0] == "Disabled, 210\n"


def test_daemon_without_a_driver_fails_in_the_real_words(
    host: Callable[[str], Host], capsys: pytest.CaptureFixture[str]
) -> None:
    made = host("T4")
    assert daemon.main(made.world, []) == 1
    says = "nvidia-persistenced failed to initialize. Check syslog for more details.\n"
    assert capsys.readouterr().err == says
    assert daemon.main(made.world, ["--sideways"]) == 1


def test_refusals_of_nvidia_modprobe_are_kept_quiet(host: Callable[[str], Host]) -> None:
    made = host("V100:1")
    (made.root / "usr/bin/nvidia-modprobe").write_text("")
    made.module("550.163.01")
    nvml.load_as_nvml_does(made.world)
    assert made.world.state()["loaded"] is None


def programs(root: Path) -> dict[str, str | None]:
    return {
        path: str((root / path).readlink()) if (root / path).is_symlink() else None
        for path in ("usr/lib/nvidia/current/nvidia-smi", "usr/bin/nvidia-smi", "usr/bin/nvidia-persistenced")
    }


def test_programs_come_and_go_with_the_packages(host: Callable[[str], Host]) -> None:
    made = host("T4")
    smi = "usr/lib/nvidia/current/nvidia-smi"
    assert not sync.sync(made.world)
    put_aside = made.root / sync.aside(smi)
    put_aside.parent.mkdir(parents=True)
    put_aside.write_text("the package's")
    assert sync.sync(made.world)
    assert programs(made.root)[smi] == "/usr/lib/gpu-double/bin/nvidia-smi"
    assert programs(made.root)["usr/bin/nvidia-smi"] is None
    assert not sync.sync(made.world)
    # Directories go only where no package has them.
    listed = made.root / "var/lib/dpkg/info/nvidia-alternative.list"
    listed.parent.mkdir(parents=True)
    listed.write_text("/.\n/usr\n/usr/lib\n/usr/lib/nvidia\n/usr/lib/nvidia/current\n")
    put_aside.unlink()
    assert sync.sync(made.world)
    assert (made.root / "usr/lib/nvidia/current").is_dir()
    put_aside.write_text("the package's")
    sync.sync(made.world)
    put_aside.unlink()
    listed.write_text("/.\n/usr\n/usr/lib\n")
    sync.sync(made.world)
    assert not (made.root / "usr/lib/nvidia").exists()


def test_a_link_of_debians_alternatives_is_not_ours_to_take(host: Callable[[str], Host]) -> None:
    made = host("T4")
    link = made.root / "usr/bin/nvidia-smi"
    link.symlink_to("/etc/alternatives/nvidia--nvidia-smi")
    sync.sync(made.world)
    assert link.is_symlink()


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_install_puts_a_whole_double_into_a_root(tmp_path: Path, release: str) -> None:
    root, state = tmp_path / "root", tmp_path / "double"
    sbin = root / ("sbin" if release == "bookworm" else "usr/sbin")
    for directory in (sbin, root / "var/lib/dpkg", root / "etc/systemd/system"):
        directory.mkdir(parents=True)
    (root / "var/lib/dpkg/diversions").write_text("/etc/x\n/etc/x.y\n:\n")
    (sbin / "modprobe").symlink_to("/bin/kmod")
    install(root, parse_gpus("A100:2"), release, state=state)
    assert str((sbin / "modprobe").readlink()) == "/usr/lib/gpu-double/bin/modprobe"
    listed = (root / "var/lib/dpkg/diversions").read_text().splitlines()
    assert listed[:3] == ["/etc/x", "/etc/x.y", ":"]
    assert len(listed) % 3 == 0
    diverted = dict(zip(listed[::3], listed[1::3], strict=True))
    where = f"/{sbin.relative_to(root)}/modprobe"
    assert str((root / diverted[where][1:]).readlink()) == "/bin/kmod"
    assert "/usr/bin/nvidia-persistenced" in diverted
    assert "double" in (root / "etc/gpu-double").read_text()
    assert "Description=GPU double" in (root / "etc/systemd/system/gpu-double.service").read_text()
    assert nspawn_binds(state) == [f"--bind={state}:/var/lib/gpu-double"]
    machine = json.loads((state / "machine.json").read_text())
    assert [gpu["model"] for gpu in machine["gpus"]] == ["NVIDIA A100-SXM4-80GB"] * 2


@pytest.mark.parametrize(
    ("words", "program"),
    [("-q nvidia-uvm", "python"), ("-r nvidia", "python"), ("-q xfs", "kmod"), ("-a loop dm_mod", "kmod")],
)
def test_modules_that_are_not_the_drivers_cost_no_python(words: str, program: str) -> None:
    said = subprocess.run(
        ["sh", "-c", MODPROBE.replace("exec /", "echo /"), "modprobe", *words.split()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines()[0] == f"/usr/lib/gpu-double/{program}/modprobe {words}"


def test_what_runs_on_the_host_needs_the_standard_library_alone() -> None:
    import provision.lab.double.host as package

    for file in Path(package.__path__[0]).glob("*.py"):
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]) and not line.startswith("    "):
                top = words[1].split(".")[0]
                assert top in ("", "__future__") or top in sys.stdlib_module_names, f"{file.name}: {line}"


def test_control_says_what_it_is(host: Callable[[str], Host], capsys: pytest.CaptureFixture[str]) -> None:
    made = host("T4:2")
    made.driver("535.309.01")
    capsys.readouterr()
    assert control.main(made.world, ["fault", "off-the-bus", "1"]) == 0
    assert made.smi("-L")[1] == 255
    assert "Xid (PCI:0000:09:00): 79" in made.log()
    assert control.main(made.world, []) == 0
    out = capsys.readouterr().out
    assert "GPU double, not real hardware" in out
    assert "faults: off-the-bus 1" in out
    assert control.main(made.world, ["clear"]) == 0
    assert made.smi("-L")[1] == 0
    assert control.main(made.world, ["fault", "no-such"]) == 2
    assert "usage" in capsys.readouterr().err


def test_one_program_under_many_names(
    host: Callable[[str], Host], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = host("T4")
    monkeypatch.setattr(main, "World", lambda: World(made.root))
    made.driver("535.309.01")
    capsys.readouterr()
    assert main.main("nvidia-smi", ["-L"]) == 0
    assert "Tesla T4" in capsys.readouterr().out
    assert main.main("lsmod", []) == 0
    assert "nvidia" in capsys.readouterr().out
    assert main.main("dmesg", []) == 0
    assert "NVRM" in capsys.readouterr().out
    assert main.main("gpu-double", ["faults"]) == 0
    assert "hang" in capsys.readouterr().out
    assert main.main("modprobe", ["nvidia-current-open"]) == 0
    assert KERNEL in json.loads((made.world.run / "state.json").read_text())["loaded"]["kernel"]
