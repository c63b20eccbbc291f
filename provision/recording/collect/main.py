"""Asks all questions side by side and prints the answers."""

import base64
import errno
import fcntl
import glob
import json
import os
import selectors
import signal
import sys
import time
import zlib

from .asking import program
from .background import Builtins
from .command import Command
from .conditions import WHEN, hanging
from .ending import TICK, survivors
from .readonly import confine

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Tuple


MARK = "@gpu-provision-recording"


def expand(items: "List[Dict[str, Any]]") -> "List[Dict[str, Any]]":
    """Glob items become one item a file, and one that lists the files there are."""
    result = []
    for item in items:
        if "glob" not in item:
            result.append(item)
            continue
        found = sorted(path for path in glob.glob(item["glob"]) if not os.path.isdir(path))[:200]
        folder = os.path.dirname(item["glob"])
        denied = os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK) and "*" not in folder
        result.append(
            {"name": "glob:" + item["glob"], "answer": {"denied": True} if denied else {"paths": found}}
        )
        known = {each["name"] for each in result}
        for path in found:
            if "file:" + path not in known:
                result.append(
                    {"name": "file:" + path, "builtin": "file", "args": [path], "seconds": item["seconds"]}
                )
    return result


def plan(
    items: "List[Dict[str, Any]]", answers: "Dict[str, Dict[str, Any]]", token: str
) -> "List[List[Any]]":
    """Lanes of jobs, in the order of the items: what stands in one lane runs one after another."""
    lanes: "Dict[str, List[Any]]" = {}
    groups: "Dict[str, List[Dict[str, Any]]]" = {}
    for item in items:
        if "answer" in item:
            answers[item["name"]] = item["answer"]
        elif "argv" in item:
            lanes.setdefault(item.get("lane") or item["name"], []).append(item)
        else:
            lane = item.get("lane") or ("files" if item["builtin"] == "file" else item["name"])
            groups.setdefault(lane, []).append(item)
            lanes.setdefault(lane, [])
    for lane, units in groups.items():
        lanes[lane] = [Builtins(units, token)]
    return list(lanes.values())


def collect(
    items: "List[Dict[str, Any]]", seconds: float, workers: int, token: str
) -> "Dict[str, Dict[str, Any]]":
    """The answers to all items, within `seconds`."""
    answers: "Dict[str, Dict[str, Any]]" = {}
    end = time.time() + seconds
    poll = selectors.DefaultSelector()
    waiting = plan(expand(items), answers, token)
    running: "List[Tuple[Any, List[Any]]]" = []

    def stop(*_: "Any") -> None:
        for each in running:
            each[0].kill("stopped")
        os._exit(1)

    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM):
        signal.signal(signum, stop)
    signal.alarm(int(seconds) + 15)  # whatever happens, nothing of ours stays on the host
    while waiting or running:
        while waiting and len(running) < workers:
            lane = waiting.pop(0)
            job = _start_next(lane, answers, poll, token)
            if job is not None:
                running.append((job, lane))
        for key, _ in poll.select(TICK):
            job, stream = key.data
            job.read(stream, poll)
        still = []
        for job, lane in running:
            answer = job.step(poll)
            if answer is None:
                still.append((job, lane))
                continue
            if isinstance(job, Builtins):
                answers.update(job.answers)
            else:
                answers[job.name] = answer
                if answer.get("timed_out") and lane:
                    for item in lane:
                        answers[item["name"]] = {"not_asked": "%s did not answer" % job.name}
                    del lane[:]
            following = _start_next(lane, answers, poll, token) if lane else None
            if following is not None:
                still.append((following, lane))
        running = still
        if time.time() > end:
            _give_up(waiting, running, answers, poll, seconds)
            break
    signal.alarm(0)
    return answers


def _start_next(
    lane: "List[Any]", answers: "Dict[str, Dict[str, Any]]", poll: "selectors.BaseSelector", token: str
) -> "Any":
    """Start the next job of a lane; items that need not or must not be asked are answered on the way."""
    while lane:
        job = lane.pop(0)
        if isinstance(job, Builtins):
            job.start(poll)
            return job
        name, argv = job["name"], job["argv"]
        if program(argv[0]) is None:
            answers[name] = {"argv": argv, "missing": True}
            continue
        reason = WHEN[job["when"]]() if job.get("when") else None
        if reason is not None:
            answers[name] = {"not_asked": reason}
            continue
        if job.get("root") and os.geteuid() != 0:
            answers[name] = {"argv": argv, "denied": True}
            continue
        name_of = os.path.basename(argv[0])
        stuck = hanging(name_of) if job.get("never_twice") else None
        if stuck is not None:
            says = "an earlier %s still hangs in the kernel (pid %d, for %d s)" % (
                name_of,
                stuck["pid"],
                stuck["seconds"],
            )
            for item in [job, *lane]:
                answers[item["name"]] = {"not_asked": says, "left_behind": [stuck]}
            del lane[:]
            return None
        command = Command(job, token)
        try:
            command.start(poll)
        except OSError as e:
            answers[name] = (
                {"denied": True}
                if e.errno in (errno.EACCES, errno.EPERM)
                else {"not_asked": "it could not be run: %s" % e}
            )
            continue
        return command
    return None


def _give_up(
    waiting: "List[List[Any]]",
    running: "List[Tuple[Any, List[Any]]]",
    answers: "Dict[str, Dict[str, Any]]",
    poll: "selectors.BaseSelector",
    seconds: float,
) -> None:
    """The time for the whole is over: end what runs, say of the rest that it was not asked."""
    late = {"not_asked": "the time limit for the whole recording (%d s) was reached" % seconds}
    for job, lane in running:
        job.kill("time")
        if isinstance(job, Builtins):
            answers.update(job.answers)
            for unit in job.units:
                answers[unit["name"]] = dict(late)
        else:
            answers[job.name] = {
                "argv": job.argv,
                "rc": None,
                "timed_out": True,
                "seconds": round(time.time() - job.began, 3),
            }
            left = survivors(job.process.pid, job.token)
            if left:
                answers[job.name]["left_behind"] = left
        for item in lane:
            answers[item["name"]] = dict(late)
    for lane in waiting:
        for job in lane:
            for unit in job.units if isinstance(job, Builtins) else [job]:
                answers[unit["name"]] = dict(late)


def main(questions: "Dict[str, Any]", token: str) -> None:
    """Answer `questions` ({"items", "seconds", "workers"}) and print the framed document."""
    began = time.time()
    os.umask(0o077)
    try:
        os.chdir("/")
    except OSError:
        pass
    confine()
    workers = questions.get("workers") or max(4, min(12, 2 * (os.cpu_count() or 2)))
    answers = collect(questions["items"], questions["seconds"], workers, token)
    version = "Python %d.%d.%d\n" % sys.version_info[:3]
    answers["python"] = {"argv": [sys.executable, "-V"], "rc": 0, "stdout": version, "stderr": ""}
    document = {"as_root": os.geteuid() == 0, "seconds": round(time.time() - began, 3), "items": answers}
    text = base64.b64encode(zlib.compress(json.dumps(document).encode(), 3)).decode()
    # A banner before us may have left its last line open, so the frame starts with a newline of its own.
    frame = "\n%s %s %d\n%s\n%s %s end\n" % (MARK, token, len(text), text, MARK, token)
    data = frame.encode()
    sys.stdout.flush()
    flags = fcntl.fcntl(1, fcntl.F_GETFL)
    fcntl.fcntl(1, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    while data:
        data = data[os.write(1, data) :]
    # A child that cannot be ended must not make the interpreter wait for it.
    os._exit(0)
