"""OpenSSH's own words about a connection that failed, told to a person: what is wrong and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Failure, Unreached, Usage
from . import hostkeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from .target import Target


class UnknownHostKey(Usage):
    """The host's key is not known and nothing allows to take it. `key` is what it offers, where seen."""

    def __init__(self, key: hostkeys.HostKey | None, target: Target) -> None:
        self.key = key
        offers = f"it offers {key.kind} {key.fingerprint}" if key else "the key it offers could not be read"
        pin = f"`--host-key {key.fingerprint}` if it is the right one, or " if key else ""
        super().__init__(
            f"the host key is not known yet; {offers}",
            host=target.name,
            do=f"compare it with what the provider shows, then give {pin}`--accept-new` to take any new key",
        )


class ChangedHostKey(Unreached):
    """The host offers another key than the one that is known; both as fingerprints, where seen."""

    def __init__(self, known: str | None, offered: str | None, where: str, target: Target) -> None:
        self.known, self.offered = known, offered
        super().__init__(
            f"the host key has changed: known is {known or 'another'}, offered is {offered or 'not shown'}",
            host=target.name,
            do=f"somebody may be in between, or the machine was set up anew; if you are sure, remove {where}",
        )


class LoginRefused(Unreached):
    """The server lets this user in by none of the ways that were tried. `methods` are those that it takes."""

    def __init__(self, user: str, methods: tuple[str, ...], hints: tuple[str, ...], target: Target) -> None:
        self.user, self.methods, self._target = user, methods, target
        super().__init__(f"login refused for {user}", host=target.name, do="; ".join(hints))

    @property
    def takes_password(self) -> bool:
        return bool({"password", "keyboard-interactive"} & set(self.methods))

    def by_password(self) -> Unreached:
        """The same, where a password was given as well."""
        if not self.takes_password:
            return Unreached(
                f"the host takes no password ({', '.join(self.methods)} only), and refuses our key",
                host=self._target.name,
                do="install the public key by the provider's console",
            )
        return Unreached(
            f"the password was refused for {self.user}",
            host=self._target.name,
            do="is it that account's password, and not one that has to be changed first?",
        )


def explain(stderr: str, target: Target) -> Failure:
    """The failure behind what `ssh` printed before it gave up with exit status 255."""
    text = stderr.replace("\r", "")
    for rule in _RULES:
        failure = rule(text, target)
        if failure is not None:
            return failure
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _NOISE.match(line)]
    return Unreached(f"ssh failed: {lines[-1] if lines else 'it gave no reason'}", host=target.name)


_NOISE = re.compile(r"\*\*|Warning: Permanently added|Connection to .* closed|debug\d:|Pseudo-terminal")


def _configuration(text: str, target: Target) -> Failure | None:
    found = re.search(
        r"(?m)^.*(?:Bad configuration option|Bad owner or permissions|no argument after keyword).*$", text
    )
    if found or "terminating," in text:
        line = found[0] if found else text.strip().splitlines()[-1]
        return Usage(f"your SSH configuration is not usable: {line.strip()}", host=target.name)
    return None


def _changed(text: str, target: Target) -> Failure | None:
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" not in text and "REVOKED HOST KEY" not in text:
        return None
    offered = re.search(r"sent by the remote host is\s+(SHA256:\S+?)\.?\s", text)
    place = re.search(r"Offending (?:\S+ )?key in (.+):(\d+)", text)
    if "REVOKED HOST KEY" in text:
        return Unreached("the host key is marked as revoked", host=target.name)
    if not place:
        return ChangedHostKey(None, offered[1] if offered else None, "the old key from known_hosts", target)
    known = hostkeys.at_line(Path(place[1]), int(place[2]))
    where = f"line {place[2]} of {place[1]}"
    return ChangedHostKey(known, offered[1] if offered else None, where, target)


def _unknown_key(text: str, target: Target) -> Failure | None:
    asked = "requested strict checking" in text or "Host key verification failed" in text
    if not asked or "UNKNOWN port 65535" in text:
        # Where the way leads through another host, it is that one's key.
        return None
    return UnknownHostKey(hostkeys.offered(target), target)


def _jump(text: str, target: Target) -> Failure | None:
    """Through a ProxyJump or ProxyCommand: the words before the last line are about the host on the way."""
    if "stdio forwarding failed" in text:
        found = re.search(r"open failed: (?:connect failed: )?(.+)", text)
        words = found[1].strip() if found else "it did not say why"
        return Unreached(f"the host on the way (ProxyJump) could not reach it: {words}", host=target.name)
    if "UNKNOWN port 65535" in text:
        lines = [
            line.strip() for line in text.splitlines() if line.strip() and "UNKNOWN port 65535" not in line
        ]
        lines = [
            line
            for line in lines
            if not line.startswith(("kex_exchange_identification", "ssh_exchange_identification"))
        ]
        words = " / ".join(lines[-2:]) or "it did not say why"
        return Unreached(
            f"the host on the way (ProxyJump or ProxyCommand) let nobody through: {words}",
            host=target.name,
            do="try `ssh` to that host by itself first; its host key must be known",
        )
    return None


def _name(text: str, target: Target) -> Failure | None:
    found = re.search(r"Could not resolve hostname (\S+): (.+)", text)
    if not found:
        return None
    ours = found[1] == target.address and target.unlisted
    return Unreached(
        f"{f'{target.unlisted}, and ' if ours else ''}the name {found[1]} does not resolve: "
        f"{found[2].strip()}",
        host=target.name,
        do=target.meant
        or "is it spelt right? A host of the inventory or of ssh_config, a lab host, or an address is wanted",
    )


_ROUTES = (
    (
        "Connection refused",
        "nothing listens there (connection refused)",
        "is sshd running, and on that port?",
    ),
    ("No route to host", "there is no route to it", "is it up, and is the address right?"),
    ("Network is unreachable", "the network is unreachable from here", ""),
    (
        "Connection timed out",
        "no answer: the connection timed out",
        "is it up, and does a firewall let you in?",
    ),
    (
        "Operation timed out",
        "no answer: the connection timed out",
        "is it up, and does a firewall let you in?",
    ),
)


def _route(text: str, target: Target) -> Failure | None:
    found = re.search(r"connect to (?:host|address) (\S+) port (\d+): (.+)", text)
    if not found:
        return None
    words = found[3].strip()
    for sign, says, do in _ROUTES:
        if sign in words:
            return Unreached(f"{found[1]} port {found[2]}: {says}", host=target.name, do=do)
    return Unreached(f"{found[1]} port {found[2]}: {words}", host=target.name)


def _early(text: str, target: Target) -> Failure | None:
    """A connection that ended before anybody could log in."""
    if "timed out during banner exchange" in text:
        return Unreached("something listens there, but it is no SSH server or hangs", host=target.name)
    if "kex_exchange_identification" in text or "banner line contains invalid characters" in text:
        found = re.search(r"(?:kex_exchange_identification: |banner )(.+)", text)
        return Unreached(
            f"the server ended the connection before its greeting: {found[1].strip() if found else ''}",
            host=target.name,
            do="too many connections (MaxStartups, PerSourcePenalties, a ban) or no SSH server at that port",
        )
    return None


def _negotiation(text: str, target: Target) -> Failure | None:
    found = re.search(
        r"Unable to negotiate with .*?: no matching (.+?) found\.\s*(?:Their offer: (.*))?", text
    )
    if not found:
        return None
    return Unreached(
        f"no {found[1]} in common; the server offers: {(found[2] or '?').strip()}",
        host=target.name,
        do="the server is very old or restricted; allow one of these for this host in ssh_config",
    )


def _refused(text: str, target: Target) -> Failure | None:
    found = re.search(r"(?:(\S+)@\S+: )?Permission denied \(([^)]*)\)", text)
    if not found and "Too many authentication failures" not in text:
        return None
    if not found:
        return Unreached(
            "login refused: too many keys were offered",
            host=target.name,
            do="name the key with IdentityFile and IdentitiesOnly=yes in ssh_config",
        )
    user = found[1] or target.user or "the default user"
    methods = [way for way in found[2].split(",") if way]
    hints = [f"the server takes: {', '.join(methods)}"]
    broken = re.search(
        r"(?m)^(?:Load key .*|Warning: Identity file .* not accessible.*|.*UNPROTECTED PRIVATE KEY.*)$", text
    )
    if broken:
        hints.append(broken[0].strip().strip("@ ").removeprefix("Warning: "))
    if {"password", "keyboard-interactive"} & set(methods):
        hints.append("a password is given with --password-fd; `bootstrap` then leaves your key there")
    if "publickey" in methods:
        hints.append(
            "is the right key in the agent (`ssh-add -l`), and is it in that user's authorized_keys?"
        )
    return LoginRefused(user, tuple(methods), tuple(hints), target)


def _not_now(text: str, target: Target) -> Failure | None:
    """The login was good, but the host lets nobody in at present."""
    signs = (
        "System is booting up",
        "System is going down",
        "account is currently not available",
        "account has expired",
    )
    for line in text.splitlines():
        if any(sign in line for sign in signs) or "password has expired" in line.lower():
            return Unreached(
                f"the host lets this account in only later or not at all: {line.strip()}", host=target.name
            )
    return None


def _lost(text: str, target: Target) -> Failure | None:
    found = re.search(
        r"(?m)^.*(?:Connection (?:closed by|reset)|Broken pipe|not responding|Timeout, server"
        r"|Connection to \S+ closed by remote host|client_loop: send disconnect|lost connection).*$",
        text,
    )
    return Unreached(f"the connection was lost: {found[0].strip()}", host=target.name) if found else None


_RULES: tuple[Callable[[str, Target], Failure | None], ...] = (
    _configuration,
    _changed,
    _unknown_key,
    _jump,
    _name,
    _negotiation,
    _refused,
    _route,
    _early,
    _not_now,
    _lost,
)
