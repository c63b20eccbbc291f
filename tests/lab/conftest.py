"""What lab tests share: hosts, and the tier's being skipped, with the reason, where it cannot run."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from archive.served import served
from matrix import Matrix, missing, row_of

from provision import lab
from provision.lab import network
from provision.lab.place import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from archive.served import Archive

    from provision.lab import LabHost

KEPT = Path(__file__).parents[2] / ".cache/archive"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", metavar="FILE", help="write what the SSH matrices showed, as a table")
    says = "with --matrix: run what an earlier run left or saw fail, and add it to that run's table"
    parser.addoption("--missing", action="store_true", help=says)


def pytest_configure(config: pytest.Config) -> None:
    """The table is written by the process that hears of all tests, not by a worker of pytest-xdist. Whoever
    runs the tests behind a shell's `&` or nohup hands down a Ctrl-C that is ignored, and so do those workers;
    what we start must hear it.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    path = config.getoption("--matrix")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Matrix(Path(path), more=config.getoption("--missing")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips the tier where the machine cannot run a lab. With CI set only the kernel is an excuse: root and
    tools are the CI's own to provide, and a tier that is silently left out proves nothing.
    """
    if config.getoption("--missing", default=False):
        items[:] = missing(items)
    reason = lab.can_run()
    if reason is None:
        return
    if os.environ.get("CI") and lab.could_run():
        raise pytest.UsageError(f"CI must run the lab tests: {reason}")
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def row(record_property: Callable[[str, object], None]) -> dict[str, str]:
    """This test's line of the table."""
    return row_of(record_property)


@pytest.fixture(scope="module")
def lab_up() -> Iterator[Callable[..., LabHost]]:
    """Makes hosts for the tests of one module, of names that nobody else has; takes them down after it."""
    names: list[str] = []

    def up(*, release: str = "bookworm", gpus: str | None = None) -> LabHost:
        name = f"t-{secrets.token_hex(3)}"
        names.append(name)
        return lab.up(name, release=release, gpus=gpus)

    yield up
    for name in filter(lab.find, names):
        lab.down(name)


@pytest.fixture(scope="module")
def lab_host(lab_up: Callable[..., LabHost]) -> LabHost:
    """One host with two A100s, for the tests of one module."""
    return lab_up()


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """NVIDIA's and Ubuntu's repositories, served on the address by which lab hosts know this machine."""
    network.up(place())
    address = network.address(place(), 1)
    with served(tmp_path_factory.mktemp("archive"), address, KEPT) as running:
        yield running


@pytest.fixture
def own_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another lab beside the machine's, to be taken down whole. It borrows the machine's base roots."""
    from provision.lab import base
    from provision.lab.sources import RELEASES

    roots = [base.ensure(place(), release) for release in RELEASES]
    state = tmp_path / "lab"
    (state / "base").mkdir(parents=True)
    for root in roots:
        (state / "base" / root.name).symlink_to(root)
    monkeypatch.setenv("GPU_PROVISION_LAB", str(state))
    yield state
    lab.down_all()
