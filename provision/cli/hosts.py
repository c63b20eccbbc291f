"""From the HOST arguments to managed hosts: inventory, lab, this machine, or an address."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from provision.errors import Usage
from provision.runs.managed import Managed, Secrets
from provision.transport.target import Target

from .asking import password_question

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.profile.inventory import Inventory, InventoryHost

    from .options import HostOptions

_ADDRESS = re.compile(
    r"(?:(?P<user>\S+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^@:\s\[\]]+))(?::(?P<port>\d+))?"
)


def resolve_hosts(names: Sequence[str], options: HostOptions) -> tuple[Managed, ...]:
    """The hosts meant, each once, in the order named, with a validated profile each.

    Raises Usage where a name means nothing, a variable is wrong, or a password cannot be read.
    """
    from provision.profile import presets, settings
    from provision.profile.compose import compose
    from provision.profile.peers import with_peers

    inventory = _inventory(options)
    assigned = settings.parse(options.settings)
    preset = presets.load(options.profile) if options.profile else None
    secrets = _secrets(options)
    managed: dict[str, Managed] = {}
    for name in names:
        for target, listed in _meant(name, inventory, options):
            variables = listed.variables if listed else {}
            groups = listed.groups if listed else ()
            profile_name, base = preset or _of_groups(groups)
            profile = compose(profile_name, base, variables, assigned, host=target.name)
            managed.setdefault(
                target.name,
                Managed(
                    target,
                    with_peers(profile, inventory, host=target.name),
                    groups,
                    replace(
                        secrets,
                        login=secrets.login or _text(variables, "ansible_password", "ansible_ssh_pass"),
                        sudo=secrets.sudo
                        or _text(variables, "ansible_become_password", "ansible_become_pass"),
                    ),
                ),
            )
    return tuple(managed.values())


def _inventory(options: HostOptions) -> Inventory | None:
    if options.inventory is None:
        if options.vault_password_file:
            raise Usage(
                "--vault-password-file opens the vaults of an inventory, and no inventory is given",
                do="name it with -i",
            )
        return None
    from provision.profile.inventory import Inventory

    return Inventory(options.inventory, options.vault_password_file)


def _meant(
    name: str, inventory: Inventory | None, options: HostOptions
) -> Iterator[tuple[Target, InventoryHost | None]]:
    """What one HOST argument means, in the contract's order."""
    listed = inventory.hosts(name) if inventory else ()
    if listed:
        for host in listed:
            yield _from_inventory(host, options), host
    elif inventory and name in inventory.names():
        raise Usage(f"group {name} of the inventory has no hosts")
    elif lab := _from_lab(name):
        yield replace(lab, host_key=options.host_key), None
    elif name == "local":
        yield Target("local", "localhost", local=True), None
    else:
        unlisted, meant = _near(name, inventory, options)
        yield replace(_from_address(name, options), unlisted=unlisted, meant=meant), None


def _near(name: str, inventory: Inventory | None, options: HostOptions) -> tuple[str, str]:
    """What is said where a name turns out to be no address either: where it is not listed, and what is."""
    if re.search(r"[.:@\[]", name):
        return "", ""
    places = [f"no host or group of the inventory {options.inventory}"] if inventory else []
    listed = [*(inventory.names() if inventory else ()), *_lab_names()]
    near = difflib.get_close_matches(name, dict.fromkeys(listed), n=3, cutoff=0.6)
    places.append("no lab host" if inventory else "no lab host (and no inventory is given with -i)")
    return f"{' and '.join(places)} is called {name}", f"did you mean {' or '.join(near)}?" if near else ""


def _lab_names() -> tuple[str, ...]:
    """Only root sees the lab."""
    from provision import lab

    return tuple(host.name for host in lab.hosts()) if os.geteuid() == 0 else ()


def _from_lab(name: str) -> Target | None:
    """A lab host by its name; `lab` is any that runs, started where none does."""
    from provision import lab

    if name == "lab":
        running = [host for host in lab.hosts() if host.running]
        host = running[0] if running else lab.up(say=lambda text: click.echo(text, err=True))
        click.echo(f"lab: this is the lab host {host.name}", err=True)
        return host.target()
    found = lab.find(name) if re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) else None
    return found.target() if found else None


def _from_address(text: str, options: HostOptions) -> Target:
    bare_v6 = text.count(":") > 1 and "[" not in text
    user, _, rest = text.rpartition("@")
    if bare_v6:
        return Target(text, rest, user or None, accept_new=options.accept_new, host_key=options.host_key)
    match = _ADDRESS.fullmatch(text)
    if not match or text.startswith("-"):
        raise Usage(
            f"{text!r} is no host: give a name of the inventory, a lab host, local, or [user@]address[:port]"
        )
    return Target(
        name=text,
        address=match["v6"] or match["host"],
        user=match["user"],
        port=_port(text, match["port"]),
        accept_new=options.accept_new,
        host_key=options.host_key,
    )


def _port(host: str, given: object) -> int | None:
    if given is None:
        return None
    if not str(given).isdecimal() or not 0 < int(str(given)) < 65536:
        raise Usage(f"{given!r} is no port", host=host)
    return int(str(given))


def _from_inventory(host: InventoryHost, options: HostOptions) -> Target:
    known = host.variables
    if known.get("ansible_connection") == "local":
        return Target(host.name, "localhost", local=True)
    return Target(
        name=host.name,
        address=str(known.get("ansible_host", known.get("ansible_ssh_host", host.name))),
        user=known.get("ansible_user", known.get("ansible_ssh_user")),
        port=_port(host.name, known.get("ansible_port", known.get("ansible_ssh_port"))),
        identity=known.get("ansible_ssh_private_key_file"),
        options=tuple(_ssh_options(host.name, known)),
        accept_new=options.accept_new,
        host_key=options.host_key,
    )


def _ssh_options(host: str, known: Mapping[str, Any]) -> Iterator[str]:
    """OpenSSH options out of Ansible's argument strings, as KEY=VALUE."""
    for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words = iter(shlex.split(str(known.get(variable) or "")))
        for word in words:
            flag, value = word[:2], word[2:] or next(words, "")
            if flag == "-o":
                yield value.replace(" ", "=", 1) if "=" not in value else value
            elif flag in _FLAGS:
                yield f"{_FLAGS[flag]}={value}"
            else:
                raise Usage(f"{variable}: {word!r} is not understood; write it as -o OPTION=VALUE", host=host)


_FLAGS = {"-J": "ProxyJump", "-i": "IdentityFile", "-F": "Include", "-p": "Port", "-l": "User"}


def _of_groups(groups: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """Without --profile: the preset that a group of the host's is named after, else the roles' defaults."""
    from provision.profile import presets

    named = [group for group in groups if group in presets.names()]
    if len(named) > 1:
        raise Usage(f"a host is in the groups {' and '.join(named)}: choose one preset with --profile")
    return presets.load(named[0]) if named else ("default", {})


def _text(variables: Mapping[str, Any], *names: str) -> str | None:
    """The first of these variables that an inventory sets, as text."""
    value = next((variables[name] for name in names if variables.get(name) is not None), None)
    return None if value is None else str(value)


def _secrets(options: HostOptions) -> Secrets:
    sudo = _read_fd(options.become_password_fd, "--become-password-fd")
    if options.ask_become_pass and sudo is None:
        if not sys.stdin.isatty():
            raise Usage(
                "there is no terminal to ask for sudo's password on", do="give it by --become-password-fd N"
            )
        sudo = click.prompt("sudo password", hide_input=True, err=True)
    login = _read_fd(options.password_fd, "--password-fd")
    return Secrets(login, sudo, password_question() if login is None else None)


def _read_fd(number: int | None, option: str) -> str | None:
    """One line from a file descriptor, without its end."""
    if number is None:
        return None
    try:
        with os.fdopen(os.dup(number), encoding="utf-8") as stream:
            password = stream.readline().rstrip("\n")
    except OSError as e:
        raise Usage(f"{option} {number}: {e.strerror}") from e
    if not password:
        raise Usage(f"{option} {number}: nothing to read there")
    return password
