"""Role ssh_hardening: keys alone get in, for every account and from everywhere.

sshd takes the first value that it reads of a keyword (sshd_config(5)), so one drop-in that sorts first
decides; whether it does is then asked of sshd itself. Nothing here makes a host weaker than it was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from . import ssh_admins
from .ssh_algorithms import Removal, openssh_version, removals
from .ssh_refusal import MAIN, SSHD_UNITS, refusal, root_login
from .wanted import Check, File, FirstLine, Unit, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..facts.sshd import Setting, Sshd
    from ..profile.model import Profile

DROP_IN = "/etc/ssh/sshd_config.d/00-gpu-provision.conf"
CLOUD_INIT = "/etc/cloud/cloud.cfg.d/zz-gpu-provision.cfg"
PASSWORDS = ("PasswordAuthentication", "KbdInteractiveAuthentication", "PermitEmptyPasswords")

# As `sshd -T` names the ways to type a password; the last one until OpenSSH 8.6 only.
TYPED = ("passwordauthentication", "kbdinteractiveauthentication", "challengeresponseauthentication")

HEAD = """\
# Written by gpu-provision (role ssh_hardening); change it through the role's variables.
# sshd takes the first value that it reads of a keyword, which is why this file sorts first.
"""
CLOUD_TEXT = """\
# Written by gpu-provision (role ssh_hardening): a new instance must not open passwords again.
ssh_pwauth: false
"""


@dataclass(frozen=True)
class SshWanted(Wanted):
    """`administrators` are the accounts that the profile names, `sudoers` is the file with their rules.

    `logins` are the administrators as the profile has them, for the proof that they get in.
    """

    administrators: tuple[ssh_admins.Administrator, ...] = ()
    sudoers: File | None = None
    logins: tuple[Mapping[str, Any], ...] = ()


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> SshWanted:
    """Administrators, the drop-in, the Include that makes sshd read it first, and cloud-init's setting."""
    refused = refusal(facts, profile)
    if refused:
        return SshWanted(refused=refused)
    sshd = facts.sshd
    if isinstance(sshd, Unknown | Absent):
        return SshWanted(refused="sshd's configuration is not known")
    admins = ssh_admins.administrators(facts, profile)
    gone = removed(facts, profile)
    text = drop_in(sshd, root_login(profile), gone)
    files = [File(DROP_IN, text)]
    why = [Why(removal.keyword, removal.why, "ssh-audit") for removal in gone]
    if not gone:
        why.append(Why("algorithms", "left as they are: the version of openssh-server is not known"))
    why += _about_root(sshd, root_login(profile))
    why += [
        Why("Match", f"{where} allows passwords; the exception is closed, its other settings stay")
        for where in exceptions(sshd.settings)
    ]
    first: tuple[FirstLine, ...] = ()
    if not read_first(sshd.with_file(DROP_IN, text)):
        first = (FirstLine(MAIN, f"Include {DROP_IN}"),)
        why.append(Why(MAIN, "something before the drop-in has the first word, so it is included on top"))
    if has_cloud_init(facts):
        files.append(File(CLOUD_INIT, CLOUD_TEXT))
        why.append(Why(CLOUD_INIT, "cloud-init would open passwords again on its next first boot"))
    units = sshd_units(facts)
    return SshWanted(
        administrators=admins,
        logins=tuple(ssh_admins.named(profile)),
        sudoers=ssh_admins.sudoers(profile),
        packages=ssh_admins.packages(facts, profile),
        steps=ssh_admins.steps(admins),
        files=tuple(files),
        first_lines=first,
        units=units,
        reload=_reload(units),
        checks=_checks(facts, sshd),
        why=(*ssh_admins.why(admins), *why),
    )


def removed(facts: Facts, profile: Profile) -> tuple[Removal, ...]:
    """Algorithms that the host's OpenSSH should not offer; none where its version cannot be told."""
    packages = facts.packages
    if isinstance(packages, Unknown):
        return ()
    server = packages.get("openssh-server")
    version = openssh_version(server.version) if server else None
    return removals(version, old_clients=profile["ssh_hardening_old_clients"]) if version else ()


def drop_in(sshd: Sshd, root_login: str, gone: tuple[Removal, ...]) -> str:
    """The text of the drop-in."""
    # A `Match all` that comes first beats every later Match block, as among those the first one wins too.
    inside = [f"{keyword} no" for keyword in PASSWORDS]
    lines = ["PubkeyAuthentication yes", *inside]
    if any("challengeresponseauthentication" in case.options for case in sshd.cases):
        # Until OpenSSH 8.6 this was a keyword of its own and opened passwords through PAM.
        lines.append("ChallengeResponseAuthentication no")
    if root_login == "no" or _opened_for_root(sshd):
        inside.append(f"PermitRootLogin {root_login}")
    if root_login == "no" or others_root_login(sshd) not in STRICTER:
        lines.append(f"PermitRootLogin {root_login}")
    lines += [removal.line for removal in gone]
    return HEAD + "\n".join(lines) + "\n\nMatch all\n" + "".join(f"    {line}\n" for line in inside)


STRICTER = ("no", "forced-commands-only")


def others_root_login(sshd: Sshd) -> str:
    """PermitRootLogin as the files of others have it; OpenSSH's default where none of them does."""
    for setting in sshd.settings:
        if setting.keyword == "permitrootlogin" and setting.match is None and setting.path != DROP_IN:
            return setting.value.strip('"').lower()
    return "prohibit-password"


def _opened_for_root(sshd: Sshd) -> bool:
    """Whether Match blocks of others take root's password, and nothing of theirs is stricter than a key.

    Where something is, a value for all would let root in where they keep it out; that is left to a person.
    """
    matched = {
        setting.value.strip('"').lower()
        for setting in sshd.settings
        if setting.keyword == "permitrootlogin" and setting.match is not None and setting.path != DROP_IN
    }
    return "yes" in matched and not {*matched, others_root_login(sshd)}.intersection(STRICTER)


def read_first(settings: tuple[Setting, ...]) -> bool:
    """Whether each setting of the drop-in is the first of its keyword, and its Match the first Match."""
    ours = [s for s in settings if s.path == DROP_IN]
    if not ours:
        return False
    keywords = {s.keyword for s in ours}
    seen: set[str] = set()
    for setting in settings:
        if setting.keyword not in keywords or setting.keyword in seen:
            continue
        if setting.path != DROP_IN:
            return False
        if setting.match is not None:
            return False
        seen.add(setting.keyword)
    return True


def exceptions(settings: tuple[Setting, ...], *, still_open: bool = False) -> tuple[str, ...]:
    """Match blocks that open passwords, as `path:line (criteria)`.

    With `still_open` only those that no `Match all` before them closes: among Match blocks that fit, the
    first value of a keyword wins.
    """
    looked_for = {"challengeresponseauthentication", *(keyword.lower() for keyword in PASSWORDS)}
    for_all: dict[str, bool] = {}
    closed: set[str] = set()
    found: list[str] = []
    for s in settings:
        if s.keyword == "match":
            for_all[s.path] = s.match is None
        elif s.match is None and for_all.get(s.path) and s.value.lower() == "no":
            closed.add(s.keyword)
        elif s.match is not None and s.keyword in looked_for - (closed if still_open else set()):
            found += [f"{s.path}:{s.line} (Match {s.match})"] * (s.value.lower() != "no")
    return tuple(dict.fromkeys(found))


def has_cloud_init(facts: Facts) -> bool:
    return not isinstance(facts.packages, Unknown) and facts.packages.get("cloud-init") is not None


def sshd_units(facts: Facts) -> tuple[Unit, ...]:
    """The units that run sshd on this host; one that systemd knows under two names is named once."""
    units = facts.units
    if isinstance(units, Unknown | Absent):
        return ()
    active = [name for name in SSHD_UNITS if name in units and units[name].exists and units[name].runs]
    once = [
        name for name in active if not (name.startswith("sshd.") and name.replace("sshd", "ssh") in active)
    ]
    return tuple(Unit(name, active=True) for name in once)


def _reload(units: tuple[Unit, ...]) -> tuple[str, ...]:
    """How sshd is told. A unit that does not run (sshd by connection, behind a socket) has nothing to reload.

    Behind a socket of systemd a reload kills sshd: started anew by SIGHUP it has lost the socket and cannot
    bind the port ("Cannot bind any address", seen with Debian 13's OpenSSH 10.0). A restart is handed the
    socket again, and sessions outlive it, as ssh.service has KillMode=process.
    """
    names = [unit.name for unit in units]
    verb = "try-restart" if any(name.endswith(".socket") for name in names) else "try-reload-or-restart"
    return tuple(f"systemctl {verb} {name}" for name in names if name.endswith(".service"))


def _about_root(sshd: Sshd, root_login: str) -> list[Why]:
    theirs = others_root_login(sshd)
    if root_login != "no" and theirs in STRICTER:
        return [Why("PermitRootLogin", f"the host's own files say `{theirs}`, which is stricter and stays")]
    return []


def _checks(facts: Facts, sshd: Sshd) -> tuple[Check, ...]:
    """The whole tree as sshd reads it, then what is in effect for each user and address that was recorded."""
    raw = facts.recording.answer("sshd.effective").raw
    arguments = " ".join(str(word) for word in raw.get("arguments") or ())
    checks = [Check(f"sshd -t {arguments}".strip())]
    me = sshd.operator.user if sshd.operator else None
    by_domain = any("rdomain" in block.criteria.lower() for block in sshd.match_blocks)
    for case, found in zip(raw.get("cases", ()), sshd.cases, strict=True):
        triple = {"host": found.addr, "laddr": "127.0.0.1", "lport": "22"} | (
            {"rdomain": "none"} if by_domain else {}
        )
        triple |= {k: case[k] for k in ("user", "addr", "host", "laddr", "lport") if k in case}
        lines = [f"{keyword} no" for keyword in TYPED if keyword in found.options]
        if found.user == me:
            lines.append("pubkeyauthentication yes")
        spec = ",".join(f"{key}={value}" for key, value in sorted(triple.items()))
        checks.append(Check(f"sshd -T {arguments} -C {spec}".replace("  ", " "), tuple(lines)))
    return tuple(checks)
