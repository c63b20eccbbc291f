"""OpenSSH's own words, and what a person is told of them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from provision.errors import Unreached, Usage
from provision.transport import explain as module
from provision.transport import hostkeys
from provision.transport.explain import ChangedHostKey, UnknownHostKey, explain
from provision.transport.hostkeys import HostKey, fingerprint
from provision.transport.target import Target

if TYPE_CHECKING:
    from pathlib import Path

TARGET = Target("gpu01", "gpu01.example", user="admin")
BLOB = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()

CASES = [
    (
        "ssh: Could not resolve hostname gpu01.example: Name or service not known\n",
        "the name gpu01.example does not resolve",
    ),
    (
        "ssh: connect to host 192.0.2.1 port 22: Connection refused\n",
        "192.0.2.1 port 22: nothing listens there",
    ),
    ("ssh: connect to host 192.0.2.1 port 22: No route to host\n", "there is no route"),
    ("ssh: connect to host 192.0.2.1 port 22: Network is unreachable\n", "network is unreachable"),
    ("ssh: connect to host 192.0.2.1 port 2222: Connection timed out\n", "port 2222: no answer"),
    ("ssh: connect to host 192.0.2.1 port 22: Operation timed out\n", "no answer"),
    ("ssh: connect to host 192.0.2.1 port 22: Permission denied\n", "192.0.2.1 port 22: Permission denied"),
    (
        "Connection timed out during banner exchange\nConnection to 192.0.2.1 port 22 timed out\n",
        "no SSH server",
    ),
    (
        "kex_exchange_identification: read: Connection reset by peer\n"
        "Connection reset by 192.0.2.1 port 22\n",
        "ended the connection before its greeting",
    ),
    (
        "kex_exchange_identification: banner line contains invalid characters\n",
        "ended the connection before its greeting",
    ),
    ("admin@gpu01.example: Permission denied (publickey,password).\n", "login refused for admin"),
    ("Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures\n", "too many keys"),
    (
        "Unable to negotiate with 192.0.2.1 port 22: no matching host key type found. "
        "Their offer: ssh-rsa,ssh-dss\n",
        "no host key type in common; the server offers: ssh-rsa,ssh-dss",
    ),
    (
        "Unable to negotiate with 192.0.2.1 port 22: no matching key exchange method found. "
        "Their offer: diffie-hellman-group1-sha1\n",
        "no key exchange method in common",
    ),
    (
        "ssh: connect to host jump port 22: Connection refused\n"
        "kex_exchange_identification: Connection closed by remote host\n"
        "Connection closed by UNKNOWN port 65535\n",
        "host on the way (ProxyJump or ProxyCommand) let nobody through: ssh: connect to host jump port 22",
    ),
    (
        "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n"
        "Connection closed by UNKNOWN port 65535\n",
        "host on the way (ProxyJump) could not reach it: Connection refused",
    ),
    (
        "Host key verification failed.\nConnection closed by UNKNOWN port 65535\n",
        "let nobody through: Host key verification failed",
    ),
    (
        '"System is booting up. Unprivileged users are not permitted to log in yet."\n',
        "only later or not at all",
    ),
    ("This account is currently not available.\n", "only later or not at all"),
    ("Connection closed by 192.0.2.1 port 22\n", "connection was lost: Connection closed by 192.0.2.1"),
    ("Timeout, server gpu01.example not responding.\n", "connection was lost"),
    ("client_loop: send disconnect: Broken pipe\n", "connection was lost"),
    ("something quite new\n", "ssh failed: something quite new"),
    ("", "ssh failed: it gave no reason"),
]


@pytest.mark.parametrize(("stderr", "says"), CASES)
def test_words_of_openssh_become_a_reason(stderr: str, says: str) -> None:
    failure = explain(stderr, TARGET)
    assert isinstance(failure, Unreached)
    assert failure.exit_code == 3
    assert failure.host == "gpu01"
    assert says in failure.says


@pytest.mark.parametrize(
    "banner", ["** WARNING: connection is not using a post-quantum key exchange algorithm.\n", ""]
)
def test_carriage_returns_and_warnings_are_no_reason(banner: str) -> None:
    failure = explain(banner + "ssh: connect to host h port 22: Connection refused\r\n", TARGET)
    assert failure.says == "h port 22: nothing listens there (connection refused)"


def test_a_refused_login_names_the_ways_and_the_key_that_could_not_be_read() -> None:
    text = 'Load key "/home/me/.ssh/id": bad permissions\nadmin@h: Permission denied (publickey,password).\n'
    failure = explain(text, TARGET)
    assert "the server takes: publickey, password" in failure.do
    assert 'Load key "/home/me/.ssh/id": bad permissions' in failure.do
    assert "--password-fd" in failure.do
    only_key = explain("admin@h: Permission denied (publickey).\n", TARGET)
    assert "--password-fd" not in only_key.do


@pytest.mark.parametrize(
    "stderr",
    [
        "/home/me/.ssh/config: line 3: Bad configuration option: compresion\n"
        "/home/me/.ssh/config: terminating, 1 bad configuration options\n",
        "Bad owner or permissions on /home/me/.ssh/config\n",
    ],
)
def test_a_broken_ssh_config_is_the_users_to_mend(stderr: str) -> None:
    failure = explain(stderr, TARGET)
    assert isinstance(failure, Usage)
    assert "/home/me/.ssh/config" in failure.says


def test_a_changed_host_key_shows_both_fingerprints(tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"# comment\ngpu01.example ssh-ed25519 {BLOB}\n")
    text = (
        "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
        "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
        "The fingerprint for the ED25519 key sent by the remote host is\nSHA256:offeredoffered.\n"
        f"Offending ED25519 key in {known}:2\nHost key verification failed.\n"
    )
    failure = explain(text, TARGET)
    assert isinstance(failure, ChangedHostKey)
    assert failure.exit_code == 3
    assert failure.known == fingerprint(BLOB)
    assert failure.offered == "SHA256:offeredoffered"
    assert fingerprint(BLOB) in failure.says
    assert "SHA256:offeredoffered" in failure.says
    assert f"line 2 of {known}" in failure.do


def test_an_unknown_host_key_shows_what_is_offered_and_what_accepts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = HostKey("ssh-ed25519", "SHA256:seen", "line")
    monkeypatch.setattr(module.hostkeys, "offered", lambda target: key)
    text = (
        "No ED25519 host key is known for gpu01.example and you have requested strict checking.\n"
        "Host key verification failed.\n"
    )
    failure = explain(text, TARGET)
    assert isinstance(failure, UnknownHostKey)
    assert failure.exit_code == 2
    assert failure.key == key
    assert "SHA256:seen" in failure.says
    assert "--host-key SHA256:seen" in failure.do
    assert "--accept-new" in failure.do


def test_fingerprints_are_those_of_openssh() -> None:
    # ssh-keygen -lf of this key (its private half was never kept)
    blob = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    assert fingerprint(blob) == hostkeys.fingerprint(BLOB)
    with pytest.raises(ValueError, match="not a key"):
        fingerprint("!!")
