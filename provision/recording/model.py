"""A recording: the raw answers to all items of one host at one time. Nothing in it is interpreted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "gpu-provision/recording/1"


class RecordingError(ValueError):
    """A document that is no recording; the message says what is wrong with it."""


@dataclass(frozen=True)
class Answer:
    """The raw answer to one item.

    Exactly one state holds: answered, timed out, missing, denied or not asked. A recording that
    lacks an item gives an Answer that was not asked, so readers never test for presence.
    """

    item: str
    raw: Mapping[str, Any]

    @property
    def rc(self) -> int | None:
        """Exit status of a command; None where it did not end by itself or is no command."""
        rc = self.raw.get("rc")
        return rc if isinstance(rc, int) else None

    @property
    def stdout(self) -> str:
        return _text(self.raw.get("stdout"))

    @property
    def stderr(self) -> str:
        return _text(self.raw.get("stderr"))

    @property
    def text(self) -> str:
        """A file's text, or what a command wrote to standard output."""
        return _text(self.raw.get("text", self.raw.get("stdout")))

    @property
    def timed_out(self) -> bool:
        return bool(self.raw.get("timed_out"))

    @property
    def missing(self) -> bool:
        return bool(self.raw.get("missing"))

    @property
    def denied(self) -> bool:
        return bool(self.raw.get("denied"))

    @property
    def cut(self) -> bool:
        """True where the collector's size limit ended the output."""
        return bool(self.raw.get("cut"))

    @property
    def not_asked(self) -> str | None:
        """Why the item was not asked, or None where it was."""
        why = self.raw.get("not_asked")
        return _text(why) if why is not None else None

    @property
    def silence(self) -> str | None:
        """Why there is no output to read at all, in words for a person; None where there is some."""
        if self.not_asked is not None:
            return f"{self.item} was not asked: {self.not_asked}"
        if self.timed_out:
            return f"{self.item} did not answer within {self.raw.get('seconds', '?')} s"
        if self.missing:
            return f"{self.item}: not found on the host"
        if self.denied:
            return f"{self.item}: no right to read it"
        return None


@dataclass(frozen=True)
class Recording:
    """All answers of one host. Items that it lacks count as not asked."""

    host: str
    taken: str
    as_root: bool
    seconds: float
    items: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def answer(self, item: str) -> Answer:
        raw: Any = self.items.get(item)
        if isinstance(raw, list):
            raw = {"json": raw}  # an item that is a JSON list itself
        if not isinstance(raw, Mapping):
            raw = {"not_asked": "the recording does not have it"}
        return Answer(item, raw)

    def asked(self, item: str) -> bool:
        """Whether the host was asked, whatever came of it."""
        return item in self.items and self.answer(item).not_asked is None

    def file(self, path: str) -> Answer:
        return self.answer(f"file:{path}")

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "host": self.host,
            "taken": self.taken,
            "as_root": self.as_root,
            "seconds": self.seconds,
            "items": dict(self.items),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Recording:
        """Read a recording; one that has only some items is a recording too.

        Raises RecordingError where the document is of another kind or of an unknown schema.
        """
        if not isinstance(document, Mapping):
            raise RecordingError("a recording is a JSON object")
        schema = document.get("schema")
        if schema != SCHEMA:
            named = f"its schema is {schema!r}" if schema else "it names no schema"
            raise RecordingError(f"{named}; this version reads {SCHEMA!r}")
        items = document.get("items")
        if not isinstance(items, Mapping):
            raise RecordingError("`items` is missing or is no object")
        seconds = document.get("seconds", 0.0)
        return cls(
            host=_text(document.get("host")) or "unnamed",
            taken=_text(document.get("taken")),
            as_root=document.get("as_root") is True,
            seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
            items=items,
        )

    @classmethod
    def from_json(cls, text: str) -> Recording:
        try:
            # Windows' shells begin a file with this mark.
            return cls.from_dict(json.loads(text.removeprefix("\ufeff")))
        except RecordingError:
            raise
        except json.JSONDecodeError as e:
            raise RecordingError(f"not JSON: line {e.lineno}, column {e.colno}: {e.msg}") from e
        except (RecursionError, ValueError, OverflowError) as e:  # nested too deep, a number too long
            raise RecordingError(f"not JSON that can be read: {e}") from e


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
