"""Failures that a person reads: what is wrong, where, and what to do. Each knows its exit code."""

from __future__ import annotations


class Failure(Exception):
    """It was judged or tried and does not hold: a failed role, a refusal for safety, a lock not freed."""

    exit_code = 1

    def __init__(self, says: str, *, host: str | None = None, do: str = "") -> None:
        self.says, self.host, self.do = says, host, do
        super().__init__(self.__str__())

    @property
    def reason(self) -> str:
        """What is wrong and what to do, for a place that names the host already."""
        return self.says + (f"\n  {self.do}" if self.do else "")

    def __str__(self) -> str:
        return f"{self.host}: {self.reason}" if self.host else self.reason


class Usage(Failure):
    """The call or its input is wrong; nothing was done."""

    exit_code = 2


class Interrupted(Failure):
    """Ctrl-C; the message says what that means for the hosts."""

    exit_code = 130


class Unreached(Failure):
    """A host could not be judged or reached: no route, refused login, changed host key, no Python."""

    exit_code = 3
