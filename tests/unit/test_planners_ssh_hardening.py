"""What the role ssh_hardening wants of hosts, and which hosts it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ssh_hosts import (
    ADA,
    DEBIAN_MAIN,
    DROP_IN,
    KEY,
    MAIN,
    ROOT,
    SSH_SERVICE,
    SSHD_ON_22,
    case,
    facts,
    profile,
)

from provision.facts.known import Unknown
from provision.planners import ssh_hardening as planner
from provision.planners.ssh_admission import shut_out
from provision.planners.ssh_algorithms import openssh_version, removals
from provision.recording import names

if TYPE_CHECKING:
    from provision.facts import Facts
    from provision.planners.wanted import Wanted


def wanted(host: Facts, **variables: Any) -> Wanted:
    return planner.wanted(host, profile(**variables), Unknown("not resolved"))


def text_of(host: Facts, **variables: Any) -> str:
    files = {file.path: file.text for file in wanted(host, **variables).files}
    assert files[DROP_IN] is not None
    return files[DROP_IN] or ""


def outside(text: str) -> list[str]:
    """Settings for everybody, without those of the Match block."""
    return [line for line in text.split("Match all")[0].splitlines() if line and not line.startswith("#")]


def test_a_debian_host_gets_one_drop_in_and_nothing_else() -> None:
    plan = wanted(facts())
    assert [file.path for file in plan.files] == [DROP_IN]
    assert plan.first_lines == ()
    assert plan.refused is None
    lines = outside(text_of(facts()))
    assert {"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitEmptyPasswords no"} <= {
        *lines
    }
    assert "PermitRootLogin prohibit-password" in lines
    assert [unit.name for unit in plan.units] == ["ssh.service"], "its other name is not a second unit"


SOCKET = "Id=ssh.socket\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"


def test_sshd_is_reloaded_and_behind_a_socket_restarted() -> None:
    assert wanted(facts()).reload == ("systemctl try-reload-or-restart ssh.service",)
    assert wanted(facts(units=f"{SSH_SERVICE}\n{SOCKET}")).reload == ("systemctl try-restart ssh.service",)
    assert wanted(facts(units=SOCKET)).reload == ()


def test_the_match_block_closes_exceptions_and_leaves_pubkey_to_them() -> None:
    block = text_of(facts()).split("Match all")[1].split("\n")
    assert [line.strip() for line in block if line.strip()] == [
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitEmptyPasswords no",
    ]


def test_every_path_is_recorded() -> None:
    plan = wanted(facts(packages=("cloud-init",), files={MAIN: "PermitRootLogin yes\n"}))
    for path in [*(file.path for file in plan.files), *(line.path for line in plan.first_lines)]:
        assert path in names.FILES


@pytest.mark.parametrize(
    ("main", "others"),
    [
        ("PermitRootLogin yes\nInclude /etc/ssh/sshd_config.d/*.conf\n", {}),
        ("UsePAM yes\n", {}),
        ("UsePAM yes\nPasswordAuthentication yes", {}),
        ("Match User bob\n  PasswordAuthentication yes\nInclude /etc/ssh/sshd_config.d/*.conf\n", {}),
        (DEBIAN_MAIN, {"/etc/ssh/sshd_config.d/00-aaa.conf": "PasswordAuthentication yes\n"}),
        (
            DEBIAN_MAIN,
            {"/etc/ssh/sshd_config.d/00-aaa.conf": "Match User bob\n  PasswordAuthentication yes\n"},
        ),
    ],
    ids=[
        "include-last",
        "no-include",
        "no-last-line-end",
        "include-in-match",
        "before-ours",
        "match-before-ours",
    ],
)
def test_where_something_else_has_the_first_word_the_drop_in_is_included_on_top(
    main: str, others: dict[str, str]
) -> None:
    plan = wanted(facts(files={MAIN: main, **others}))
    assert [(line.path, line.first_line) for line in plan.first_lines] == [(MAIN, f"Include {DROP_IN}")]
    text = text_of(facts(files={MAIN: main, **others}))
    mended = {MAIN: f"Include {DROP_IN}\n{main}", **others, DROP_IN: text}
    assert wanted(facts(files=mended)).first_lines == (), "it is enough once"


def test_later_files_need_no_include() -> None:
    cloud = {"/etc/ssh/sshd_config.d/50-cloud-init.conf": "PasswordAuthentication yes\n"}
    assert wanted(facts(files={MAIN: DEBIAN_MAIN, **cloud})).first_lines == ()


def test_the_plan_of_a_hardened_host_is_the_same() -> None:
    before = facts()
    text = text_of(before)
    after = facts(files={MAIN: DEBIAN_MAIN, DROP_IN: text}, cases=[case(passwordauthentication="no")])
    assert wanted(after).files == wanted(before).files


def test_cloud_init_is_told_where_it_is_installed() -> None:
    files = {file.path: file.text for file in wanted(facts(packages=("cloud-init",))).files}
    assert "ssh_pwauth: false" in (files[planner.CLOUD_INIT] or "")
    assert planner.CLOUD_INIT not in {file.path for file in wanted(facts()).files}


@pytest.mark.parametrize("theirs", ["no", "forced-commands-only"])
def test_a_host_that_is_stricter_about_root_stays_so(theirs: str) -> None:
    host = facts(files={MAIN: f"{DEBIAN_MAIN}PermitRootLogin {theirs}\n"})
    assert not any(line.startswith("PermitRootLogin") for line in outside(text_of(host)))
    assert any(theirs in why.says for why in wanted(host).why)


def test_our_own_earlier_no_does_not_count_as_the_hosts() -> None:
    ours = text_of(facts(operator="ada"), ssh_hardening_root_login="no")
    host = facts(files={MAIN: DEBIAN_MAIN, DROP_IN: ours})
    assert "PermitRootLogin prohibit-password" in outside(text_of(host))


def test_old_keyword_is_closed_where_sshd_knows_it() -> None:
    old = facts(cases=[case(challengeresponseauthentication="yes")], openssh="1:8.4p1-5")
    assert "ChallengeResponseAuthentication no" in outside(text_of(old))
    assert "ChallengeResponseAuthentication no" not in outside(text_of(facts()))


def test_old_servers_are_checked_by_the_old_keyword() -> None:
    old = case(kbdinteractiveauthentication="", challengeresponseauthentication="yes")
    lines = wanted(facts(cases=[old], openssh="1:8.4p1-5")).checks[1].lines
    assert "challengeresponseauthentication no" in lines
    assert "kbdinteractiveauthentication no" not in lines


def test_a_match_on_the_routing_domain_is_given_one() -> None:
    host = facts(files={MAIN: f"{DEBIAN_MAIN}Match RDomain mgmt\n  X11Forwarding no\n"})
    assert "rdomain=none" in wanted(host).checks[1].command


def test_checks_ask_about_every_recorded_user_and_address() -> None:
    host = facts(cases=[case(), case("bob", "10.1.2.3")])
    checks = wanted(host).checks
    assert checks[0].command == "sshd -t"
    assert [c.command for c in checks[1:]] == [
        "sshd -T -C addr=192.0.2.1,host=192.0.2.1,laddr=127.0.0.1,lport=22,user=root",
        "sshd -T -C addr=10.1.2.3,host=10.1.2.3,laddr=127.0.0.1,lport=22,user=bob",
    ]
    assert "pubkeyauthentication yes" in checks[1].lines, "for the one who is logged in"
    assert "pubkeyauthentication yes" not in checks[2].lines


REFUSALS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"cases": [case(rc=255, stderr="line 5: Directive 'UseDNS' is not allowed within a Match block")]},
        {},
        "line 5",
    ),
    ({"cases": [case(pubkeyauthentication="")]}, {}, "did not tell pubkeyauthentication"),
    ({"files": {"/opt/sshd_config": "UsePAM yes\n"}}, {}, "/opt/sshd_config instead of"),
    ({"openssh": "1:7.9p1-10+deb10u2"}, {}, "8.2"),
    ({"cases": [case(authenticationmethods="publickey,keyboard-interactive")]}, {}, "more than a key"),
    ({"cases": [case(authenticationmethods="password")]}, {}, "more than a key"),
    (
        {"units": SSHD_ON_22["unit"] and "Id=ssh.service\nLoadState=loaded\nActiveState=inactive\n"},
        {},
        "no service",
    ),
    ({"items": {"units": {"missing": True}}}, {}, "systemd does not run"),
    ({"items": {"units": {"not_asked": "because"}}}, {}, "not known"),
    ({"items": {"sshd.effective": {"missing": True}}}, {}, "no sshd"),
    ({"items": {"sshd.effective": {"denied": True}}}, {}, "could not be read"),
    ({"cases": [case(port="2222")]}, {}, "port 22, and its files say 2222"),
    ({"cases": [case("ada", allowusers="bob")], "operator": "ada"}, {}, "AllowUsers bob"),
    ({"cases": [case("ada", allowgroups="wheel")], "operator": "ada"}, {}, "AllowGroups wheel"),
    ({"cases": [case("ada", denyusers="a*")], "operator": "ada"}, {}, "DenyUsers a*"),
    ({"accounts": [{**ROOT, "keys": 0}]}, {}, "root has no key"),
    (
        {"accounts": [{**ROOT, "keys": 0, "keys_refused": ["/root: mode 0777, owner root"]}]},
        {},
        "sshd ignores what is there: /root: mode 0777",
    ),
    ({"accounts": [ROOT]}, {"ssh_hardening_root_login": "no"}, "no other account has a key and sudo"),
    (
        {"accounts": [ROOT, {**ADA, "forced_command_keys": 1}]},
        {"ssh_hardening_root_login": "no"},
        "no other account",
    ),
    ({"accounts": [ROOT, {**ADA, "sudo": "none"}]}, {"ssh_hardening_root_login": "no"}, "no other account"),
    ({"accounts": [ROOT, {**ADA, "expired": True}]}, {"ssh_hardening_root_login": "no"}, "no other account"),
    ({}, {"ssh_hardening_root_login": "no"}, "logs in as root. Log in as ada"),
    ({}, {"ssh_hardening_root_login": False}, "logs in as root. Log in as ada"),
    (
        {"items": {"accounts": {"timed_out": True}}},
        {"ssh_hardening_root_login": "no"},
        "who else could get in",
    ),
]


@pytest.mark.parametrize(("host", "variables", "says"), REFUSALS, ids=[r[2][:30] for r in REFUSALS])
def test_refused_and_nothing_wanted(host: dict[str, Any], variables: dict[str, Any], says: str) -> None:
    plan = wanted(facts(**host), **variables)
    assert plan.refused is not None
    assert says in plan.refused
    assert (plan.files, plan.first_lines, plan.checks) == ((), (), ())


@pytest.mark.parametrize(
    "host",
    [
        {"cases": [case(authenticationmethods="publickey")]},
        {"cases": [case(authenticationmethods="publickey,password publickey")]},
        {"cases": [case("ada", allowusers="ada@192.0.2.*")], "operator": "ada"},
        {"cases": [case("ada", allowusers="ada@192.0.2.0/24")], "operator": "ada"},
        {"cases": [case("ada", allowgroups="wheel sudo")], "operator": "ada"},
        {"cases": [case("bob", denyusers="bob")], "operator": "ada"},
        {"accounts": [{**ROOT, "keys": 0}], "cases": [case(trustedusercakeys="/etc/ssh/ca.pub")]},
        {"accounts": [{**ROOT, "keys": 0, "authorities": 1}]},
        {"accounts": [{**ROOT, "keys": None}]},
        {"sockets": [{**SSHD_ON_22, "port": 2022}], "cases": [case(port="2022")]},
        {"sockets": [SSHD_ON_22, {**SSHD_ON_22, "port": 6010, "unit": "session-3.scope"}]},
        {"units": "Id=ssh.socket\nLoadState=loaded\nActiveState=active\n", "cases": [case(port="2222")]},
    ],
)
def test_not_refused(host: dict[str, Any]) -> None:
    assert wanted(facts(**host)).refused is None


def test_another_administrator_may_close_root() -> None:
    text = text_of(facts(operator="ada"), ssh_hardening_root_login="no")
    assert "PermitRootLogin no" in outside(text)
    assert "    PermitRootLogin no\n" in text.split("Match all")[1], "no Match block may open it again"


@pytest.mark.parametrize(
    ("main", "closed"),
    [
        ("Match Address 10.0.0.0/8\n    PermitRootLogin yes\n", True),
        ("Match Address 10.0.0.0/8\n    PermitRootLogin prohibit-password\n", False),
        (
            "Match User root\n    PermitRootLogin no\nMatch Address 10.0.0.0/8\n    PermitRootLogin yes\n",
            False,
        ),
        ("PermitRootLogin no\nMatch Address 10.0.0.0/8\n    PermitRootLogin yes\n", False),
    ],
)
def test_a_match_block_that_opens_root_is_closed_where_nothing_else_opens(main: str, closed: bool) -> None:
    inside = text_of(facts(files={MAIN: f"{DEBIAN_MAIN}{main}"})).split("Match all")[1]
    assert ("    PermitRootLogin prohibit-password\n" in inside) is closed


@pytest.mark.parametrize(
    "variables",
    [
        {"ssh_hardening_root_login": "no"},
        {"ssh_hardening_old_clients": True},
        {"ssh_hardening_admins": [{"name": "bob", "keys": [KEY]}]},
    ],
)
def test_each_variable_changes_what_is_wanted(variables: dict[str, Any]) -> None:
    host = facts(operator="ada", items={"accounts.other": {"list": []}})
    assert wanted(host, **variables) != wanted(host)
    assert wanted(host, **variables).refused is None


def test_old_servers_keep_a_key_exchange() -> None:
    assert any("curve25519" in p for p in removals((9, 2), old_clients=False)[0].patterns)
    assert not any("curve25519" in p for p in removals((8, 4), old_clients=False)[0].patterns)
    assert not any("curve25519" in p for p in removals((9, 2), old_clients=True)[0].patterns)


def test_unknown_version_leaves_the_algorithms() -> None:
    host = facts(openssh="strange")
    assert not any(line.startswith(("Kex", "MACs")) for line in outside(text_of(host)))
    assert any("left as they are" in why.says for why in wanted(host).why)


@pytest.mark.parametrize(
    ("package", "version"), [("1:9.2p1-2+deb12u10", (9, 2)), ("8.7p1-38.el9", (8, 7)), ("unknown", None)]
)
def test_openssh_version(package: str, version: tuple[int, int] | None) -> None:
    assert openssh_version(package) == version


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"allowusers": ("ada", "bob")}, None),
        ({"allowusers": ("ad? bob",)}, None),
        ({"allowusers": ("ada@10.0.0.0/8",)}, "AllowUsers ada@10.0.0.0/8"),
        ({"allowusers": ("*@2001:db8::/32",)}, "AllowUsers *@2001:db8::/32"),
        ({"denyusers": ("ada@192.0.2.7",)}, "DenyUsers ada@192.0.2.7"),
        ({"denyusers": ("[a]da",)}, None),
        ({"denygroups": ("s*",)}, "DenyGroups s*"),
        ({"allowgroups": ("adm", "sudo")}, None),
        ({"allowgroups": ("adm",)}, "AllowGroups adm"),
    ],
)
def test_shut_out(options: dict[str, tuple[str, ...]], expected: str | None) -> None:
    assert shut_out(options, "ada", "192.0.2.7", ("ada", "sudo")) == expected


def test_unknown_groups_shut_nobody_out() -> None:
    assert shut_out({"allowgroups": ("adm",)}, "ada", "192.0.2.7", None) is None


@pytest.mark.parametrize(
    ("seconds", "refused"), [(4, True), (5, False), (3600, False), (3601, True), (-1, True)]
)
def test_how_long_a_host_waits_has_bounds(seconds: int, refused: bool) -> None:
    """How a run behaves leaves no trace on a host, so the plan judges the value itself and not the host."""
    said = wanted(facts(), ssh_hardening_confirm_seconds=seconds).refused
    assert (said is not None) == refused
    assert said is None or "from 5 to 3600 seconds" in said
