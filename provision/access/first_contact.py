"""First contact: a host that still wants a password gets the user's key, and is proven to take it.

The password goes to fabric and from there into the encrypted connection: it is in no argument, environment,
file or message. Which host key is right is OpenSSH's to say, before the password is sent.
"""

from __future__ import annotations

import re
import shlex
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Failure, Unreached
from ..transport import child
from ..transport.options import destination, fresh_args, options
from . import fresh
from .door import door_to
from .install_key import SCRIPT
from .offers import offered
from .own_key import checked

if TYPE_CHECKING:
    from ..transport.target import Target

SECONDS = 60


def first_contact(target: Target, password: str, public_key: str) -> Target:
    """Log in with the password, install the key, and log in with the key alone by plain OpenSSH.

    Returns the target by which further connections go. Does nothing where a key gets in already. Raises
    Unreached where the host or its key is not as it should be or the password is refused, Failure
    where the key cannot be installed or is not taken, Usage for a text that is no public key.
    """
    from ..transport import ssh

    key = checked(public_key)
    if target.host_key:
        target = ssh.pinned(target)
    before = fresh.login(door_to(target))
    if before.holds:
        return target
    ways = before.offered
    if not ways and "Too many authentication failures" in before.says:
        ways = _offered(target)  # the server hung up over the agent's many keys, and said no more
    if not ways:
        # OpenSSH stopped before it came to logging in: its reason stands, and no password is sent.
        raise ssh.explain(_attempt(target), target)
    if not {"password", "keyboard-interactive"} & set(ways):
        raise ssh.LoginRefused(target.user or "the default user", ways, (), target).by_password()
    where = _install(_connection(target, password), target, key)
    after = fresh.login(door_to(target))
    if not after.holds:
        raise Failure(
            f"the key is in {where}, but a login with it does not work: {after.says}",
            host=target.name,
            do="sshd's log on the host (`journalctl -u ssh`) says why",
        )
    return replace(target, accept_new=False)


def _offered(target: Target) -> tuple[str, ...]:
    import paramiko

    way = _resolved(target)
    proxy = _proxy(target, way)

    def open_socket() -> Any:
        if proxy:
            return paramiko.ProxyCommand(proxy)
        return socket.create_connection((way["hostname"], int(way["port"])), timeout=20)

    return offered(open_socket, way["user"])


def _attempt(target: Target) -> str:
    return child.run([*fresh_args(target), "true"], timeout=SECONDS).err


def _connection(target: Target, password: str) -> Any:
    """A fabric connection that goes where OpenSSH would go and takes only host keys that OpenSSH knows."""
    import fabric
    import paramiko

    way = _resolved(target)
    config = fabric.Config(overrides={"load_ssh_configs": False, "timeouts": {"connect": 20}})
    connection = fabric.Connection(
        way["hostname"],
        user=way["user"],
        port=int(way["port"]),
        gateway=_proxy(target, way),
        config=config,
        connect_kwargs={
            "password": password,
            "look_for_keys": False,
            "allow_agent": False,
            "banner_timeout": 30,
            "auth_timeout": 30,
        },
    )
    connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
    alias = way.get("hostkeyalias", "none")
    for file in (*way.get("userknownhostsfile", "").split(), *way.get("globalknownhostsfile", "").split()):
        path = Path(file).expanduser()
        if path.is_file():
            _load(connection.client, path, alias, way)
    return connection


def _load(client: Any, path: Path, alias: str, way: dict[str, str]) -> None:
    """Known hosts as OpenSSH keeps them; a HostKeyAlias or a name of ssh_config stands for the address."""
    import paramiko

    known = paramiko.HostKeys()
    known.load(str(path))
    port = way["port"]
    name = way["hostname"] if port == "22" else f"[{way['hostname']}]:{port}"
    asked = [name] if alias in ("none", "") else [alias, f"[{alias}]:{port}"]
    for each in asked:
        for kind, key in (known.lookup(each) or {}).items():
            client.get_host_keys().add(name, kind, key)


def _resolved(target: Target) -> dict[str, str]:
    """ssh_config's answer for this host (`ssh -G`): host name, port, user, known hosts, proxies."""
    said = child.run(["ssh", "-G", *options(target), *destination(target)], timeout=20)
    pairs = (line.partition(" ") for line in said.out.splitlines())
    return {key: value.strip() for key, _, value in pairs}


def _proxy(target: Target, way: dict[str, str]) -> str | None:
    """The command through which the host is reached, or None where there is nothing in between."""
    jump, command = way.get("proxyjump", "none"), way.get("proxycommand", "none")
    if jump not in ("none", ""):
        *others, last = jump.split(",")
        before = ["-J", ",".join(others)] if others else []
        host, port = way["hostname"], way["port"]
        url = last if last.startswith("ssh://") else f"ssh://{last}"
        own = [
            word
            for option in target.options
            for word in ("-o", option)
            if not option.lower().startswith("proxyjump")
        ]
        return shlex.join(["ssh", "-o", "BatchMode=yes", *own, *before, "-W", f"[{host}]:{port}", url])
    if command not in ("none", ""):
        return command.replace("%h", way["hostname"]).replace("%p", way["port"]).replace("%r", way["user"])
    return None


def _install(connection: Any, target: Target, key: str) -> str:
    """Run the installing program. Returns the file that the key is in now."""
    import paramiko
    from invoke.exceptions import CommandTimedOut

    try:
        with connection:
            command = shlex.join(["sh", "-c", SCRIPT, "sh", key])
            done = connection.run(command, hide=True, in_stream=False, timeout=SECONDS, warn=True)
    except paramiko.AuthenticationException as e:
        raise Unreached(
            f"the password was refused for {connection.user}",
            host=target.name,
            do="is it that account's password?",
        ) from e
    except (paramiko.SSHException, OSError, EOFError, CommandTimedOut) as e:
        raise Unreached(
            f"the login with a password failed: {str(e) or type(e).__name__}", host=target.name
        ) from e
    found = re.search(r"^gpu-provision-key (?:installed|there) (.+)$", done.stdout, re.MULTILINE)
    if done.return_code == 0 and found:
        return found[1]
    said = f"{done.stderr}\n{done.stdout}"
    if re.search(r"password (?:change|has expired)|required to change your password", said, re.IGNORECASE):
        raise Failure(
            "the host wants its password changed before anything else",
            host=target.name,
            do=f"log in once with `ssh {connection.user}@{target.address}`, set a new one, then come back",
        )
    reason = re.search(r"^gpu-provision: (.+)$", said, re.MULTILINE)
    words = (
        reason[1]
        if reason
        else " / ".join(said.split("\n")[-3:]).strip(" /") or f"exit status {done.return_code}"
    )
    raise Failure(f"the key could not be installed: {words}", host=target.name)
