"""QEMU's control socket (QEMU Machine Protocol): one command, its answer, and the events that it brings."""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...errors import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..host import LabHost


class Monitor:
    """An open connection. QEMU serves one at a time; others wait."""

    def __init__(self, connection: socket.socket) -> None:
        self._lines = connection.makefile("rw", encoding="utf-8")
        self._events: list[dict[str, Any]] = []
        self._connection = connection
        self._read()  # the greeting
        self.do("qmp_capabilities")

    def do(self, command: str, **arguments: object) -> Any:
        """Raises Failure with QEMU's words where it refuses."""
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while True:
            answer = self._read()
            if "event" in answer:
                self._events.append(answer)
            elif "error" in answer:
                raise Failure(f"QEMU refuses {command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def wait_for(self, event: str, device: str, patience: float) -> None:
        """Waits for an event about a device. Raises Failure after `patience` seconds."""
        deadline = time.monotonic() + patience
        while not any(x["event"] == event and x["data"].get("device") == device for x in self._events):
            left = deadline - time.monotonic()
            try:
                self._connection.settimeout(max(left, 0.01))
                self._events.append(self._read())
            except TimeoutError:
                raise Failure(f"{device}: no {event} within {patience:.0f} s") from None
            finally:
                self._connection.settimeout(None)

    def _read(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise Failure("QEMU has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


def socket_of(host: LabHost) -> Path:
    # Below /run: the path of a socket may have 107 bytes, and that of a lab's folder may be longer.
    return host.place.run / f"{host.number}.qmp"


@contextmanager
def monitor(host: LabHost) -> Iterator[Monitor]:
    """Raises Failure where the host does not run."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(socket_of(host)))
        except OSError as problem:
            raise Failure(f"its control socket does not answer: {problem.strerror}", host=host.name) from None
        yield Monitor(connection)
