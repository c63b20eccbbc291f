"""What the transaction module reads and judges on a host, without a host: apt's words, DKMS, space, locks."""

# ruff: noqa: E501

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parents[2] / "plugins" / "module_utils"


def load(name: str) -> ModuleType:
    """A file of the module's own, which Ansible would ship to the host."""
    spec = importlib.util.spec_from_file_location(f"on_host_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


apt, dkms, initramfs, locks, refusal, space = map(
    load, ("apt", "dkms", "initramfs", "locks", "refusal", "space")
)


def step(name: str, old: str | None, new: str | None, do: str = "Inst", back: bool = False) -> dict[str, Any]:
    return {"do": do, "name": name, "old": old, "new": new, "back": back}


ASKED: dict[str, Any] = {"packages": ["nvidia-smi=535.309.01-1", "nvidia-kernel-dkms"], "absent": ["nvidia-open-kernel-dkms"],
                         "holds": ["nvidia-smi"], "branch": 535, "independent": ["nvidia-modprobe"]}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "held", "says"),
    [
        ([step("nvidia-smi", None, "535.309.01-1")], set(), None),
        ([step("linux-image-6.1.0-60-amd64", None, "6.1.200-1")], set(), "the kernel would change"),
        ([step("linux-image-amd64", "6.1.1-1", None, "Remv")], set(), "the kernel would change"),
        ([step("linux-headers-6.1.0-60-amd64", None, "6.1.200-1")], set(), None),
        ([step("linux-modules-nvidia-535-server-generic", None, "6.8.0-60.63")], set(), None),
        ([step("linux-modules-6.8.0-60-generic", None, "6.8.0-60.63")], set(), "the kernel would change"),
        ([step("docker.io", "20.10", None, "Remv")], set(), "it would remove docker.io"),
        ([step("nvidia-open-kernel-dkms", "535.261.03-1", None, "Remv")], set(), None),
        ([step("nvidia-kernel-dkms", "535.1.1-1", None, "Remv")], set(), "nvidia-kernel-dkms"),
        (
            [step("libcuda1", "535.1.1-1", "580.95.05-1")],
            set(),
            "another branch than 535 would come: libcuda1",
        ),
        ([step("nvidia-modprobe", None, "570.133.07-1")], set(), None),
        ([step("nvidia-kernel-common", None, "20240109+1")], set(), None),
        ([step("nvidia-cuda-toolkit", None, "12.4.131~12.4.1-2")], set(), None),
        ([step("libc6", "2.36-9", "2.36-10")], {"libc6"}, "held by somebody else"),
        ([step("nvidia-smi", "535.1.1-1", "535.309.01-1")], {"nvidia-smi"}, None),
        ([step("nvidia-smi", "535.400.01-1", "535.309.01-1", back=True)], set(), None),
        ([step("libc6", "2.36-10", "2.36-9", back=True)], set(), "back to an older version"),
    ],
)
def test_what_a_simulation_is_refused_for(
    steps: list[dict[str, Any]], held: set[str], says: str | None
) -> None:
    found = refusal.refusal(steps, held, ASKED)
    assert (found is None) if says is None else says in found


def test_without_a_branch_any_version_may_come() -> None:
    assert refusal.refusal([step("libcuda1", None, "580.95.05-1")], set(), {**ASKED, "branch": None}) is None


SIMULATED = """\
Inst nvidia-smi [535.1.1-1] (535.309.01-0+deb12u1 Debian-Security:12/oldstable-security [amd64]) []
Inst dkms (3.0.10-8+deb12u1 Debian:12.15/oldstable [all])
Remv nvidia-open-kernel-dkms [535.261.03-1]
Conf nvidia-smi (535.309.01-0+deb12u1 Debian-Security:12/oldstable-security [amd64])
"""


def test_steps_of_a_simulation_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "ask", lambda argv: (1, "") if argv[0] == "dpkg" else (0, SIMULATED))
    steps, trouble = apt.simulate(["nvidia-smi"])
    assert trouble is None
    assert [(s["do"], s["name"], s["old"], s["new"]) for s in steps] == [
        ("Inst", "nvidia-smi", "535.1.1-1", "535.309.01-0+deb12u1"),
        ("Inst", "dkms", None, "3.0.10-8+deb12u1"),
        ("Remv", "nvidia-open-kernel-dkms", "535.261.03-1", None),
    ]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (
            "Need to get 1,881 kB/1913 kB of archives.\nAfter this operation, 8038 kB of additional disk space will be used.\n",
            (1881000, 8038000),
        ),
        (
            "Need to get 232 MB of archives.\nAfter this operation, 1,024 MB of additional disk space will be used.\n",
            (232000000, 1024000000),
        ),
        ("After this operation, 12 MB disk space will be freed.\n", (None, None)),
    ],
)
def test_sizes_are_apts_own(
    monkeypatch: pytest.MonkeyPatch, text: str, sizes: tuple[int | None, int | None]
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(apt, "ask", lambda argv: (asked.append(list(argv)), (0, text))[1])
    assert apt.sizes(["x"]) == sizes
    assert "--print-uris" in asked[0], "asking for sizes must never install"


def test_packages_are_told_apart_by_their_state(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "ii \tlibc6\t2.36\nhi \tlibcuda1\t535\niF \tnvidia-kernel-dkms\t535\nrc \told\t1\nun \tnever\t\niU \thalf\t1\nii R\tbroken\t1\n"
    monkeypatch.setattr(apt, "ask", lambda argv: (0, text.replace("ii R", "iiR")))
    known = apt.packages()
    assert apt.half_done(known) == ["broken", "half", "nvidia-kernel-dkms"]
    assert apt.missing(["libc6", "libcuda1=535", "libcuda1=536", "old", "nothing"], known) == [
        "libcuda1=536",
        "old",
        "nothing",
    ]
    assert [n for n in known if apt.present(known[n])] == [
        "libc6",
        "libcuda1",
        "nvidia-kernel-dkms",
        "half",
        "broken",
    ]


def test_apts_words_are_cut_to_what_tells() -> None:
    unmet = "Reading...\nThe following packages have unmet dependencies:\n a : Depends: b (= 2) but 1 is to be installed\nE: Unable to correct problems\n"
    assert apt.complaint(unmet).splitlines() == unmet.splitlines()[1:]
    log = "Setting up x\nError! Bad return status for module build on kernel: 6.12 (x86_64)\ndpkg: error processing package x (--configure):\n"
    assert apt.complaint(log).startswith("Error! Bad return status")
    assert (
        apt.complaint("cp: error writing: No space left on device\nok\n")
        == "cp: error writing: No space left on device"
    )
    assert apt.complaint("one\ntwo") == "one\ntwo"


STATUS = """\
nvidia-current/535.309.01, 6.1.0-57-amd64, x86_64: installed
nvidia-current/535.309.01, 6.1.0-58-amd64, x86_64: built
nvidia, 470.256.02, 5.10.0-1-amd64, x86_64: installed
"""


@pytest.mark.parametrize(
    ("build", "installed"),
    [
        (("nvidia-current", "535.309.01", "6.1.0-57-amd64"), True),
        (("nvidia-current", "535.309.01", "6.1.0-58-amd64"), False),
        (("nvidia-current", "535.309.01", "6.1.0-5"), False),
        (("nvidia", "470.256.02", "5.10.0-1-amd64"), True),
    ],
)
def test_dkms_status_of_both_formats(build: tuple[str, str, str], installed: bool) -> None:
    assert dkms.status_installed(STATUS, *build) is installed


MAKE_LOG = """\
# command: 'make' modules
  CONFTEST: set_memory_array_uc
  CC [M]  /var/lib/dkms/nvidia-current-open/550.163.01/build/nvidia/nv-pci.o
nvidia/nv-pci.c: In function 'nv_resize_pcie_bars':
nvidia/nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'
  237 |     r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size);
make[3]: *** [scripts/Makefile.build:254: nv-pci.o] Error 1
make: *** [Makefile:115: modules] Error 2
"""


def test_the_first_real_error_of_a_build_is_the_compilers_own() -> None:
    assert (
        dkms.first_error(MAKE_LOG)
        == "nvidia/nv-pci.c:237:9: error: too few arguments to function 'pci_resize_resource'"
    )
    assert dkms.first_error("make: *** No rule to make target 'x'.  Stop.\n").startswith("make: ***")
    assert dkms.first_error("all well\n") == ""


def test_source_trees_of_the_driver_are_found_and_others_not(tmp_path: Path) -> None:
    for name in ("nvidia-current/535.309.01", "nvidia-fs/2.13.5", "zfs/2.1"):
        (tmp_path / name / "source").mkdir(parents=True)
    assert dkms.added(str(tmp_path)) == [("nvidia-current", "535.309.01")]
    log = tmp_path / "nvidia-current/535.309.01/build/make.log"
    log.parent.mkdir()
    log.write_text(MAKE_LOG)
    assert dkms.make_log("nvidia-current", "535.309.01", "6.1.0", str(tmp_path)) == str(log)
    assert dkms.make_log("nvidia-current", "1", "6.1.0", str(tmp_path)) is None


def test_all_builds_are_tried_and_one_failure_fails() -> None:
    script = dkms.build_script([("false", "1", "a"), ("true", "1", "b")]).replace("dkms install -m ", "")
    assert subprocess.run(["sh", "-c", script]).returncode == 1
    assert script.count("|| failed=1") == 2


def test_an_initramfs_older_than_the_file_is_stale(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.write_text("x")
    for release, age in (("6.1.0-1", -60), ("6.1.0-2", 60), ("6.1.0-3", -60)):
        image = tmp_path / f"initrd.img-{release}"
        image.write_text("x")
        os.utime(image, (time.time() + age, time.time() + age))
        if release != "6.1.0-3":
            (tmp_path / f"vmlinuz-{release}").write_text("x")
    assert initramfs.stale(str(conf), str(tmp_path)) == ["6.1.0-1"]
    assert initramfs.stale(str(tmp_path / "none"), str(tmp_path)) == []


def test_needs_of_one_file_system_are_added_up(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    inside = str(tmp_path / "not" / "there")
    assert space.short([(str(tmp_path), 1), (inside, 1)]) == []
    (told,) = space.short([(str(tmp_path), int(free * 0.7)), (inside, int(free * 0.7))])
    assert "are needed" in told


def test_the_holder_of_a_lock_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock-frontend"
    code = f"import fcntl,time; f=open({str(lock)!r},'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        held = locks.holder((str(tmp_path / "none"), str(lock)))
        assert held["pid"] == other.pid
        assert "fcntl.lockf" in held["command"]
        waited, last, free = locks.wait(0, (str(lock),))
        assert not free
        assert last["path"] == str(lock)
        assert waited < 5
        other.kill()
    assert locks.wait(5, (str(lock),))[2]


def test_our_own_lock_is_no_hindrance(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as mine:
        fcntl.lockf(mine, fcntl.LOCK_EX)
        assert locks.holder((str(lock),)) is None
