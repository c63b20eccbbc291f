"""Where a host is and how it is reached."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """One host as the user named it.

    `name` is what reports call it. `address` is what OpenSSH is given, so aliases of ssh_config work.
    `options` are further `-o` settings for OpenSSH, as KEY=VALUE; they win over ours, and ours over
    ssh_config. `accept_new`: an unknown host key is taken and kept, a changed one never. `host_key`
    is the fingerprint (`SHA256:…`) that the host's key must have. `local` is the machine we run on.
    `unlisted` says where the name was looked for before it was taken for an address, and `meant` which names
    there are close to it.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    options: tuple[str, ...] = field(default=())
    local: bool = False
    accept_new: bool = False
    host_key: str | None = None
    unlisted: str = ""
    meant: str = ""
