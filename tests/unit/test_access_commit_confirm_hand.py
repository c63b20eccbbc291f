"""commit_confirm as a person on the host sees it, and as a play arms it for other tasks."""

from __future__ import annotations

import subprocess

import pytest
from commit_confirm_host import Host, file, host

from plugins.module_utils.commit_confirm import arming, change, ending, state

__all__ = ["host"]


def hand(host: Host, *words: str) -> tuple[int, str]:
    done = subprocess.run(["sh", str(host.places.script), *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_status_names_what_is_armed_by_whom_and_when_it_ends(host: Host) -> None:
    host.apply(files=[file(host.etc / "main", "new\n")], name="key-only\nSSH", holder="ada@desk")
    status, said = hand(host, "status")
    assert (status, said) == (0, "gpu-provision: armed aa: key-only SSH, by ada@desk\n")
    assert "list-timers --no-pager gpu-provision-revert-aa.timer" in host.calls.read_text()
    assert host.stage() == "armed", "looking changes nothing"
    host.revert("timer", "aa")
    assert hand(host, "status") == (0, "gpu-provision: reverted aa: key-only SSH, by ada@desk (timer)\n")


def test_a_confirmation_by_hand_keeps_the_change(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    host.apply(files=[file(host.etc / "main", "new\n")])
    status, said = hand(host, "confirm")
    assert (status, said) == (0, "gpu-provision: kept aa: a test, by me\n")
    assert host.stage() == "done"
    assert {p: text for p, (_, text) in host.tree().items()} == {"main": b"new\n"}
    assert list(host.places.units.rglob("*.service")) == []
    assert "systemctl stop gpu-provision-revert-aa.timer" in host.calls.read_text()
    assert host.revert("timer", "aa") == 0
    assert (host.etc / "main").read_text() == "new\n"


@pytest.mark.parametrize("words", [["confirm", "bb"], ["revert", "bb"]])
def test_another_change_is_not_meant(host: Host, words: list[str]) -> None:
    host.apply(files=[file(host.etc / "main", "new\n")])
    assert (hand(host, *words)[0] == 0) == (words[0] == "revert")
    assert host.stage() == "armed"
    assert (host.places.units / state.BOOT_UNIT).exists()


def test_a_confirmation_that_comes_late_says_so(host: Host) -> None:
    host.apply(files=[file(host.etc / "main", "new\n")])
    host.revert("timer", "aa")
    assert hand(host, "confirm") == (1, "gpu-provision: nothing waits for a confirmation\n")
    assert host.stage() == "reverted"


@pytest.mark.parametrize("words", [[], ["hand"], ["--help"]])
def test_anything_else_shows_the_usage(host: Host, words: list[str]) -> None:
    host.apply()
    status, said = hand(host, *words)
    assert status == 2
    assert "status | confirm [ID] | revert [ID]" in said
    assert host.stage() == "armed"


def test_armed_for_others_what_they_change_is_put_back_and_reloaded(host: Host) -> None:
    main = host.etc / "main"
    main.write_text("old\n")
    reloaded = host.root / "reloaded"
    left = change.arm_only(host.places, host.request(paths=[str(main)], reload=[f"touch {reloaded}"]))
    assert 50 < left <= 60
    assert not reloaded.exists()
    main.write_text("theirs\n")
    assert host.revert("timer", "aa") == 0
    assert main.read_text() == "old\n"
    assert reloaded.exists()


def test_armed_for_others_and_confirmed(host: Host) -> None:
    main = host.etc / "main"
    main.write_text("old\n")
    change.arm_only(host.places, host.request(paths=[str(main)]))
    main.write_text("theirs\n")
    assert ending.confirm(host.places, "aa") == "done"
    assert {p: text for p, (_, text) in host.tree().items()} == {"main": b"theirs\n"}


def test_arming_twice_under_one_name_is_a_lost_line(host: Host) -> None:
    change.arm_only(host.places, host.request())
    with pytest.raises(arming.Stopped, match="line was lost") as stopped:
        change.arm_only(host.places, host.request())
    assert stopped.value.state == "reverted"


def test_the_wall_clock_decides_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that is left, who came last and what was forgotten hold with the clock set to any time."""
    host.apply(files=[file(host.etc / "main", "new\n")])
    for now in (0.0, 4e9):
        monkeypatch.setattr("time.time", lambda now=now: now)
        found = state.status(host.places)
        assert 50 < found["armed"]["remaining"] <= 60
        with pytest.raises(arming.Stopped, match=r"[56]\d s left"):
            change.apply(host.places, host.request(id="bb"))
    assert "--on-active=60s" in host.calls.read_text()
    assert "--on-calendar" not in host.calls.read_text()


def test_a_command_that_the_timer_finds_at_work_is_waited_for_and_undone(host: Host) -> None:
    """What it does last has to be undone, too, even where whoever began it is gone."""
    main = host.etc / "main"
    main.write_text("old\n")
    change.arm_only(host.places, host.request(paths=[str(main)]))
    with state.locked(host.places) as lock:
        late = subprocess.Popen(["sh", "-c", f"sleep 0.5; echo late >{main}"], pass_fds=(lock,))
    assert host.revert("timer", "aa") == 0
    assert late.poll() is not None
    assert main.read_text() == "old\n"


def test_after_the_timer_no_command_is_begun(host: Host) -> None:
    ran = host.root / "ran"
    take_back = f"sh {host.places.script} timer aa"
    with pytest.raises(arming.Stopped, match="the timer took the state back") as stopped:
        host.apply(validate=[{"command": take_back, "lines": []}], load=[f"touch {ran}"])
    assert stopped.value.state == "reverted"
    assert not ran.exists()
