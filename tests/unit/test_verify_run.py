"""Running the suite against this machine with a stand-in nvidia-smi: results, isolation, and what hangs."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from provision.catalog.stack import Stack
from provision.facts.known import Unknown
from provision.profile.model import Profile
from provision.recording.model import Recording
from provision.transport.target import Target
from provision.verify import run as running
from provision.verify.result import Check, CheckStatus, Started
from provision.verify.subject import Subject

TOPOLOGY = (
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\t0-31\t0\t\tN/A\n"
    "GPU1\tNV12\t X \t0-31\t0\t\tN/A\n\nLegend:\n"
)
LIST = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n"
QUERY = "0, NVIDIA A100-SXM4-80GB, 81920 MiB, 31\n1, NVIDIA A100-SXM4-80GB, 81920 MiB, 30\n"


def bus(count: int) -> dict[str, object]:
    device = {"vendor": "0x10de", "device": "0x20b2", "class": "0x030200", "driver": "nvidia", "numa_node": 0}
    return {"stdout": json.dumps([{"address": f"0000:0{n}:00.0", **device} for n in range(count)]), "rc": 0}


def subject(cards: int = 2, topology: str = TOPOLOGY, **more: dict[str, object]) -> Subject:
    items = {
        "pci": bus(cards),
        "nvidia-smi.topology": {
            "argv": ["nvidia-smi", "topo", "-m"],
            "rc": 0,
            "stdout": topology,
            "stderr": "",
        },
        **more,
    }
    recording = Recording("local", "2026-11-30T12:00:00Z", True, 0.1, items)
    return Subject(
        Target("local", "local", local=True), Profile("dev", {}), Unknown("not resolved"), recording
    )


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of nvidia-smi that answers from files beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$1" in topo) cat "$0.topo";; -L) cat "$0.list";; --query*) cat "$0.query";; esac\n'
    )
    program.chmod(0o755)
    (folder / "nvidia-smi.topo").write_text(TOPOLOGY)
    (folder / "nvidia-smi.list").write_text(LIST)
    (folder / "nvidia-smi.query").write_text(QUERY)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


def checked(tmp_path: Path, given: Subject) -> dict[str, Check]:
    result = running.verify([given], tmp_path)
    return {c.name: c for c in result.checks["local"]}


def test_a_healthy_host_passes_and_this_machine_is_not_asked_for_ssh(tmp_path: Path, smi: Path) -> None:
    events: list[Started | Check] = []
    result = running.verify([subject()], tmp_path, on_event=events.append)
    status = {c.name: c.status for c in result.checks["local"]}
    assert status == {
        "ssh.key-gets-in": CheckStatus.SKIPPED,
        "ssh.password-is-refused": CheckStatus.SKIPPED,
        "ssh.password-is-refused-for-root": CheckStatus.SKIPPED,
        "ssh.administrators-get-in": CheckStatus.SKIPPED,
        "firewall.what-the-profile-opens-is-reached-over-ipv4": CheckStatus.SKIPPED,
        "firewall.what-the-profile-opens-is-reached-over-ipv6": CheckStatus.SKIPPED,
        "firewall.what-nobody-opened-is-refused-over-ipv4": CheckStatus.SKIPPED,
        "firewall.what-nobody-opened-is-refused-over-ipv6": CheckStatus.SKIPPED,
        "gpu.every-card-answers": CheckStatus.PASSED,
        "gpu.every-card-takes-a-query": CheckStatus.PASSED,
        "gpu.topology-is-readable-and-whole": CheckStatus.PASSED,
        "containers.a-container-runs": CheckStatus.SKIPPED,
        "containers.a-container-sees-every-card-by-the-runtime": CheckStatus.SKIPPED,
        "containers.a-container-sees-every-card-by-gpus-all": CheckStatus.SKIPPED,
        "containers.a-container-has-the-limits-of-the-profile": CheckStatus.SKIPPED,
        "disks.every-data-mount-takes-writes": CheckStatus.SKIPPED,
    }
    assert result.ok
    assert [e for e in events if isinstance(e, Check)] == list(result.checks["local"])
    assert [e.name for e in events if isinstance(e, Started)] == list(status)
    [listed] = [c for c in result.checks["local"] if c.name == "gpu.every-card-answers"]
    assert listed.title == "The driver lists every GPU that is on the bus"


def test_a_failed_check_is_one_message_in_the_drivers_own_words(tmp_path: Path, smi: Path) -> None:
    smi.write_text(
        "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch' >&2\nexit 18\n"
    )
    checks = checked(tmp_path, subject())
    failed = checks["gpu.every-card-answers"]
    assert failed.status is CheckStatus.FAILED
    assert failed.message == "Failed to initialize NVML: Driver/library version mismatch"


def test_a_card_that_is_on_the_bus_and_not_in_the_list_is_seen(tmp_path: Path, smi: Path) -> None:
    checks = checked(tmp_path, subject(cards=3))
    assert checks["gpu.every-card-answers"].message == "3 on the bus, 2 listed by nvidia-smi -L"
    assert checks["gpu.topology-is-readable-and-whole"].message == "3 on the bus, 2 in the table"


def test_a_lost_card_and_a_changed_link_are_seen(tmp_path: Path, smi: Path) -> None:
    smi.with_name("nvidia-smi.query").write_text(
        QUERY.replace("81920 MiB, 30", "[GPU is lost], [GPU is lost]")
    )
    smi.with_name("nvidia-smi.topo").write_text(TOPOLOGY.replace("NV12", "SYS"))
    checks = checked(tmp_path, subject())
    assert "GPU is lost" in checks["gpu.every-card-takes-a-query"].message
    assert "GPU0-GPU1: NV12 -> SYS" in checks["gpu.topology-is-readable-and-whole"].message


def test_a_data_mount_that_is_not_there_is_seen(tmp_path: Path, smi: Path) -> None:
    """Its folder is there, and what jobs write goes to the disk beneath it."""
    below = tmp_path / "data"
    below.mkdir()
    given = subject()
    profile = Profile("dev", {"data_disks_mounts": [{"path": str(below)}, {"path": "/proc/none"}]})
    found = checked(tmp_path, replace(given, profile=profile))["disks.every-data-mount-takes-writes"]
    assert found.status is CheckStatus.FAILED
    assert f"{below}: what is written there goes to /" in found.message
    assert "/proc/none: " in found.message
    assert not list(below.iterdir())


def test_a_data_mount_takes_writes(tmp_path: Path, smi: Path) -> None:
    """/dev/shm is a mount wherever this runs."""
    profile = Profile("dev", {"data_disks_mounts": [{"path": "/dev/shm"}]})
    found = checked(tmp_path, replace(subject(), profile=profile))["disks.every-data-mount-takes-writes"]
    assert found.status is CheckStatus.PASSED, found


def test_a_host_without_a_gpu_has_nothing_to_answer(tmp_path: Path, smi: Path) -> None:
    checks = checked(tmp_path, subject(cards=0))
    assert checks["gpu.every-card-answers"].status is CheckStatus.SKIPPED
    assert checks["gpu.every-card-answers"].message == "no NVIDIA GPU on the bus"


def test_a_bus_that_is_not_known_is_not_called_healthy(tmp_path: Path, smi: Path) -> None:
    checks = checked(tmp_path, subject(pci={"not_asked": "for a test"}))
    assert checks["gpu.every-card-answers"].status is CheckStatus.FAILED
    assert "not known" in checks["gpu.every-card-answers"].message


def test_the_users_pytest_takes_no_part(tmp_path: Path, smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "project"
    here.mkdir()
    (here / "conftest.py").write_text("raise RuntimeError('the conftest was loaded')\n")
    (here / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (here / "pytest.py").write_text("raise RuntimeError('a module of the working directory was loaded')\n")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    assert checked(tmp_path, subject())["gpu.every-card-answers"].status is CheckStatus.PASSED
    assert sorted(p.name for p in here.iterdir()) == ["conftest.py", "pytest.ini", "pytest.py"]


def test_a_check_that_hangs_fails_alone_and_leaves_no_process(
    tmp_path: Path, smi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 300\n")
    monkeypatch.setattr(running, "SILENCE_SECONDS", 3.0)
    began = time.monotonic()
    checks = checked(tmp_path, subject())
    assert time.monotonic() - began < 20
    assert checks["gpu.every-card-answers"].status is CheckStatus.FAILED
    assert "no answer within 3 s" in checks["gpu.every-card-answers"].message
    assert "gpu.topology-is-readable-and-whole" not in checks
    pid = int((tmp_path / "pid").read_text())
    while Path(f"/proc/{pid}").exists() and time.monotonic() - began < 30:
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()


def test_a_subject_travels_whole() -> None:
    given = subject()
    full = Subject(
        Target("gpu01", "10.0.0.3", "root", 2222, "/key", ("ProxyJump=b",)),
        Profile("dev", {"a": [1]}, {"a": [1]}, frozenset({"gpu.answers"})),
        Stack(True),
        given.recording,
        Path("/run/c"),
        "s3cret",
        "s4cret",
    )
    for one in (given, full):
        assert Subject.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    assert "s3cret" not in repr(full)
    assert "s4cret" not in repr(full)


def test_a_driver_that_hung_at_the_last_look_is_not_asked_again(tmp_path: Path, smi: Path) -> None:
    smi.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nsleep 1000\n")
    hung = {"rc": None, "timed_out": True, "seconds": 20.0}
    checks = checked(tmp_path, subject(**{"nvidia-smi.query": hung}))
    for name in ("every-card-answers", "every-card-takes-a-query", "topology-is-readable-and-whole"):
        assert checks[f"gpu.{name}"].status is CheckStatus.FAILED
        assert "did not answer within 20.0 s" in checks[f"gpu.{name}"].message
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("trap '' TERM; sleep 30", "did not answer within 1 s"),
        ("kill -9 $$", "did not answer"),
        ("echo 'Unable to determine the device handle for GPU0000:A1:00.0'; exit 255", "device handle"),
    ],
)
def test_an_end_by_a_signal_or_with_255_is_no_lost_connection(
    tmp_path: Path, smi: Path, monkeypatch: pytest.MonkeyPatch, body: str, says: str
) -> None:
    """ssh itself ends with 255, and so does what a signal ended; each has to keep its own reason."""
    from testinfra.host import get_host

    from provision.verify.checks import test_gpu

    monkeypatch.setattr(test_gpu, "SECONDS", 1)
    smi.write_text(f"#!/bin/sh\n{body}\n")
    with pytest.raises(AssertionError, match=says):
        test_gpu.asked(get_host("local://"), "-L")
