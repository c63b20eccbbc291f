"""Shapes that sshd is found in, as data: how a host gets there, and what ssh_hardening makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAIN = "/etc/ssh/sshd_config"
FOLDER = "/etc/ssh/sshd_config.d"


@dataclass(frozen=True)
class Shape:
    """`setup` is run by sh as root, on a host as Debian ships it with an account bob (key, sudo).

    `says` None: the role has to end well, and nobody may get in with a password afterwards, from none of
    `addresses` either. Otherwise the role has to refuse or revert with these words, and /etc/ssh stays byte
    for byte.
    `loaded` False leaves sshd running with what it had before. `afterwards` is run, as root, on the hardened
    host, where a password has to be refused then as well.
    """

    name: str
    setup: str = ":"
    says: str | None = None
    loaded: bool = True
    user: str = "root"
    port: int = 22
    variables: dict[str, Any] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    root_gets_in: bool = True
    sample: bool = False
    afterwards: str = ""


def put(path: str, text: str) -> str:
    return f"cat >{path} <<'END'\n{text}END\n"


PASSWORDS = "PasswordAuthentication yes\nPermitRootLogin yes\n"
PLAIN = "UsePAM yes\nSubsystem sftp /usr/lib/openssh/sftp-server\n"
TEN = "Match Address 10.0.0.0/8\n  PasswordAuthentication yes\n"
NO_ROOT = {"ssh_hardening_root_login": "no"}

SHAPES: tuple[Shape, ...] = (
    Shape("as-debian-ships-it", sample=True),
    Shape("cloud-init-opens-passwords", put(f"{FOLDER}/50-cloud-init.conf", PASSWORDS)),
    # What cloud-init does at the first boot of a new instance where a user's data asks for passwords.
    Shape(
        "cloud-init-comes-back",
        afterwards=f"echo PasswordAuthentication yes >{FOLDER}/50-cloud-init.conf; systemctl reload ssh",
    ),
    Shape("a-later-drop-in", put(f"{FOLDER}/99-provider.conf", PASSWORDS)),
    Shape(
        "hardened-by-hand-and-beaten-by-cloud-init",
        put(f"{FOLDER}/50-cloud-init.conf", PASSWORDS) + f"echo PasswordAuthentication no >>{MAIN}",
    ),
    Shape("a-drop-in-that-sorts-first", put(f"{FOLDER}/00-aaa.conf", PASSWORDS), sample=True),
    Shape("include-at-the-end", put(MAIN, f"{PASSWORDS}{PLAIN}Include {FOLDER}/*.conf\n"), sample=True),
    Shape("no-include", put(MAIN, PASSWORDS + PLAIN)),
    Shape("no-drop-in-folder", f"rm -r {FOLDER}; {put(MAIN, PASSWORDS + PLAIN)}"),
    Shape(
        "no-last-line-end", f"printf 'PermitRootLogin yes\\nUsePAM yes\\nPasswordAuthentication yes' >{MAIN}"
    ),
    Shape("bytes-that-are-no-text", put(MAIN, PASSWORDS + PLAIN) + f"printf '# caf\\351\\n' >>{MAIN}"),
    Shape(
        "a-link-in-place-of-the-file",
        f"mv {MAIN} /etc/ssh/real; ln -s real {MAIN}; sed -i /^Include/d /etc/ssh/real",
    ),
    Shape(
        "ends-inside-a-match-block",
        put(MAIN, f"Include {FOLDER}/*.conf\n{PLAIN}Match User anoncvs\n  PasswordAuthentication yes\n"),
    ),
    Shape(
        "match-address-opens-passwords",
        put(f"{FOLDER}/50-ten.conf", TEN),
        addresses=("10.1.2.3",),
        sample=True,
    ),
    Shape(
        "match-address-before-the-include",
        put(
            MAIN,
            f"{TEN}Match all\nInclude {FOLDER}/*.conf\n{PLAIN}",
        ),
        addresses=("10.1.2.3",),
    ),
    Shape(
        "match-group-opens-keyboard-interactive",
        f"printf 'Match Group sudo\\n  KbdInteractiveAuthentication yes\\n' >>{MAIN}",
    ),
    Shape(
        "match-all-opens-passwords",
        put(MAIN, f"Match all\n  PasswordAuthentication yes\nMatch all\nInclude {FOLDER}/*.conf\n{PLAIN}"),
    ),
    Shape(
        "keyboard-interactive-through-pam", put(f"{FOLDER}/50-pam.conf", "KbdInteractiveAuthentication yes\n")
    ),
    Shape("weak-algorithms", put(f"{FOLDER}/50-old.conf", "Ciphers +aes128-cbc\nMACs +hmac-sha1\n")),
    Shape("another-port", put(f"{FOLDER}/50-port.conf", "Port 2222\n"), port=2222, sample=True),
    Shape("two-ports", put(f"{FOLDER}/50-port.conf", "Port 22\nPort 2222\n")),
    Shape("allow-users-with-us", put(f"{FOLDER}/50-allow.conf", "AllowUsers root bob\n")),
    Shape(
        "allow-groups-with-us",
        put(f"{FOLDER}/50-allow.conf", "AllowGroups sudo\n"),
        user="bob",
        root_gets_in=False,
    ),
    Shape(
        "keys-elsewhere",
        "mkdir /etc/ssh/keys; cp /root/.ssh/authorized_keys /etc/ssh/keys/root; mv /root/.ssh /root/aside; "
        + put(f"{FOLDER}/50-keys.conf", "AuthorizedKeysFile /etc/ssh/keys/%u\n"),
    ),
    Shape(
        "behind-ssh.socket",
        "systemctl disable -q --now ssh.service; systemctl enable -q --now ssh.socket",
        sample=True,
    ),
    Shape("logged-in-with-sudo", user="bob"),
    Shape(
        "root-closed-by-another-administrator", user="bob", variables=NO_ROOT, root_gets_in=False, sample=True
    ),
    Shape(
        "stricter-about-root",
        put(f"{FOLDER}/50-no.conf", "PermitRootLogin no\n"),
        user="bob",
        root_gets_in=False,
    ),
    # A password that begins with `!`, as cloud images have it, keeps nobody out while sshd uses PAM.
    Shape("locked-password", "passwd -ql root"),
    Shape(
        "root-closed-by-an-administrator-with-a-locked-password",
        "passwd -ql bob",
        user="bob",
        variables=NO_ROOT,
        root_gets_in=False,
    ),
    Shape(
        "certificate-authority",
        "ssh-keygen -q -t ed25519 -N '' -f /root/ca && mv /root/ca.pub /etc/ssh/ca.pub && rm /root/ca; "
        + put(f"{FOLDER}/50-ca.conf", "TrustedUserCAKeys /etc/ssh/ca.pub\n"),
    ),
    Shape("old-clients", variables={"ssh_hardening_old_clients": True}),
    # Refused, and nothing touched.
    Shape(
        "root-is-the-only-way-in",
        "rm -r /home/bob/.ssh",
        "no other account has a key and sudo",
        variables=NO_ROOT,
    ),
    Shape(
        "a-forced-command-makes-no-administrator",
        "sed -i 's/^/command=\"id\" /' /home/bob/.ssh/authorized_keys",
        "no other account has a key and sudo",
        variables=NO_ROOT,
    ),
    Shape(
        "without-pam-a-locked-account-makes-no-administrator",
        put(f"{FOLDER}/50-pam.conf", "UsePAM no\n") + "passwd -ql bob",
        "no other account has a key and sudo",
        variables=NO_ROOT,
    ),
    Shape("root-cannot-close-itself", says="Log in as bob", variables=NO_ROOT, sample=True),
    Shape(
        "allow-users-without-us",
        put(f"{FOLDER}/50-allow.conf", "AllowUsers bob\n"),
        "AllowUsers bob",
        loaded=False,
    ),
    Shape("allow-groups-without-us", f"echo AllowGroups sudo >>{MAIN}", "AllowGroups sudo", loaded=False),
    Shape("deny-users", f"echo 'DenyUsers r*' >>{MAIN}", "DenyUsers r*", loaded=False),
    Shape(
        "a-port-not-yet-loaded", f"echo Port 2222 >>{MAIN}", "port 22, and its files say 2222", loaded=False
    ),
    Shape(
        "second-factor",
        f"echo AuthenticationMethods publickey,password >>{MAIN}",
        "more than a key",
        loaded=False,
    ),
    Shape(
        "broken",
        f"printf 'Match User x\\nUseDNS no\\n' >>{MAIN}",
        "is broken before any change",
        loaded=False,
    ),
    Shape(
        "another-main-file",
        f"cp {MAIN} /etc/ssh/other; echo 'SSHD_OPTS=-f /etc/ssh/other' >/etc/default/ssh; "
        "systemctl restart ssh.service",
        "/etc/ssh/other instead of",
    ),
    Shape(
        "read-only",
        f"mount --bind {FOLDER} {FOLDER}; mount -o remount,bind,ro {FOLDER}",
        "Read-only file system",
    ),
    Shape(
        "cannot-reload",
        "mkdir -p /run/systemd/system/ssh.service.d\n"
        + put(
            "/run/systemd/system/ssh.service.d/broken.conf", "[Service]\nExecReload=\nExecReload=/bin/false\n"
        )
        + "systemctl daemon-reload",
        "failed",
        sample=True,
    ),
)
