"""commit_confirm with rules that only the kernel holds, and as separate operations, on a lab host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plays import STATE, Controller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provision.lab import LabHost

FILE = "/etc/nftables.d/deny.nft"
BY_HAND = f"sh /{STATE}/commit-confirm.sh"


def rules(accept: str) -> str:
    return (
        "add table inet deny\ndelete table inet deny\ntable inet deny {\n"
        "  chain input { type filter hook input priority 0; policy drop;\n"
        f"    ct state established,related accept; {accept}\n  }}\n}}\n"
    )


def change(accept: str, **more: Any) -> dict[str, Any]:
    arguments = {
        "name": "default deny",
        "seconds": 8,
        "files": [{"path": FILE, "text": rules(accept)}],
        "loaded": [{"nft": "inet deny"}],
        "validate": [{"command": f"nft -c -f {FILE}"}],
        "load": [f"nft -f {FILE}"],
        **more,
    }
    return {"gpu_provision.host.commit_confirm": arguments}


def operation(which: str, **more: Any) -> dict[str, Any]:
    return {"gpu_provision.host.commit_confirm": {"operation": which, **more}}


@pytest.fixture
def control(lab_host: LabHost, tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path, lab_host)
    # A rule set of somebody else's, which nobody may touch.
    controller.shell(
        "nft add table ip theirs; nft add chain ip theirs note; nft add rule ip theirs note drop"
    )
    yield controller
    assert controller.login().holds, "the administrator gets in after everything"
    controller.shell(f"nft flush ruleset; rm -rf /etc/nftables.d /{STATE}")


def test_rules_that_shut_out_go_back_to_those_before(control: Controller) -> None:
    before = control.shell("nft list ruleset")
    told = control.run(change("tcp dport 2222 accept"))
    assert told["state"] == "reverted", told
    assert "after the change a fresh login does not work" in told["msg"]
    assert control.shell("nft list ruleset; ls -d /etc/nftables.d 2>/dev/null || true") == before
    assert control.run(change("tcp dport 22 accept"))["state"] == "done"
    good = control.shell("nft list ruleset")
    assert "policy drop" in good
    told = control.run(change("tcp dport 2222 accept"))
    assert told["state"] == "reverted", told
    assert control.shell("nft list ruleset") == good


def test_armed_for_other_tasks(control: Controller) -> None:
    """Arm, change, prove and keep are tasks of their own; by hand it goes as well."""
    before = control.shell("nft list ruleset")
    kept = {"paths": [FILE], "loaded": [{"nft": "inet deny"}], "seconds": 60}
    armed = control.run(operation("arm", name="by tasks", **kept))
    assert (armed["state"], armed["changed"]) == ("armed", True)
    assert f"armed {armed['id']}: by tasks, by " in control.shell(f"{BY_HAND} status")
    status = control.run(operation("status"))
    assert (status["state"], status["armed"]["id"]) == ("armed", armed["id"])
    control.shell(f"mkdir -p /etc/nftables.d; echo '{rules('tcp dport 22 accept')}' >{FILE}; nft -f {FILE}")
    told = control.run(operation("confirm", id=armed["id"]))
    assert told["state"] == "done", told
    assert "policy drop" in control.shell("nft list ruleset")
    late = control.run(operation("confirm", id=armed["id"]))
    assert late["failed"]
    assert "nothing waits for this confirmation: the change is confirmed" in late["msg"]
    control.shell("nft delete table inet deny; rm -r /etc/nftables.d")
    control.run(operation("arm", name="by tasks", **kept))
    control.shell(f"mkdir -p /etc/nftables.d; echo '{rules('')}' >{FILE}; nft -f {FILE}; {BY_HAND} revert")
    assert control.shell("nft list ruleset; ls -A /etc/nftables.d 2>/dev/null || true") == before
    control.run(operation("arm", name="by tasks", **kept))
    control.shell(f"nft add table inet deny; {BY_HAND} confirm")
    assert "table inet deny" in control.shell("nft list ruleset")
