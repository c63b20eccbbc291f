"""The pytest plugin of the suite: what the checks are given, and each result as a line for the parent."""

from __future__ import annotations

import json
import os
import shlex
import time
from typing import TYPE_CHECKING, Any

import pytest

from ..errors import Failure
from ..facts import Facts
from ..transport import ssh
from .result import CheckStatus
from .subject import Subject

if TYPE_CHECKING:
    from testinfra.host import Host


SUBJECT = pytest.StashKey[Subject]()


@pytest.fixture(scope="session")
def subject(pytestconfig: pytest.Config) -> Subject:
    return pytestconfig.stash[SUBJECT]


@pytest.fixture(scope="session")
def host(subject: Subject) -> Host:
    """The subject as testinfra sees it, over the session that the run keeps open."""
    return testinfra_host(subject)


@pytest.fixture(scope="session")
def facts(subject: Subject) -> Facts:
    """What the last recording says."""
    return Facts(subject.recording)


class Lines:
    """Writes a line to the file descriptor `descriptor` as a check begins and as it ends."""

    def __init__(self, subject: Subject, descriptor: int) -> None:
        self._subject, self._descriptor = subject, descriptor

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[SUBJECT] = self._subject

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._emit("start", item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report: pytest.TestReport = yield
        if report.when == "call" or (report.when == "setup" and not report.passed):
            value = call.excinfo.value if call.excinfo else None
            message = "" if value is None else words(value)
            self._emit("end", item, status=_status(report), message=message, seconds=round(call.duration, 2))
        return report

    def _emit(self, kind: str, item: pytest.Item, **fields: Any) -> None:
        name, title = described(item)
        line = {
            "kind": kind,
            "time": time.time(),
            "host": self._subject.name,
            "check": name,
            "title": title,
            **fields,
        }
        os.write(self._descriptor, (json.dumps(line) + "\n").encode())


def described(item: pytest.Item) -> tuple[str, str]:
    """The check's name, `ssh.key-gets-in`, and its title, the first line of its docstring."""
    function: Any = item.function  # type: ignore[attr-defined]
    subject = item.path.stem.removeprefix("test_").replace("_", "-")
    name = function.__name__.removeprefix("test_").replace("_", "-")
    return f"{subject}.{name}", str(function.__doc__ or name).strip().splitlines()[0].rstrip(".")


def testinfra_host(subject: Subject) -> Host:
    """A testinfra host that goes the same way as the rest of the run."""
    from testinfra.backend.local import LocalBackend
    from testinfra.backend.ssh import SshBackend
    from testinfra.host import Host

    if subject.target.local:
        return Host(LocalBackend())
    shared = [
        "-o",
        "ControlMaster=no",
        "-o",
        f"ControlPath={subject.control_path or 'none'}",
        "-o",
        "BatchMode=yes",
    ]
    address = subject.target.address
    spec = f"[{address}]" if ":" in address else address
    return Host(SshBackend(spec, ssh_extra_args=shlex.join([*shared, *ssh.options(subject.target)])))


def words(error: BaseException) -> str:
    """Why a check failed, for a person."""
    from testinfra.backend.base import CommandResult

    if isinstance(error, AssertionError | Failure | pytest.skip.Exception | pytest.fail.Exception):
        return str(getattr(error, "msg", None) or error).strip()
    result = error.args[0] if error.args else None
    if isinstance(result, CommandResult):
        # testinfra hands over what OpenSSH said when it did not get to the host.
        return str(result.stderr).strip() or f"ssh ended with code {result.rc}"
    return f"{type(error).__name__}: {error}"


def _status(report: pytest.TestReport) -> CheckStatus:
    if report.skipped:
        return CheckStatus.SKIPPED
    return CheckStatus.PASSED if report.passed else CheckStatus.FAILED
