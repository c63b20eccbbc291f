"""What tests of virtual machines share: a machine, disks to plug into it, and the tier's being skipped with
the reason where it cannot run.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from guests import Guest

from provision import lab
from provision.lab import vm
from provision.lab.place import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """As in the lab's tier: with CI set, only the kernel is an excuse for leaving the tier out."""
    reason = lab.can_run("vm")
    if reason is None:
        return
    if os.environ.get("CI") and lab.could_run("vm"):
        raise pytest.UsageError(f"CI must run the tests of virtual machines: {reason}")
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def guest() -> Iterator[Guest]:
    """One machine for the whole run. A test leaves it running, with the disks that it found."""
    name = f"t-vm-{secrets.token_hex(3)}"
    host = lab.up(name, kind="vm")
    guest = Guest(host)
    guest.settle()
    yield guest
    lab.down(name)


@pytest.fixture
def plug(guest: Guest) -> Iterator[Callable[..., vm.Disk]]:
    """Plugs disks into the machine while it runs; takes them out again after the test.

    `plug(size, fill)`: `fill` is called with the disk's file, to put something on it before it is plugged.
    """
    made: list[str] = []

    def plugged(size: int = 2**30, fill: Callable[[Path], None] = lambda _: None) -> vm.Disk:
        serial = f"T{secrets.token_hex(4).upper()}"
        fill(vm.add(guest.host, serial, size))
        made.append(serial)
        disk = vm.plug(guest.host, serial)
        guest.run(f"udevadm wait --timeout=120 {disk.by_id}")
        return disk

    yield plugged
    for serial in made:
        vm.remove(guest.host, serial)


@pytest.fixture
def own_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another lab beside the machine's, to be taken down whole. It borrows what the machine's has built."""
    from provision.lab.vm import image

    state = tmp_path / "lab"
    for release in ("bookworm", "trixie"):
        image.ensure(place(), release)
    for folder in ("base", "images"):
        (state / folder).mkdir(parents=True)
        for built in (place().state / folder).glob("[!.]*-*"):
            (state / folder / built.name).symlink_to(built)
    monkeypatch.setenv("GPU_PROVISION_LAB", str(state))
    yield state
    lab.down_all()
