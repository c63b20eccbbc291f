"""Recordings of hosts as far as SSH goes, made from a few words."""

from __future__ import annotations

import json
from typing import Any

from provision.controls.model import Judged, Verdict
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.profile.model import Profile
from provision.recording.model import Recording

MAIN = "/etc/ssh/sshd_config"
DROP_IN = "/etc/ssh/sshd_config.d/00-gpu-provision.conf"
DEBIAN_MAIN = (
    "# Debian's own\n\nInclude /etc/ssh/sshd_config.d/*.conf\n\nKbdInteractiveAuthentication no\nUsePAM yes\n"
)

# What `sshd -T` of Debian 12 prints of the keywords that matter here.
OPTIONS = {
    "port": "22",
    "permitrootlogin": "without-password",
    "pubkeyauthentication": "yes",
    "passwordauthentication": "yes",
    "kbdinteractiveauthentication": "no",
    "permitemptypasswords": "no",
    "authenticationmethods": "any",
    "kexalgorithms": "sntrup761x25519-sha512@openssh.com,curve25519-sha256,ecdh-sha2-nistp256",
    "ciphers": "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com",
    "macs": "umac-64-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha1",
    "hostkeyalgorithms": "ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512",
    "authorizedkeyscommand": "none",
    "trustedusercakeys": "none",
}
HARDENED = {
    "passwordauthentication": "no",
    "kexalgorithms": "sntrup761x25519-sha512@openssh.com",
    "macs": "hmac-sha2-256-etm@openssh.com",
    "hostkeyalgorithms": "ssh-ed25519,rsa-sha2-512",
}
ROOT = {"name": "root", "uid": 0, "shell": "/bin/bash", "password": "set", "sudo": "passwd", "keys": 1,
        "forced_command_keys": 0, "groups": ["root"]}  # fmt: skip
ADA = {"name": "ada", "uid": 1000, "shell": "/bin/bash", "password": "set", "sudo": "nopasswd", "keys": 1,
       "forced_command_keys": 0, "groups": ["ada", "sudo"]}  # fmt: skip
SSH_SERVICE = """\
Id=ssh.service
Names=ssh.service sshd.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
"""
SSHD_ON_22 = {"proto": "tcp", "address": "0.0.0.0", "port": 22, "program": "sshd", "unit": "ssh.service"}


def case(
    user: str = "root", addr: str = "192.0.2.1", rc: int = 0, stderr: str = "", **options: str
) -> dict[str, Any]:
    """One `sshd -T`, Debian's defaults but for `options`; an empty value leaves a keyword out."""
    lines = [f"{k} {v}" for k, v in {**OPTIONS, **options}.items() if v]
    return {
        "user": user,
        "addr": addr,
        "rc": rc,
        "stdout": "\n".join(lines) if rc == 0 else "",
        "stderr": stderr,
    }


def facts(
    *,
    cases: list[dict[str, Any]] | None = None,
    files: dict[str, str] | None = None,
    accounts: list[dict[str, Any]] | None = None,
    operator: str = "root",
    units: str = SSH_SERVICE,
    sockets: list[dict[str, Any]] | None = None,
    packages: tuple[str, ...] = (),
    openssh: str = "1:9.2p1-2+deb12u10",
    items: dict[str, Any] | None = None,
) -> Facts:
    """A Debian 12 host as it comes, but for what is said."""
    texts = files if files is not None else {MAIN: DEBIAN_MAIN}
    dpkg = "".join(f"ii \t{name}\t1\tall\n" for name in packages) + f"ii \topenssh-server\t{openssh}\tamd64\n"
    recorded: dict[str, Any] = {
        "sshd.effective": {
            "cases": cases if cases is not None else [case(), case("gpu-provision-nobody", "198.51.100.77")],
            "arguments": [],
            "operator": {"user": operator, "addr": "192.0.2.1"},
        },
        "sshd.files": {"files": [{"path": path, "text": text} for path, text in texts.items()]},
        "accounts": {"rc": 0, "stdout": json.dumps(accounts if accounts is not None else [ROOT, ADA])},
        "units": {"rc": 0, "stdout": units},
        "sockets": {"rc": 0, "stdout": json.dumps([SSHD_ON_22] if sockets is None else sockets)},
        "dpkg.list": {"rc": 0, "stdout": dpkg},
        **{f"file:{path}": {"text": text} for path, text in texts.items()},
        **(items or {}),
    }
    return Facts(Recording("gpu01", "2026-11-30T12:00:00Z", True, 0.1, recorded))


def profile(**variables: Any) -> Profile:
    defaults = {
        "ssh_hardening_root_login": "prohibit-password",
        "ssh_hardening_old_clients": False,
        "ssh_hardening_admins": [],
        "ssh_hardening_confirm_seconds": 180,
    }
    return Profile("test", {**defaults, **variables}, variables)


def judge(control: Any, host: Facts, **variables: Any) -> Verdict:
    verdict: Verdict = control(Judged(host, profile(**variables), Unknown("not resolved")))
    return verdict


# Public keys made for these tests, with their fingerprints as `ssh-keygen -l` prints them.
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJFVtiX33XXG0FolMho90TIP678kGgFGDIIJTY911dWH ada@desk"
PRINT = "SHA256:a0ycflr39JkaN2j18Ikb2IM/o2QMjuCeNhvUoL2jLu8"
KEY_2 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHo5Iw7N6EkeYueTtAR5DC+KglJMMA3cDQzxKycQX8r4 ada@laptop"
PRINT_2 = "SHA256:VLWqmcjtiGnG2kX3qW87bfFzZzwUwutCeWmPWeL4PEY"
