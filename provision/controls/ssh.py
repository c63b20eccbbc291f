"""Controls of sshd as it behaves: judged by `sshd -T` for each user and address, never by a file's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from ..facts.known import Absent, Unknown
from ..planners import ssh_hardening as planner
from ..planners.ssh_algorithms import CLASSIC, Removal
from ..planners.ssh_refusal import root_login as wanted_root_login
from ..yaml_text import read_yaml
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from ..facts.sshd import Sshd, SshdCase

ROLE = "ssh_hardening"
# `sshd -T` prints prohibit-password by its older name.
ROOT_BY_KEY = frozenset({"prohibit-password", "without-password", *planner.STRICTER})
EVIDENCE = 6


def _sshd(host: Judged) -> Sshd | Verdict:
    """sshd's configuration, or what to say where there is none to judge."""
    sshd = host.facts.sshd
    if isinstance(sshd, Unknown):
        return unknown(sshd)
    if isinstance(sshd, Absent):
        return skipped("there is no sshd on this host")
    broken = [case for case in sshd.cases if not case.options]
    if broken:
        return unknown(f"sshd -T for {_who(broken[0])}: {broken[0].error}")
    return sshd


@control(
    "ssh.config-valid",
    "sshd accepts its configuration",
    severity=Severity.HIGH,
    required=True,
)
def config_valid(host: Judged) -> Verdict:
    sshd = host.facts.sshd
    if isinstance(sshd, Unknown):
        return unknown(sshd)
    if isinstance(sshd, Absent):
        return skipped("there is no sshd on this host")
    broken = [case for case in sshd.cases if case.rc != 0]
    if not broken and (silent := [case for case in sshd.cases if not case.options]):
        return unknown(f"sshd -T for {_who(silent[0])}: {silent[0].error}")
    if not broken:
        return passed(f"valid for {len(sshd.cases)} users and addresses")
    if any(case.rc is None for case in broken):
        return unknown(f"sshd -T did not end for {_who(broken[0])}")
    return failed(
        "sshd -T succeeds",
        broken[0].error,
        advice="Mend the line that it names; a restart of sshd would fail and lock everybody out.",
        evidence=tuple(f"{_who(case)}: {case.error}" for case in broken[:EVIDENCE]),
    )


@control(
    "ssh.password-login",
    "No password gets anybody in",
    severity=Severity.HIGH,
    required=True,
    role=ROLE,
)
def password_login(host: Judged) -> Verdict:
    sshd = _sshd(host)
    if isinstance(sshd, Verdict):
        return sshd
    opened = [(case, ways) for case in sshd.cases if (ways := _password_ways(case))]
    expected = "passwordauthentication and kbdinteractiveauthentication are no for everybody"
    if not opened:
        if short := [case for case in sshd.cases if case.lacks]:
            return unknown(f"sshd -T for {_who(short[0])} does not tell {', '.join(short[0].lacks)}")
        return passed(f"keys only, for {len(sshd.cases)} users and addresses", expected=expected)
    told = [f"{_who(case)}: {', '.join(ways)}" for case, ways in opened]
    keywords = dict.fromkeys(way.split()[0] for _, ways in opened for way in ways)
    winners = [_winner(sshd, keyword) for keyword in keywords]
    return failed(
        expected,
        told[0] + (f" and {len(told) - 1} more" if len(told) > 1 else ""),
        evidence=(*told[:EVIDENCE], *winners),
    )


@control(
    "ssh.root-login",
    "root logs in as the profile says",
    severity=Severity.HIGH,
    required=True,
    role=ROLE,
)
def root_login(host: Judged) -> Verdict:
    sshd = _sshd(host)
    if isinstance(sshd, Verdict):
        return sshd
    wanted = wanted_root_login(host.profile)
    good = frozenset({"no"}) if wanted == "no" else ROOT_BY_KEY
    if short := [case for case in sshd.cases if case.user == "root" and "permitrootlogin" in case.lacks]:
        return unknown(f"sshd -T for {_who(short[0])} does not tell permitrootlogin")
    bad = [
        f"{_who(case)}: permitrootlogin {case.option('permitrootlogin')}"
        for case in sshd.cases
        if case.user == "root" and case.option("permitrootlogin") not in good
    ]
    ours = [s for s in sshd.settings if s.path == planner.DROP_IN and s.keyword == "permitrootlogin"]
    if wanted != "no" and any(s.value == "no" for s in ours):
        bad.append(f"{planner.DROP_IN}:{ours[0].line}: PermitRootLogin no, from an earlier profile")
    if bad:
        return failed(wanted, bad[0], evidence=tuple(bad[:EVIDENCE]))
    if not any(case.user == "root" for case in sshd.cases):
        return unknown("sshd.effective was not asked about root")
    found = {case.option("permitrootlogin") for case in sshd.cases if case.user == "root"}
    return passed(", ".join(sorted(str(value) for value in found)), expected=wanted)


@control(
    "ssh.match-exceptions",
    "No Match block opens passwords again",
    severity=Severity.HIGH,
    required=True,
    role=ROLE,
)
def match_exceptions(host: Judged) -> Verdict:
    sshd = _sshd(host)
    if isinstance(sshd, Verdict):
        return sshd
    found = planner.exceptions(sshd.settings, still_open=True)
    if found:
        return failed("no exception", f"key-only is not global: {found[0]}", evidence=found)
    closed = planner.exceptions(sshd.settings)
    return passed(
        "no exception" if not closed else f"{len(closed)} closed by an earlier `Match all`", evidence=closed
    )


@control(
    "ssh.algorithms",
    "sshd offers no weak algorithm",
    severity=Severity.MEDIUM,
    role=ROLE,
)
def algorithms(host: Judged) -> Verdict:
    sshd = _sshd(host)
    if isinstance(sshd, Verdict):
        return sshd
    gone = planner.removed(host.facts, host.profile)
    if not gone:
        return unknown("the version of openssh-server is not known")
    options = sshd.cases[0].options
    if silent := [r.keyword for r in gone if r.keyword.lower() not in options]:
        return unknown(f"sshd -T does not tell {', '.join(silent)}")
    bad = [told for removal in gone if (told := _weak(removal, options[removal.keyword.lower()]))]
    offered = ",".join(options.get("kexalgorithms", ()))
    if host.profile["ssh_hardening_old_clients"] and not _classic(offered):
        bad.append(f"kexalgorithms lacks {CLASSIC.rstrip('*')}, which old clients need")
    if bad:
        kinds = ", ".join(line.split()[0] for line in bad)
        return failed("none that ssh-audit objects to", f"weak ones among {kinds}", evidence=tuple(bad))
    return passed(f"key exchange by {offered}", evidence=tuple(removal.line for removal in gone))


@control(
    "ssh.cloud-init",
    "cloud-init does not open passwords again",
    severity=Severity.MEDIUM,
    role=ROLE,
)
def cloud_init(host: Judged) -> Verdict:
    if isinstance(host.facts.packages, Unknown):
        return unknown(host.facts.packages)
    if not planner.has_cloud_init(host.facts):
        return skipped("cloud-init is not installed")
    text = host.facts.file(planner.CLOUD_INIT)
    if isinstance(text, Unknown):
        return unknown(text)
    if isinstance(text, Absent):
        return failed("ssh_pwauth: false", f"{planner.CLOUD_INIT} is not there")
    try:
        said = read_yaml(text)
    except yaml.YAMLError as e:
        return failed("ssh_pwauth: false", f"{planner.CLOUD_INIT} is no YAML: {e}")
    if isinstance(said, dict) and said.get("ssh_pwauth") is False:
        return passed("ssh_pwauth: false")
    return failed("ssh_pwauth: false", f"{planner.CLOUD_INIT} does not say so")


def _password_ways(case: SshdCase) -> tuple[str, ...]:
    """Options through which a typed password alone would be enough for this user from this address."""
    values = case.options.get("authenticationmethods", ("any",))
    methods = [way for value in values for way in value.split()]
    if methods and "any" not in methods and all("publickey" in way.split(",") for way in methods):
        return ()
    return tuple(f"{k} {v}" for k in planner.TYPED if (v := case.option(k)) not in (None, "no"))


def _winner(sshd: Sshd, keyword: str) -> str:
    setting = sshd.first(keyword)
    if setting is None:
        return f"{keyword}: no file sets it for everybody, so OpenSSH's default counts"
    return f"{setting.path}:{setting.line}: {keyword} {setting.value}"


def _weak(removal: Removal, effective: tuple[str, ...]) -> str:
    left = removal.left_in(",".join(effective))
    return f"{removal.keyword.lower()} offers {', '.join(left)}: {removal.why}" if left else ""


def _classic(offered: str) -> bool:
    return any(name.startswith(CLASSIC.rstrip("*")) for name in offered.split(","))


def _who(case: SshdCase) -> str:
    return f"{case.user or 'anybody'} from {case.addr or 'anywhere'}"
