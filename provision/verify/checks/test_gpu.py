"""What the GPUs answer to whoever logs in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from provision.facts import Facts, topology
from provision.facts.known import Unknown
from provision.facts.smi_trouble import DriverSilence, SmiTrouble

if TYPE_CHECKING:
    from testinfra.host import Host

# nvidia-smi on a broken card takes its time; a process that hangs in the kernel outlives this.
SECONDS = 60
LAST_LINES = 3


def asked(host: Host, command: str) -> str:
    """Standard output of nvidia-smi; its own words as the failure where it does not end well."""
    # Through a shell that stays: ssh ends with 255, its own code for a lost connection, where the last
    # process was killed or nvidia-smi itself ended so.
    kept = "rc=$?; [ $rc -lt 255 ] || rc=254; exit $rc"
    done = host.run(f"LC_ALL=C timeout -k 5 {SECONDS} nvidia-smi {command}; {kept}")
    said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-LAST_LINES:])
    assert done.rc != 127, "nvidia-smi is not installed"
    assert done.rc not in (124, 137), f"nvidia-smi {command} did not answer within {SECONDS} s"
    assert done.rc == 0, said or f"nvidia-smi {command} ended with code {done.rc}"
    return str(done.stdout)


@pytest.fixture
def cards(facts: Facts) -> int:
    """How many NVIDIA GPUs the bus shows; the checks of a host without any are skipped."""
    found = facts.nvidia_gpus_on_bus
    if isinstance(found, Unknown):
        pytest.fail(f"the GPUs on the bus are not known: {found.reason}")
    if not found:
        pytest.skip("no NVIDIA GPU on the bus")
    why = facts.driver_silence
    if isinstance(why, DriverSilence) and why.trouble is SmiTrouble.HANG:
        # A process that hangs in the kernel cannot be ended: another one would only be left behind too.
        pytest.fail(f"the driver hangs, so nvidia-smi is not asked again: {why.says}")
    return len(found)


def test_every_card_answers(host: Host, cards: int) -> None:
    """The driver lists every GPU that is on the bus."""
    listed = re.findall(r"^GPU \d+: .+$", asked(host, "-L"), re.MULTILINE)
    assert len(listed) == cards, f"{cards} on the bus, {len(listed)} listed by nvidia-smi -L"


def test_every_card_takes_a_query(host: Host, cards: int) -> None:
    """Every GPU gives its name, memory and temperature."""
    lines = asked(
        host, "--query-gpu=index,name,memory.total,temperature.gpu --format=csv,noheader"
    ).splitlines()
    silent = [
        line for line in lines if re.search(r"unknown error|gpu is lost|requires reset", line, re.IGNORECASE)
    ]
    assert not silent, "\n".join(silent)
    assert len(lines) == cards, f"{cards} on the bus, {len(lines)} answered"


def test_topology_is_readable_and_whole(host: Host, cards: int, facts: Facts) -> None:
    """`nvidia-smi topo -m` can be read, names every GPU, and says what the recording says."""
    table = topology.parse(asked(host, "topo -m"))
    assert not isinstance(table, Unknown), f"nvidia-smi topo -m: {table.reason}"
    assert len(table.gpus) == cards, f"{cards} on the bus, {len(table.gpus)} in the table"
    assert not table.asymmetric, f"two ends tell different things: {table.asymmetric}"
    known = facts.topology
    if not isinstance(known, Unknown):
        moved = [
            f"{a}-{b}: {known.links.get((a, b), 'nothing')} -> {link}"
            for (a, b), link in table.links.items()
            if known.links.get((a, b)) != link
        ]
        assert not moved, f"links changed since the recording: {', '.join(moved)}"
