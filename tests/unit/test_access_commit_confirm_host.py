"""The host's side of commit_confirm on a host made of directories: what it keeps, and what it puts back."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from commit_confirm_host import Host, file, host

from plugins.module_utils.commit_confirm import arming, change, ending, files, snapshot, state, timer

__all__ = ["host"]


def test_differences_are_empty_once_text_and_mode_are_right(host: Host) -> None:
    path = host.etc / "a.conf"
    assert files.differences([file(path, "x\n", "0600")])[0]["before"] is None
    path.write_text("x\n")
    path.chmod(0o644)
    assert files.differences([file(path, "x\n", "0600")])[0]["mode_before"] == "0644"
    path.chmod(0o600)
    assert files.differences([file(path, "x\n", "0600")]) == []
    assert files.differences([file(path, "x\n")]) == [], "without a mode the file keeps its own"


def test_a_first_line_leaves_the_rest_byte_for_byte(host: Host) -> None:
    path = host.etc / "main"
    rest = b"Port 22\r\n# caf\xe9 without a last line end"
    path.write_bytes(rest)
    path.chmod(0o640)
    wanted = {"path": str(path), "text": None, "first_line": "Include /x"}
    host.apply(files=[wanted])
    assert path.read_bytes() == b"Include /x\n" + rest
    assert path.stat().st_mode & 0o7777 == 0o640
    assert files.differences([wanted]) == []
    host.revert("timer", "aa")
    assert path.read_bytes() == rest


def test_the_owner_is_kept_or_set(host: Host) -> None:
    path = host.etc / "a"
    path.write_text("x")
    assert files.differences([{**file(path, "x"), "owner": None}]) == []
    with pytest.raises(snapshot.SnapshotError, match="no account gpu-provision-nobody"):
        files.differences([{**file(path, "x"), "owner": "gpu-provision-nobody"}])


def test_confirmed_change_stays_and_leaves_no_traces_beside_the_files(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    assert host.apply(files=[file(host.etc / "main", "new\n")], reload=["true"]) > 50
    assert ending.confirm(host.places, "aa") == "done"
    assert host.tree() == {"main": ((host.etc / "main").stat().st_mode, b"new\n")}
    assert list(host.places.units.rglob("*.service")) == []
    assert "systemctl stop gpu-provision-revert-aa.timer" in host.calls.read_text()
    assert state.status(host.places)["last"]["state"] == "done"
    assert state.status(host.places)["state"] == "idle"


def test_a_file_that_nobody_wrote_needs_no_writing_to_be_put_back(host: Host) -> None:
    """A file that refuses to be written (chattr +i) must not keep the host in `reverting` for that."""
    stays, other = host.etc / "stays", host.etc / "other"
    stays.write_text("as it was\n")
    other.write_text("old\n")
    host.apply(files=[file(other, "new\n")], paths=[str(stays)])
    before = stays.stat()
    assert host.revert("timer", "aa") == 0
    assert host.stage() == "reverted"
    assert (stays.stat().st_ino, stays.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert host.tree().keys() == {"stays", "other"}, "nothing is left beside it either"
    assert other.read_text() == "old\n"


def test_a_file_whose_mode_alone_was_changed_is_put_back(host: Host) -> None:
    path = host.etc / "main"
    path.write_text("same\n")
    path.chmod(0o600)
    host.apply(paths=[str(path)])
    path.chmod(0o644)
    assert host.revert("timer", "aa") == 0
    assert path.stat().st_mode & 0o7777 == 0o600


def test_a_second_run_is_not_told_that_what_goes_back_can_still_be_confirmed(host: Host) -> None:
    host.apply(files=[file(host.etc / "main", "new\n")])
    with pytest.raises(arming.Stopped, match="s left to confirm it"):
        host.apply(id="bb")
    host.places.of("armed", "aa").rename(host.places.of("reverting", "aa"))
    with pytest.raises(arming.Stopped, match="not all of it is put back, see"):
        host.apply(id="bb")


def test_revert_puts_back_content_mode_owner_time_and_absence(host: Host) -> None:
    main = host.etc / "main"
    main.write_bytes(b"old without a last line end, and \xff")
    main.chmod(0o640)
    os.utime(main, (1000, 1000))
    gone = host.etc / "gone"
    gone.write_text("will be removed\n")
    before = host.tree()
    host.apply(
        files=[
            file(main, "new\n"),
            file(host.etc / "d" / "e" / "fresh", "x"),
            file(gone, None),
        ]
    )
    assert host.tree().keys() == {"main", "d", "d/e", "d/e/fresh"} | {
        f".{n}.gpu-provision-aa" for n in ("main", "gone")
    }
    assert host.revert("timer", "aa") == 0
    assert host.tree() == before
    assert main.stat().st_mtime == 1000
    assert host.stage() == "reverted"
    assert state.status(host.places)["last"]["why"] == "timer"
    assert list(host.places.units.rglob("*.service")) == []


def test_revert_twice_is_the_same_as_once(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    host.apply(files=[file(host.etc / "main", "new\n")])
    assert host.revert("timer", "aa") == 0
    (host.etc / "main").write_text("changed later by its owner\n")
    assert host.revert("timer", "aa") == 0
    assert host.revert("boot") == 0
    assert (host.etc / "main").read_text() == "changed later by its owner\n"


def test_a_revert_that_was_cut_short_is_finished_at_boot(host: Host) -> None:
    for name in ("a", "b"):
        (host.etc / name).write_text(f"old {name}\n")
    host.apply(files=[file(host.etc / n, "new\n") for n in ("a", "b")])
    host.places.of("armed", "aa").rename(host.places.of("reverting", "aa"))
    snapshot.beside(str(host.etc / "a"), "aa").rename(host.etc / "a")
    assert state.status(host.places)["state"] == "reverting"
    assert host.revert("boot") == 0
    assert {n: (host.etc / n).read_text() for n in ("a", "b")} == {"a": "old a\n", "b": "old b\n"}
    assert host.stage() == "reverted"


def test_the_revert_script_of_another_change_takes_nothing(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    host.apply(files=[file(host.etc / "main", "new\n")])
    assert host.revert("timer", "bb") == 0
    assert (host.etc / "main").read_text() == "new\n"
    assert host.stage() == "armed"
    assert (host.places.units / state.BOOT_UNIT).exists()


def test_confirmation_after_the_timer_reports_that_it_is_put_back(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    host.apply(files=[file(host.etc / "main", "new\n")])
    host.revert("timer", "aa")
    assert ending.confirm(host.places, "aa") == "reverted"
    assert (host.etc / "main").read_text() == "old\n"


def test_confirm_and_timer_at_once_one_of_them_wins(host: Host) -> None:
    for number in range(12):
        (host.etc / "main").write_text("old\n")
        transaction = f"r{number}"
        change.apply(host.places, host.request(id=transaction, files=[file(host.etc / "main", "new\n")]))
        racing = subprocess.Popen(["sh", str(host.places.script), "timer", transaction])
        truth = ending.confirm(host.places, transaction)
        racing.wait()
        assert truth == state.state_of(host.places, transaction)
        assert (host.etc / "main").read_text() == {"done": "new\n", "reverted": "old\n"}[truth]


def test_second_run_is_refused_and_told_who_holds_the_host(host: Host) -> None:
    host.apply(files=[file(host.etc / "one", "x")])
    before = host.tree()
    with pytest.raises(arming.Stopped, match=r"me is changing a test and has [56]\d s left") as stopped:
        change.apply(host.places, host.request(id="bb", holder="you", files=[file(host.etc / "two", "y")]))
    assert stopped.value.state == "untouched"
    assert host.tree() == before
    assert (host.places.units / state.BOOT_UNIT).exists(), "the first one still needs it"
    assert host.stage() == "armed"


@pytest.mark.parametrize("told", [{"armed_at": -1000.0}, {"boot": "another-boot"}])
def test_what_its_timer_forgot_is_put_back_before_the_next_change(host: Host, told: dict[str, Any]) -> None:
    (host.etc / "main").write_text("old\n")
    host.apply(files=[file(host.etc / "main", "new\n")])
    about = host.places.of("armed", "aa") / "about"
    about.write_text(json.dumps({**json.loads(about.read_text()), **told}))
    change.apply(host.places, host.request(id="bb", files=[file(host.etc / "other", "x")]))
    assert (host.etc / "main").read_text() == "old\n"
    assert state.state_of(host.places, "bb") == "armed"


def test_no_timer_no_change(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMING", "1")
    (host.etc / "main").write_text("old\n")
    before = host.tree()
    with pytest.raises(arming.Stopped, match="could not be armed: systemd-run") as stopped:
        host.apply(files=[file(host.etc / "main", "new\n")])
    assert stopped.value.state == "untouched"
    assert host.tree() == before
    assert state.status(host.places) == {"state": "idle", "armed": None, "last": None}
    assert list(host.places.units.rglob("*.service")) == []


def test_without_systemd_nothing_is_touched(host: Host) -> None:
    host.places.systemd.rmdir()
    with pytest.raises(arming.Stopped, match="systemd does not run here") as stopped:
        host.apply(files=[file(host.etc / "main", "new\n")])
    assert stopped.value.state == "untouched"
    assert not host.places.state.exists()


def test_failed_validation_reverts_and_reloads_nothing(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    before = host.tree()
    ran = host.root / "reloaded"
    with pytest.raises(arming.Stopped, match="`false` failed") as stopped:
        host.apply(
            files=[file(host.etc / "main", "new\n")],
            validate=[{"command": "false", "lines": []}],
            reload=[f"touch {ran}"],
        )
    assert stopped.value.state == "reverted"
    assert host.tree() == before
    assert not ran.exists(), "a daemon that never saw the change is not reloaded"


def test_a_line_that_the_check_does_not_print_reverts(host: Host) -> None:
    check = {"command": "echo PasswordAuthentication   YES", "lines": ["passwordauthentication no"]}
    with pytest.raises(arming.Stopped, match="does not say `passwordauthentication no`"):
        host.apply(files=[file(host.etc / "main", "new\n")], validate=[check])
    assert host.stage() == "reverted"
    check["lines"] = ["passwordauthentication yes"]
    change.apply(host.places, host.request(id="bb", validate=[check]))
    assert state.state_of(host.places, "bb") == "armed"


def test_failed_reload_puts_back_and_reloads_the_old_state(host: Host) -> None:
    main = host.etc / "main"
    main.write_text("old\n")
    seen = host.root / "seen"
    reload = f"sh -c 'cat {main} >>{seen}; grep -q old {main}'"
    with pytest.raises(arming.Stopped, match="failed: exit status 1") as stopped:
        host.apply(files=[file(main, "new\n")], reload=[reload])
    assert stopped.value.state == "reverted"
    assert seen.read_text() == "new\nold\n"


def test_a_module_that_runs_twice_reverts(host: Host) -> None:
    """Ansible sends a module again after a lost line; the first may have come any distance."""
    (host.etc / "main").write_text("old\n")
    host.apply(files=[file(host.etc / "main", "new\n")])
    with pytest.raises(arming.Stopped, match="the line was lost") as stopped:
        host.apply(files=[file(host.etc / "main", "new\n")])
    assert stopped.value.state == "reverted"
    assert (host.etc / "main").read_text() == "old\n"


@pytest.mark.parametrize(("check", "result"), [("true", "reverted"), ("false", "reverting")])
def test_what_cannot_be_reloaded_is_restarted_if_its_old_files_are_good(
    host: Host, check: str, result: str
) -> None:
    main = host.etc / "main"
    main.write_text("old\n")
    host.tool("sleep", "#!/bin/sh\n")
    # The check passes while the change is made; what it says later is about the old files.
    later = f"sh -c 'grep -q new {main} || {check}'"
    with pytest.raises(arming.Stopped) as stopped:
        host.apply(
            files=[file(main, "new\n")],
            reload=["false"],
            units=["ssh.service"],
            validate=[{"command": later, "lines": []}],
        )
    assert stopped.value.state == result
    assert ("systemctl restart ssh.service" in host.calls.read_text()) == (check == "true")
    assert main.read_text() == "old\n"


def test_a_stopped_unit_is_started_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.apply(files=[file(host.etc / "main", "new\n")], units=["ssh.service"])
    monkeypatch.setenv("ACTIVE", "failed")
    monkeypatch.setenv("ENABLED", "disabled")
    monkeypatch.setenv("START", "0")
    assert host.revert("timer", "aa") == 0
    called = host.calls.read_text()
    assert "systemctl reset-failed ssh.service\nsystemctl start ssh.service" in called
    assert "systemctl enable ssh.service" in called


def test_what_cannot_be_put_back_stays_named_and_is_tried_at_the_next_boot(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer, "fire", lambda *_: None)
    main = host.etc / "main"
    main.write_text("old\n")
    host.apply(files=[file(main, "new\n")], reload=["true"])
    reload = host.places.of("armed", "aa") / "reload"
    reload.write_text("false\n")
    host.tool("sleep", "#!/bin/sh\n")
    assert host.revert("timer", "aa") == 1
    assert main.read_text() == "old\n", "the files are put back even where the reload fails"
    assert host.stage() == "reverting"
    assert (host.places.units / state.BOOT_UNIT).exists()
    assert host.revert("boot") == 0
    assert host.stage() == "reverted"
    assert not (host.places.units / state.BOOT_UNIT).exists()


def test_a_run_killed_while_arming_is_swept_up(host: Host) -> None:
    (host.etc / "main").write_text("old\n")
    before = host.tree()
    host.places.state.mkdir()
    killed = host.places.of("new", "kk")
    killed.mkdir()
    snapshot.take(killed, "kk", [str(host.etc / "main")])
    assert host.tree() != before
    timer.write_units(host.places)
    assert host.revert("timer", "kk") == 0
    assert host.tree() == before
    assert not killed.exists()
    assert list(host.places.units.rglob("*.service")) == []


def test_a_file_behind_a_link_is_changed_there(host: Host) -> None:
    (host.etc / "real").write_text("old\n")
    (host.etc / "link").symlink_to("real")
    host.apply(files=[file(host.etc / "link", "new\n")])
    assert (host.etc / "real").read_text() == "new\n"
    assert (host.etc / "link").is_symlink()
    host.revert("timer", "aa")
    assert (host.etc / "real").read_text() == "old\n"


@pytest.mark.parametrize("path", ["relative", "/etc/a\tb", "/etc"])
def test_paths_that_cannot_be_kept_are_refused(host: Host, path: str) -> None:
    with pytest.raises(arming.Stopped) as stopped:
        host.apply(paths=[path])
    assert stopped.value.state == "untouched"


def test_revert_of_whatever_is_armed(host: Host) -> None:
    assert ending.revert_all(host.places) == {"changed": False, "ids": [], "state": "untouched"}
    host.apply(files=[file(host.etc / "main", "new\n")])
    assert ending.revert_all(host.places) == {"changed": True, "ids": ["aa"], "state": "reverted"}
    assert state.status(host.places)["last"]["why"] == "asked"
    assert not (host.etc / "main").exists()


def test_by_hand_whatever_is_armed_is_put_back_and_reloaded(host: Host) -> None:
    reloaded = host.root / "reloaded"
    host.apply(files=[file(host.etc / "main", "new\n")], reload=[f"touch {reloaded}"])
    reloaded.unlink()
    assert host.revert("revert") == 0
    assert not (host.etc / "main").exists()
    assert reloaded.exists()


def test_timer_takes_back_before_the_files_are_written(host: Host) -> None:
    request = host.request(files=[file(host.etc / "main", "new\n")])
    arming.arm(host.places, request)
    host.revert("timer", "aa")
    with pytest.raises(arming.Stopped, match="the timer took the state back") as stopped:
        change.write(host.places, request)
    assert stopped.value.state == "reverted"
    assert not (host.etc / "main").exists()
