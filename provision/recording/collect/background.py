"""The job that is builtins of this program, in a child process of its own, because they may hang too."""

import json
import os
import selectors
import signal
import time

from .answers import answer_builtin
from .asking import TOKEN_VARIABLE
from .ending import TICK, kill_group, survivors

MYPY = False
if MYPY:
    from typing import Any, Dict, List, Optional


class Builtins:
    """Items that this program answers itself, one after another in a child process that may hang."""

    def __init__(self, units: "List[Dict[str, Any]]", token: str) -> None:
        self.units, self.token = units, "%s:%s" % (token, units[0]["name"])
        self.name = units[0]["name"]
        self.answers: "Dict[str, Dict[str, Any]]" = {}
        self.buffer = b""
        self.pid = -1
        self.fd = -1

    def start(self, poll: "selectors.BaseSelector") -> None:
        inside, outside = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(outside)
        os.close(outside)
        self.fd = inside
        os.set_blocking(inside, False)
        poll.register(inside, selectors.EVENT_READ, (self, ""))
        self.deadline = time.time() + self.units[0]["seconds"]

    def _child(self, outside: int) -> None:
        status = 1
        try:
            os.setsid()
            for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM):
                signal.signal(signum, signal.SIG_DFL)
            signal.alarm(0)
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                # Nothing that hangs in here may keep the SSH channel open.
                os.dup2(nothing, descriptor)
            os.environ[TOKEN_VARIABLE] = self.token
            with os.fdopen(outside, "wb") as pipe:
                for unit in self.units:
                    answer = answer_builtin(unit)
                    pipe.write(json.dumps([unit["name"], answer]).encode() + b"\n")
                    pipe.flush()
            status = 0
        finally:
            os._exit(status)

    def read(self, _: str, poll: "selectors.BaseSelector") -> None:
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return
        if not data:
            self._close(poll)
            return
        self.buffer += data
        while b"\n" in self.buffer:
            line, self.buffer = self.buffer.split(b"\n", 1)
            name, answer = json.loads(line.decode())
            self.answers[name] = answer
            self.units = [unit for unit in self.units if unit["name"] != name]
            if self.units:
                self.deadline = time.time() + self.units[0]["seconds"]

    def _close(self, poll: "selectors.BaseSelector") -> None:
        if self.fd >= 0:
            poll.unregister(self.fd)
            os.close(self.fd)
            self.fd = -1

    def kill(self, _: str) -> None:
        kill_group(self.pid)

    def step(self, poll: "selectors.BaseSelector") -> "Optional[Dict[str, Any]]":
        """None while it works; an empty answer at the end (the answers lie in `answers`)."""
        if self.fd < 0:
            try:
                ended, _ = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                ended = self.pid
            if not ended:
                return None
            if self.units:
                unit = self.units.pop(0)
                self.answers[unit["name"]] = {"not_asked": "the collector failed at it"}
                return self._again(poll)
            return {}
        if time.time() <= self.deadline:
            return None
        unit = self.units.pop(0)
        kill_group(self.pid)
        answer: "Dict[str, Any]" = {"rc": None, "timed_out": True, "seconds": unit["seconds"]}
        self._close(poll)
        time.sleep(TICK)
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pass
        left = survivors(self.pid, self.token)
        if left:
            answer["left_behind"] = left
        self.answers[unit["name"]] = answer
        return self._again(poll)

    def _again(self, poll: "selectors.BaseSelector") -> "Optional[Dict[str, Any]]":
        self.buffer = b""
        if not self.units:
            return {}
        self.start(poll)
        return None
