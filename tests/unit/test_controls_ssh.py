"""What the controls of sshd find, from recordings."""

from __future__ import annotations

from typing import Any

import pytest
from ssh_hosts import (
    ADA,
    DEBIAN_MAIN,
    DROP_IN,
    HARDENED,
    KEY,
    MAIN,
    ROOT,
    SSHD_ON_22,
    case,
    facts,
    judge,
    profile,
)

from provision.controls import ssh, ssh_access
from provision.controls.model import CONTROLS, Status
from provision.facts.known import Unknown
from provision.planners import ssh_hardening as planner
from provision.planners.ssh_admins import SUDOERS


def hardened(**variables: Any) -> dict[str, Any]:
    """A host as the role leaves it."""
    plan = planner.wanted(facts(operator="ada"), profile(**variables), Unknown("not resolved"))
    root = {"permitrootlogin": "no"} if variables.get("ssh_hardening_root_login") == "no" else {}
    return {
        "files": {MAIN: DEBIAN_MAIN, DROP_IN: plan.files[0].text or ""},
        "cases": [case(**HARDENED, **root), case("ada", **HARDENED, **root)],
        "operator": "ada",
    }


@pytest.mark.parametrize(
    "control",
    [
        ssh.config_valid,
        ssh.password_login,
        ssh.root_login,
        ssh.match_exceptions,
        ssh.algorithms,
        ssh_access.admin_key,
        ssh_access.port,
    ],
)
def test_a_hardened_host_passes(control: Any) -> None:
    assert judge(control, facts(**hardened())).status is Status.PASS


@pytest.mark.parametrize(
    "control",
    [
        ssh.config_valid,
        ssh.password_login,
        ssh.root_login,
        ssh.match_exceptions,
        ssh.algorithms,
        ssh_access.admin_key,
        ssh_access.port,
    ],
)
@pytest.mark.parametrize(
    ("answer", "status"), [({"denied": True}, Status.UNKNOWN), ({"missing": True}, Status.SKIP)]
)
def test_what_was_not_read_is_unknown_and_what_is_not_there_is_skipped(
    control: Any, answer: dict[str, Any], status: Status
) -> None:
    assert judge(control, facts(items={"sshd.effective": answer})).status is status


@pytest.mark.parametrize(
    "variables",
    [
        {"ssh_hardening_root_login": "no"},
        {"ssh_hardening_old_clients": True},
        {"ssh_hardening_admins": [{"name": "bob", "keys": [KEY]}]},
    ],
)
def test_each_variable_changed_on_a_hardened_host_fails_a_control_of_the_role(
    variables: dict[str, Any],
) -> None:
    host = facts(**hardened(), items={f"file:{SUDOERS}": {"missing": True}})
    found = {
        name
        for name, control in CONTROLS.items()
        if control.role == "ssh_hardening" and judge(control.judge, host, **variables).status is Status.FAIL
    }
    assert found


def test_the_way_back_from_no_fails_too() -> None:
    host = facts(**hardened(ssh_hardening_root_login="no"))
    assert judge(ssh.root_login, host, ssh_hardening_root_login="no").status is Status.PASS
    assert judge(ssh.root_login, host).status is Status.FAIL


def test_broken_configuration() -> None:
    host = facts(cases=[case(), case("bob", rc=255, stderr="line 5: Bad configuration option: Foo")])
    verdict = judge(ssh.config_valid, host)
    assert verdict.status is Status.FAIL
    assert "line 5" in verdict.actual
    assert judge(ssh.password_login, host).status is Status.UNKNOWN


def test_passwords_open_by_default_name_user_and_address() -> None:
    verdict = judge(ssh.password_login, facts())
    assert verdict.status is Status.FAIL
    assert verdict.actual == "root from 192.0.2.1: passwordauthentication yes and 1 more"
    assert "OpenSSH's default counts" in verdict.evidence[-1]
    assert not any("kbdinteractive" in line for line in verdict.evidence)


def test_the_file_that_won_is_named() -> None:
    """cloud-init's drop-in beats a line further down in sshd_config."""
    cloud = "/etc/ssh/sshd_config.d/50-cloud-init.conf"
    files = {MAIN: f"{DEBIAN_MAIN}PasswordAuthentication no\n", cloud: "PasswordAuthentication yes\n"}
    verdict = judge(ssh.password_login, facts(files=files))
    assert f"{cloud}:1: passwordauthentication yes" in verdict.evidence


def test_keyboard_interactive_alone_is_a_password_too() -> None:
    host = facts(cases=[case(passwordauthentication="no", kbdinteractiveauthentication="yes")])
    verdict = judge(ssh.password_login, host)
    assert verdict.status is Status.FAIL
    assert "kbdinteractiveauthentication yes" in verdict.actual


def test_one_exception_is_enough() -> None:
    host = facts(
        cases=[case(**HARDENED), case("root", "10.0.0.1", **{**HARDENED, "passwordauthentication": "yes"})]
    )
    verdict = judge(ssh.password_login, host)
    assert verdict.status is Status.FAIL
    assert "root from 10.0.0.1" in verdict.actual


@pytest.mark.parametrize(
    ("methods", "status"),
    [("publickey", Status.PASS), ("publickey,password", Status.PASS), ("publickey password", Status.FAIL)],
)
def test_methods_that_ask_for_a_key_close_passwords(methods: str, status: Status) -> None:
    assert judge(ssh.password_login, facts(cases=[case(authenticationmethods=methods)])).status is status


@pytest.mark.parametrize(
    ("effective", "status"),
    [
        ("without-password", Status.PASS),
        ("prohibit-password", Status.PASS),
        ("forced-commands-only", Status.PASS),
        ("no", Status.PASS),
        ("yes", Status.FAIL),
    ],
)
def test_root_login(effective: str, status: Status) -> None:
    assert judge(ssh.root_login, facts(cases=[case(permitrootlogin=effective)])).status is status


def test_root_login_for_one_address() -> None:
    host = facts(cases=[case(), case("root", "10.0.0.1", permitrootlogin="yes")])
    verdict = judge(ssh.root_login, host)
    assert verdict.status is Status.FAIL
    assert "10.0.0.1" in verdict.actual


MATCH = "Match Address 10.0.0.0/8\n  PasswordAuthentication yes\n"


def test_match_exceptions_are_found_and_closed_by_an_earlier_match_all() -> None:
    verdict = judge(ssh.match_exceptions, facts(files={MAIN: DEBIAN_MAIN + MATCH}))
    assert verdict.status is Status.FAIL
    assert "Match Address 10.0.0.0/8" in verdict.actual
    ours = hardened()["files"][DROP_IN]
    closed = judge(ssh.match_exceptions, facts(files={MAIN: DEBIAN_MAIN + MATCH, DROP_IN: ours}))
    assert closed.status is Status.PASS
    assert "1 closed" in closed.actual


@pytest.mark.parametrize(
    "main",
    [
        f"{MATCH}Match all\n  PasswordAuthentication no\n",
        f"Match all\n  KbdInteractiveAuthentication no\n{MATCH}",
        f"PasswordAuthentication no\n{MATCH}",
    ],
    ids=["too-late", "another-keyword", "not-in-a-match"],
)
def test_what_does_not_close_an_exception(main: str) -> None:
    assert judge(ssh.match_exceptions, facts(files={MAIN: main})).status is Status.FAIL


def test_weak_algorithms_are_named() -> None:
    verdict = judge(ssh.algorithms, facts())
    assert verdict.status is Status.FAIL
    told = "\n".join(verdict.evidence)
    for name in (
        "curve25519-sha256",
        "ecdh-sha2-nistp256",
        "hmac-sha1",
        "umac-64-etm",
        "ecdsa-sha2-nistp256",
    ):
        assert name in told


def test_algorithms_that_sshd_does_not_tell_are_unknown() -> None:
    verdict = judge(ssh.algorithms, facts(cases=[case(macs="")]))
    assert verdict.status is Status.UNKNOWN
    assert "MACs" in verdict.actual


def test_algorithms_of_an_unknown_version_are_unknown() -> None:
    assert judge(ssh.algorithms, facts(openssh="strange")).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("packages", "answer", "status"),
    [
        ((), {"missing": True}, Status.SKIP),
        (("cloud-init",), {"missing": True}, Status.FAIL),
        (("cloud-init",), {"denied": True}, Status.UNKNOWN),
        (("cloud-init",), {"text": planner.CLOUD_TEXT}, Status.PASS),
        (("cloud-init",), {"text": "ssh_pwauth: true\n"}, Status.FAIL),
        (("cloud-init",), {"text": "{"}, Status.FAIL),
    ],
)
def test_cloud_init(packages: tuple[str, ...], answer: dict[str, Any], status: Status) -> None:
    host = facts(packages=packages, items={f"file:{planner.CLOUD_INIT}": answer})
    assert judge(ssh.cloud_init, host).status is status


@pytest.mark.parametrize(
    ("host", "status", "says"),
    [
        ({}, Status.PASS, "root"),
        ({"accounts": [{**ROOT, "keys": 0}], "cases": [case()]}, Status.FAIL, "none"),
        ({"accounts": [{**ROOT, "keys": None}]}, Status.UNKNOWN, "root"),
        ({"accounts": [{**ROOT, "forced_command_keys": 1}]}, Status.FAIL, "none"),
        ({"accounts": [ROOT], "cases": [case(permitrootlogin="no")]}, Status.FAIL, "none"),
        ({"accounts": [ROOT], "cases": [case(pubkeyauthentication="no")]}, Status.FAIL, "none"),
        ({"accounts": [ROOT], "cases": [case(allowusers="ada")]}, Status.FAIL, "none"),
        ({"accounts": [ROOT, ADA], "cases": [case(permitrootlogin="no"), case("ada")]}, Status.PASS, "ada"),
        ({"accounts": [{**ADA, "sudo": "none"}], "cases": [case("ada")]}, Status.FAIL, "none"),
        ({"items": {"accounts": {"timed_out": True}}}, Status.UNKNOWN, "accounts"),
    ],
)
def test_admin_key(host: dict[str, Any], status: Status, says: str) -> None:
    verdict = judge(ssh_access.admin_key, facts(**host))
    assert verdict.status is status
    assert says in verdict.actual


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ({}, Status.PASS),
        ({"cases": [case(port="2222")]}, Status.FAIL),
        ({"sockets": []}, Status.FAIL),
        ({"sockets": [{**SSHD_ON_22, "address": "127.0.0.1"}]}, Status.FAIL),
        ({"sockets": [{**SSHD_ON_22, "program": None, "unit": None}]}, Status.UNKNOWN),
        ({"sockets": [{**SSHD_ON_22, "program": "systemd", "unit": "ssh.socket"}]}, Status.PASS),
        ({"items": {"sockets": {"timed_out": True}}}, Status.UNKNOWN),
    ],
)
def test_port(host: dict[str, Any], status: Status) -> None:
    assert judge(ssh_access.port, facts(**host)).status is status


def test_the_fixed_names_are_there() -> None:
    names = {"config-valid", "password-login", "root-login", "match-exceptions", "admin-key", "port"}
    assert {f"ssh.{name}" for name in names} <= CONTROLS.keys()
