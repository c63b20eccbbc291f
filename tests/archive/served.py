"""The archive over HTTP, on the address that lab hosts see this machine by."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from .build import KEY_FILE, Builder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: pytest shows what the test said."""


@dataclass(frozen=True)
class Archive:
    """A built archive that is being served. `url` has no slash at its end."""

    builder: Builder
    url: str

    @property
    def key(self) -> str:
        """The key that signs it, armored."""
        return self.builder.key

    def give(self, root: Path, line: str, name: str = "test-archive") -> None:
        """Make a repository of it a source of the host below `root`: what an administrator would have added.

        `line` is what follows the options of a sources.list entry: address, suite, components.
        """
        keyring = f"etc/apt/keyrings/{name}.asc"
        (root / keyring).parent.mkdir(exist_ok=True)
        (root / keyring).write_text(self.key)
        (root / f"etc/apt/sources.list.d/{name}.list").write_text(f"deb [signed-by=/{keyring}] {line}\n")

    @property
    def key_url(self) -> str:
        return f"{self.url}/{KEY_FILE}"

    @property
    def cuda(self) -> str:
        """What NVIDIA's `…/compute/cuda/repos` is: distribution and architecture follow."""
        return f"{self.url}/compute/cuda/repos"

    @property
    def container_toolkit(self) -> str:
        """What `https://nvidia.github.io/libnvidia-container/stable/deb` is: the architecture follows."""
        return f"{self.url}/libnvidia-container/stable/deb"

    @property
    def ubuntu(self) -> str:
        """What an Ubuntu mirror is: suite noble, components main, restricted and multiverse."""
        return f"{self.url}/ubuntu"


@contextmanager
def served(folder: Path, address: str, kept: Path | None = None) -> Iterator[Archive]:
    """Build the archive below a folder and serve it on a free port of an address.

    `kept` has package files of earlier runs.
    """
    root = folder / "www"
    builder = Builder(root, folder, kept)
    server = ThreadingHTTPServer((address, 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    try:
        builder.everything()
        thread.start()
        yield Archive(builder, f"http://{address}:{server.server_address[1]}")
        server.shutdown()
    finally:
        server.server_close()
        builder.close()
