"""The job that is a command of the host."""

import errno
import os
import selectors
import subprocess
import time

from . import readonly
from .asking import NICE_ENVIRONMENT, TOKEN_VARIABLE, denial, program
from .ending import GRACE, kill_group, survivors
from .mask import decoded
from .packages import installed_matching, kernel_packages

MYPY = False
if MYPY:
    from typing import Any, Callable, Dict, List, Optional, Set


class Command:
    """One item that is a command, in a session of its own."""

    def __init__(self, item: "Dict[str, Any]", token: str) -> None:
        self.item = item
        self.name: str = item["name"]
        self.token = "%s:%s" % (token, self.name)
        self.limit: int = item.get("limit", 512 * 1024)
        self.out: "Dict[str, bytes]" = {"stdout": b"", "stderr": b""}
        self.cut = False
        self.open: "Set[str]" = set()
        self.killed = self.lingers = 0.0
        self.reason = ""
        self.argv = self._arguments()

    def _arguments(self) -> "List[str]":
        argv = []
        for index, word in enumerate(self.item["argv"]):
            if word == "@kernel-packages":
                argv += kernel_packages()
            elif word.startswith("@installed:"):
                argv += installed_matching(word.split(":", 1)[1])
            else:
                argv.append(word)
            if index == 0 and not readonly.confined and os.geteuid() == 0:
                argv += self.item.get("unless_read_only", [])
        return argv

    def start(self, poll: "selectors.BaseSelector") -> None:
        """Raises OSError where the program cannot be run."""
        self.began = time.time()
        self.deadline = self.began + self.item["seconds"]
        before: "Optional[Callable[[], None]]" = None
        if readonly.confined and self.item.get("host_mounts"):
            before = readonly.back_to_host_mounts
        elif self.item.get("as_nobody") and os.geteuid() == 0:
            before = readonly.as_nobody
        path = program(self.argv[0])
        if path is None:
            raise OSError(errno.ENOENT, "not found")
        self.process = subprocess.Popen(
            [path, *self.argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(NICE_ENVIRONMENT, **{TOKEN_VARIABLE: self.token}),
            cwd="/",
            start_new_session=True,
            preexec_fn=before,
        )
        for stream in ("stdout", "stderr"):
            pipe = getattr(self.process, stream)
            os.set_blocking(pipe.fileno(), False)
            poll.register(pipe, selectors.EVENT_READ, (self, stream))
            self.open.add(stream)

    def read(self, stream: str, poll: "selectors.BaseSelector") -> None:
        pipe = getattr(self.process, stream)
        try:
            data = os.read(pipe.fileno(), 65536)
        except BlockingIOError:
            return
        if not data:
            self._close(stream, poll)
            return
        room = (self.limit if stream == "stdout" else 16384) - len(self.out[stream])
        self.out[stream] += data[:room] if room > 0 else b""
        if len(data) > room:
            self.cut = self.cut or stream == "stdout"
            if stream == "stdout":
                self.kill("endless")  # more than anybody reads: do not let it print for ever

    def _close(self, stream: str, poll: "selectors.BaseSelector") -> None:
        if stream in self.open:
            self.open.discard(stream)
            pipe = getattr(self.process, stream)
            poll.unregister(pipe)
            pipe.close()

    def kill(self, reason: str) -> None:
        if not self.killed:
            self.killed, self.reason = time.time(), reason
        kill_group(self.process.pid)

    def step(self, poll: "selectors.BaseSelector") -> "Optional[Dict[str, Any]]":
        """The answer, once there is one."""
        now = time.time()
        ended = self._ended()
        if ended and self.open and not self.killed:
            # It ended, but a child of its keeps the pipes open: take what is there and go.
            self.lingers = self.lingers or now
            if now - self.lingers > GRACE:
                self.kill("lingers")
        if not ended and not self.killed and now > self.deadline:
            self.kill("time")
        if self.killed and (ended or now - self.killed > GRACE):
            return self._finish(poll, ended)
        if ended and not self.open:
            return self._finish(poll, True)
        return None

    def _ended(self) -> bool:
        """Whether it ended. It is not reaped yet: until then its number is given to no other, so that the
        group can still be killed by it."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _finish(self, poll: "selectors.BaseSelector", ended: bool) -> "Dict[str, Any]":
        for stream in list(self.open):
            self._close(stream, poll)
        if ended:
            kill_group(self.process.pid)  # whatever it left in the background
            self.process.wait()
        answer: "Dict[str, Any]" = {"argv": self.argv, "seconds": round(time.time() - self.began, 3)}
        if self.reason == "time":
            answer.update(rc=None, timed_out=True, seconds=round(self.deadline - self.began, 3))
            left = survivors(self.process.pid, self.token)
            if left:
                answer["left_behind"] = left
            return answer
        answer.update(rc=self.process.returncode if self.reason != "endless" else None)
        answer.update(stdout=decoded(self.out["stdout"]), stderr=decoded(self.out["stderr"]))
        if self.cut:
            answer["cut"] = True
        if answer["rc"] and denial(answer["stderr"] + answer["stdout"][:4096]):
            answer["denied"] = True
        return answer
