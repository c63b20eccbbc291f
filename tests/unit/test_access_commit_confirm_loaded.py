"""What commit_confirm keeps of the kernel's state: rule sets are files here, and their tools are scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from commit_confirm_host import Host, file, host

from plugins.module_utils.commit_confirm import arming, change, loaded, snapshot, state

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["host"]

# nft as far as it matters here: one file a table; it loads a whole text, or nothing of it.
NFT = """#!/bin/sh
cd "$RULES" || exit 1
check=
[ "$1" != -c ] || { check=1; shift; }
case "$1 $2" in
"list tables") ls | sed 's/_/ /; s/^/table /' ;;
"list table") cat "$3_$4" ;;
"list ruleset") cat -- * 2>/dev/null || : ;;
"-f -")
    text=$(cat)
    case $text in *broken*) echo "Error: syntax error" >&2; exit 1 ;; esac
    [ -z "$check" ] || exit 0
    printf '%s\\n' "$text" | while read -r word rest; do
        case "$word $rest" in
        "flush ruleset") rm -f -- * ;;
        delete*) rm "$(echo "${rest#table }" | tr ' ' _)" ;;
        add*) touch "$(echo "${rest#table }" | tr ' ' _)" ;;
        table*) name=$(echo "$rest" | cut -d' ' -f1,2 | tr ' ' _); echo "$word $rest" >"$name" ;;
        esac
    done ;;
esac
"""
IPTABLES = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
case "$(basename "$0") $*" in
iptables\\ --version) echo "iptables v1.8.9 (legacy)" ;;
iptables-save*) cat "$RULES/v4" 2>/dev/null || : ;;
*--test) grep -q COMMIT ;;
iptables-restore*) cat >"$RULES/v4" ;;
esac
"""


@pytest.fixture
def rules(host: Host, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for what the kernel holds."""
    kernel = host.root / "kernel"
    kernel.mkdir()
    monkeypatch.setenv("RULES", str(kernel))
    for name in ("nft", "iptables", "iptables-save", "iptables-restore"):
        host.tool(name, NFT if name == "nft" else IPTABLES)
    return kernel


def held(rules: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in rules.iterdir()}


def load(text: str, rules: Path) -> str:
    """A command that loads a table; the rules have a name each."""
    (rules.parent / "new").write_text(text)
    return f"sh -c 'nft -f - <{rules.parent}/new'"


NEW = "delete table inet deny\ntable inet deny new\n"


@pytest.mark.parametrize("kept", ["inet deny", "ruleset"])
@pytest.mark.parametrize("there", [True, False])
def test_a_loaded_table_is_put_back_or_taken_away(host: Host, rules: Path, kept: str, there: bool) -> None:
    (rules / "ip_foreign").write_text("table ip foreign\n")
    if there:
        (rules / "inet_deny").write_text("table inet deny old\n")
    before = held(rules)
    host.apply(loaded=[{"nft": kept}], load=[load(NEW if there else NEW[23:], rules)])
    assert held(rules)["inet_deny"] == "table inet deny new\n"
    assert host.revert("timer", "aa") == 0
    assert held(rules) == before
    assert host.stage() == "reverted"


def test_rules_are_put_back_after_services_and_reloads_had_their_say(host: Host, rules: Path) -> None:
    (rules / "inet_deny").write_text("table inet deny old\n")
    flush = "sh -c 'rm -f \"$RULES\"/*'"
    host.apply(loaded=[{"nft": "inet deny"}], reload=[flush])
    assert held(rules) == {}
    assert host.revert("timer", "aa") == 0
    assert held(rules) == {"inet_deny": "table inet deny old\n"}


def test_what_was_never_loaded_is_not_put_back(host: Host, rules: Path) -> None:
    """A rule that somebody else adds meanwhile is no affair of a change that stopped at its files."""
    with pytest.raises(arming.Stopped):
        host.apply(
            loaded=[{"nft": "inet deny"}],
            validate=[{"command": "sh -c 'echo theirs >$RULES/inet_deny; false'", "lines": []}],
            load=["true"],
        )
    assert held(rules) == {"inet_deny": "theirs\n"}


def test_after_a_boot_the_services_load_what_the_old_files_say(host: Host, rules: Path) -> None:
    host.apply(loaded=[{"nft": "inet deny"}], load=[load("table inet deny new\n", rules)])
    host.places.boot_id.write_text("another-boot\n")
    assert host.revert("boot") == 0
    assert held(rules) == {"inet_deny": "table inet deny new\n"}, "a new kernel is left alone"


def test_after_a_soft_reboot_the_kernel_still_has_the_new_rules(host: Host, rules: Path) -> None:
    host.apply(loaded=[{"nft": "inet deny"}], load=[load("table inet deny new\n", rules)])
    assert host.revert("boot") == 0
    assert held(rules) == {}


def test_iptables_is_put_back_with_its_counters(host: Host, rules: Path) -> None:
    text = "*filter\n:INPUT ACCEPT [7:1]\nCOMMIT\n"
    (rules / "v4").write_text(text)
    host.apply(loaded=[{"iptables": "filter"}], load=["sh -c 'echo closed >$RULES/v4'"])
    assert host.revert("timer", "aa") == 0
    assert held(rules) == {"v4": text}
    assert "iptables-restore -c -w 10\n" in host.calls.read_text()


def test_a_table_that_iptables_had_not_loaded_is_opened(host: Host, rules: Path) -> None:
    host.apply(loaded=[{"iptables": "raw"}], load=["sh -c 'echo closed >$RULES/v4'"])
    assert host.revert("timer", "aa") == 0
    assert held(rules)["v4"] == "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"


def test_commands_of_ones_own(host: Host) -> None:
    value = host.root / "value"
    own = {"save": f"cat {value}", "restore": f"tee {value}", "absent": f"rm {value}"}
    host.apply(loaded=[own], load=[f"sh -c 'echo new >{value}'"])
    assert host.revert("timer", "aa") == 0
    assert not value.exists()
    value.write_text("old")
    change.apply(host.places, host.request(id="bb", loaded=[own], load=[f"sh -c 'echo new >{value}'"]))
    assert host.revert("timer", "bb") == 0
    assert value.read_text() == "old"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"nft": "inet deny"}, r"could not be put back \(nft inet deny\): Error: syntax error"),
        ({"nft": "deny"}, "neither `FAMILY TABLE` nor `ruleset`"),
        ({"ip6tables": "filter"}, "there is no ip6tables-save on this host"),
        ({"save": "false", "restore": "true"}, "`false` failed"),
        ({"save": "/no/such", "restore": "true"}, "No such file"),
    ],
)
def test_what_could_not_be_put_back_is_refused(
    host: Host, rules: Path, entry: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loaded.shutil.which
    monkeypatch.setattr(
        loaded.shutil, "which", lambda name, **more: None if name == "ip6tables-save" else real(name, **more)
    )
    (rules / "inet_deny").write_text("table inet deny broken for nft\n")
    before = (host.tree(), held(rules))
    with pytest.raises(arming.Stopped, match=says) as stopped:
        host.apply(files=[file(host.etc / "a", "x")], loaded=[entry], load=["true"])
    assert stopped.value.state == "untouched"
    assert (host.tree(), held(rules)) == before
    assert state.status(host.places)["state"] == "idle"


def test_a_rule_set_that_cannot_be_loaded_back_stays_named(
    host: Host, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.tool("sleep", "#!/bin/sh\n")
    host.apply(loaded=[{"nft": "inet deny"}], load=[load("table inet deny new\n", rules)])
    kept = host.places.of("armed", "aa") / "loaded.0"
    text = kept.read_text()
    kept.write_text("broken")
    assert host.revert("timer", "aa") == 1
    assert host.stage() == "reverting"
    (host.places.of("reverting", "aa") / "loaded.0").write_text(text)
    assert host.revert("revert") == 0
    assert held(rules) == {}


def test_a_tool_that_hangs_is_no_reason_to_wait_for_ever(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded, "SECONDS", 0.2)
    with pytest.raises(snapshot.SnapshotError, match="did not end within"):
        loaded.keep({"save": "sleep 5", "restore": "true"})
