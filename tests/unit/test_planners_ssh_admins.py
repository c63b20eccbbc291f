"""Which administrators a host is given, which it is not, and what the control finds of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ssh_hosts import ADA, KEY, KEY_2, PRINT, PRINT_2, ROOT, case, facts, judge, profile

from provision.controls import ssh_access
from provision.controls.model import Status
from provision.facts.known import Unknown
from provision.plan.changes import changes
from provision.planners import ssh_admins
from provision.planners import ssh_hardening as planner
from provision.planners.ssh_admins import SUDOERS, SUDOERS_HEAD
from provision.recording import names

if TYPE_CHECKING:
    from provision.facts import Facts

ADMIN = {"name": "ada", "keys": [KEY], "sudo": True}
RULE = f"{SUDOERS_HEAD}ada ALL=(ALL:ALL) NOPASSWD: ALL\n"
HERE = {**ADA, "fingerprints": [PRINT], "bound_fingerprints": []}


def host(account: dict[str, Any] | None = HERE, sudoers: str | None = RULE, **more: Any) -> Facts:
    """A host with root, the account and the rule; None leaves one of them out."""
    items = {
        f"file:{SUDOERS}": {"missing": True} if sudoers is None else {"text": sudoers},
        "accounts.other": {"list": [{"name": "daemon", "uid": 1}]},
        **more.pop("items", {}),
    }
    people = more.pop("accounts", [ROOT] if account is None else [ROOT, account])
    return facts(accounts=people, packages=more.pop("packages", ("sudo",)), items=items, **more)


def wanted(on: Facts, *admins: dict[str, Any], **variables: Any) -> planner.SshWanted:
    chosen = profile(ssh_hardening_admins=list(admins), **variables)
    return planner.wanted(on, chosen, Unknown("not resolved"))


def test_a_new_account_gets_keys_and_a_rule() -> None:
    plan = wanted(host(None, None), ADMIN)
    assert plan.refused is None
    [admin] = plan.administrators
    assert (admin.name, admin.create, admin.missing, admin.sudo) == ("ada", True, (KEY,), True)
    assert plan.sudoers is not None
    assert (plan.sudoers.text, plan.sudoers.mode) == (RULE, "0440")
    assert "." not in SUDOERS.rpartition("/")[2], "sudo skips files with a dot in their name"
    assert plan.steps == (
        "create the account ada, with a home and without a password",
        f"add to ada the key {PRINT} ada@desk",
    )
    assert any("whoever holds such a key is root" in why.says for why in plan.why)
    assert SUDOERS in names.FILES


def test_an_account_that_is_there_only_gets_what_it_lacks() -> None:
    [admin] = wanted(host(), {**ADMIN, "keys": [KEY, KEY_2]}).administrators
    assert (admin.create, admin.missing) == (False, (KEY_2,))
    assert wanted(host(), ADMIN).steps == ()


def test_no_sudo_no_rule_and_a_missing_sudo_is_installed() -> None:
    plain = {**ADMIN, "sudo": False}
    assert wanted(host(), plain).sudoers == ssh_admins.File(SUDOERS, None, "0440")
    assert wanted(host(packages=()), plain).packages == ()
    plan = wanted(host(packages=()), ADMIN)
    assert plan.packages == ("sudo",)
    assert any(change.what == "install sudo" for change in changes(plan, host(packages=())))


SYSTEM = {**HERE, "uid": 101}


@pytest.mark.parametrize(
    ("on", "says"),
    [
        (host(SYSTEM), "ada is an account of the system here (uid 101)"),
        (host(None, items={"accounts.other": {"list": [{"name": "ada", "uid": 12}]}}), "no shell to log in"),
        (host(None, items={"accounts.other": {"timed_out": True}}), "is not known"),
        (host({**HERE, "expired": True}), "`chage -E -1 ada`"),
        (host(ADA), "which keys ada has could not be read"),
        (host({**HERE, "fingerprints": [], "bound_fingerprints": [PRINT]}), "with options before it"),
        (host(None, cases=[case(allowusers="root bob")]), "`AllowUsers root bob` in sshd's files would not"),
        (host(None, cases=[case(allowgroups="root")]), "`AllowGroups root`"),
        (host(cases=[case(), case("ada", denyusers="ada")]), "`DenyUsers ada`"),
        (host(None, cases=[case(authorizedkeysfile="none")]), "AuthorizedKeysFile none"),
        (host({**HERE, "locked_by": "!"}, cases=[case(usepam="no")]), "`usermod -p '*' ada`"),
        (host(items={"accounts": {"timed_out": True}}), "which accounts there are is not known"),
    ],
)  # fmt: skip
def test_refused(on: Facts, says: str) -> None:
    assert says in (wanted(on, ADMIN).refused or "")


@pytest.mark.parametrize(
    "on",
    [
        host({**HERE, "locked_by": "!"}),
        host({**HERE, "locked_by": "!"}, cases=[case(usepam="yes")]),
        host(None, cases=[case(allowusers="root ada")]),
        host(cases=[case(allowgroups="root sudo")]),
    ],
    ids=["locked", "locked-with-pam", "allowed-user", "allowed-group"],
)
def test_not_refused(on: Facts) -> None:
    assert wanted(on, ADMIN).refused is None


def test_nobody_takes_the_rule_from_under_themselves() -> None:
    assert "ada is logged in and is root by" in (wanted(host(operator="ada")).refused or "")
    assert "ada is logged in" in (wanted(host(operator="ada"), {**ADMIN, "sudo": False}).refused or "")
    assert wanted(host(operator="ada"), ADMIN).refused is None
    assert wanted(host()).refused is None


def test_closing_root_says_how_the_first_administrator_comes_to_be() -> None:
    no = {"ssh_hardening_root_login": "no"}
    told = wanted(host(None, None), ADMIN, **no).refused or ""
    assert "prohibit-password first, which makes ada one; then log in as ada" in told
    assert "Name one in ssh_hardening_admins" in (wanted(host(None, None), **no).refused or "")
    assert "Log in as ada" in (wanted(host(), ADMIN, **no).refused or "")
    assert wanted(host(operator="ada"), ADMIN, **no).refused is None


@pytest.mark.parametrize(
    ("on", "admins", "status", "says"),
    [
        (host(), [ADMIN], Status.PASS, "ada"),
        (host(None, None), [], Status.SKIP, "no administrator"),
        (host(), [], Status.FAIL, "not as the profile has it"),
        (host(None, None), [ADMIN], Status.FAIL, "ada is no account"),
        (host(), [{**ADMIN, "keys": [KEY, KEY_2]}], Status.FAIL, "ada lacks 1 of 2 keys"),
        (host({**HERE, "fingerprints": [PRINT_2]}), [ADMIN], Status.FAIL, "ada lacks 1 of 1 keys"),
        (host({**HERE, "sudo": "none"}), [ADMIN], Status.FAIL, "may not become root"),
        (host({**HERE, "sudo": "passwd"}), [ADMIN], Status.FAIL, "without a password"),
        (host({**HERE, "sudo": None}), [ADMIN], Status.UNKNOWN, "what sudo gives ada"),
        (host(), [{**ADMIN, "sudo": False}], Status.FAIL, "not as the profile has it"),
        (host(sudoers=f"{RULE}#\n"), [ADMIN], Status.FAIL, "not as the profile has it"),
        (host(items={f"file:{SUDOERS}": {"denied": True}}), [ADMIN], Status.UNKNOWN, "sudoers.d"),
        (host(items={"accounts": {"timed_out": True}}), [ADMIN], Status.UNKNOWN, "accounts"),
        (host(items={"sshd.effective": {"missing": True}}), [ADMIN], Status.SKIP, "no sshd"),
    ],
)
def test_the_control(on: Facts, admins: list[dict[str, Any]], status: Status, says: str) -> None:
    verdict = judge(ssh_access.administrators, on, ssh_hardening_admins=admins)
    assert verdict.status is status
    assert says in verdict.actual


def test_a_locked_account_administers_where_pam_asks_nobody_about_the_lock() -> None:
    """Cloud images make their user that way."""
    locked = {**ADA, "locked_by": "!"}
    people = [{**ROOT, "keys": 0}, locked]
    with_pam = facts(accounts=people, cases=[case(), case("ada", usepam="yes")])
    without = facts(accounts=people, cases=[case(), case("ada", usepam="no")])
    assert judge(ssh_access.admin_key, with_pam).status is Status.PASS
    assert judge(ssh_access.admin_key, without).status is Status.FAIL
