"""sshd as it behaves: its effective options for several users and addresses, and the files that give them."""

from __future__ import annotations

import fnmatch
import re
import shlex
from typing import TYPE_CHECKING, Any

from .answers import document, plain, quote
from .known import ABSENT, Absent, Unknown
from .record import record
from .sshd_keywords import KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..recording.model import Answer


_ALWAYS = (
    "permitrootlogin",
    "pubkeyauthentication",
    "passwordauthentication",
    "kbdinteractiveauthentication",
)


@record
class SshdCase:
    """`sshd -T` for one user from one address. Where it failed, `error` has sshd's words."""

    user: str
    addr: str
    rc: int | None
    options: Mapping[str, tuple[str, ...]]
    error: str

    @property
    def lacks(self) -> tuple[str, ...]:
        """What `sshd -T` always prints and this answer does not have: it is cut, their values are unknown."""
        missing = [keyword for keyword in _ALWAYS if keyword not in self.options]
        # Until OpenSSH 8.6 the second way to type a password had another name.
        if "challengeresponseauthentication" in self.options and "kbdinteractiveauthentication" in missing:
            missing.remove("kbdinteractiveauthentication")
        return tuple(missing)

    def option(self, keyword: str) -> str | None:
        """The value of a keyword (lower case) that has one."""
        values = self.options.get(keyword.lower())
        return values[0] if values else None


@record
class Setting:
    """One line of a file. `match` has the criteria of the Match block around it, None where it is for all."""

    path: str
    line: int
    keyword: str
    value: str
    match: str | None


@record
class MatchBlock:
    """One Match block with its settings."""

    path: str
    line: int
    criteria: str
    settings: tuple[Setting, ...]


@record
class Operator:
    """The account that recorded, and the address it came from (None where that was the host itself)."""

    user: str
    addr: str | None


@record
class Sshd:
    """`files` in the order that sshd reads them; `settings` with each Include laid in where it stands."""

    cases: tuple[SshdCase, ...]
    files: tuple[tuple[str, str], ...]
    settings: tuple[Setting, ...]
    operator: Operator | None = None

    def with_file(self, path: str, text: str) -> tuple[Setting, ...]:
        """The settings as they would be with one file written; the main file stays the first."""
        files = [(p, text if p == path else t) for p, t in self.files]
        return tuple(_walk(tuple(files if path in dict(files) else [*files, (path, text)])))

    @property
    def match_blocks(self) -> tuple[MatchBlock, ...]:
        blocks: dict[tuple[str, int, str], list[Setting]] = {}
        where = ("", 0, "")
        for setting in self.settings:
            if setting.keyword == "match" and setting.match is not None:
                where = (setting.path, setting.line, setting.value)
                blocks.setdefault(where, [])
            elif setting.match is not None:
                blocks.setdefault(where, []).append(setting)
        return tuple(MatchBlock(*at, tuple(inside)) for at, inside in blocks.items())

    def first(self, keyword: str) -> Setting | None:
        """The line that wins for everybody: sshd takes the first value of a keyword outside Match blocks."""
        wanted = keyword.lower()
        return next((s for s in self.settings if s.keyword == wanted and s.match is None), None)


def sshd(effective: Answer, files: Answer) -> Sshd | Absent | Unknown:
    """Absent where there is no sshd on the host."""
    if effective.missing:
        return ABSENT
    cases = _cases(effective)
    if isinstance(cases, Unknown):
        return cases
    texts = _files(files)
    if isinstance(texts, Unknown):
        return texts
    return Sshd(cases, texts, tuple(_walk(texts)), _operator(effective))


def _operator(answer: Answer) -> Operator | None:
    raw = answer.raw.get("operator")
    if not isinstance(raw, dict) or not isinstance(raw.get("user"), str):
        return None
    return Operator(raw["user"], raw["addr"] if isinstance(raw.get("addr"), str) else None)


def _cases(answer: Answer) -> tuple[SshdCase, ...] | Unknown:
    raw = _entries(answer, "cases")
    if isinstance(raw, Unknown):
        return raw
    result = []
    for case in raw:
        rc = case.get("rc")
        stdout, stderr = plain(str(case.get("stdout") or "")), plain(str(case.get("stderr") or ""))
        options = _options(stdout) if rc == 0 and not case.get("cut") else None
        error = "" if options else (quote(stderr) or quote(stdout) or f"sshd -T ended with status {rc}")
        result.append(
            SshdCase(
                str(case.get("user") or ""),
                str(case.get("addr") or ""),
                rc if isinstance(rc, int) else None,
                options or {},
                error,
            )
        )
    if not result:
        return Unknown("sshd.effective holds no case", answer.item)
    return tuple(result)


def _options(text: str) -> dict[str, tuple[str, ...]] | None:
    """`keyword value` lines; None where one is of another form (a message in place of the options)."""
    options: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        keyword, _, value = line.strip().partition(" ")
        if not re.fullmatch(r"[a-z0-9]+", keyword):
            return None
        options[keyword] = (*options.get(keyword, ()), value.strip())
    return options if options.keys() & {"port", *_ALWAYS} else None


def _files(answer: Answer) -> tuple[tuple[str, str], ...] | Unknown:
    raw = _entries(answer, "files")
    if isinstance(raw, Unknown):
        return raw
    result = []
    for entry in raw:
        path, text = entry.get("path"), entry.get("text")
        if entry.get("missing"):
            continue
        if not isinstance(path, str) or not isinstance(text, str):
            return Unknown(f"sshd.files: {path or 'a file'} could not be read", answer.item)
        if entry.get("cut"):
            return Unknown(f"sshd.files: {path} was cut at the collector's limit", answer.item)
        if not _is_configuration(text):
            return Unknown(f"sshd.files: {path} holds no setting of sshd: {quote(text)}", answer.item)
        result.append((path, plain(text)))
    return tuple(result)


def _is_configuration(text: str) -> bool:
    """Whether any line is one that sshd reads, or none is more than a comment."""
    keywords = [keyword for line in plain(text).splitlines() if (keyword := _line(line)[0])]
    return not keywords or not KEYWORDS.isdisjoint(keywords)


def _entries(answer: Answer, key: str) -> list[dict[str, Any]] | Unknown:
    value = document(answer, key)
    if isinstance(value, Unknown):
        return value
    if isinstance(value, dict):
        value = value.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return Unknown(f"{answer.item} holds no list of {key}", answer.item)
    return value


def _walk(files: tuple[tuple[str, str], ...]) -> list[Setting]:
    """All settings in the order of effect. A Match ends with its file (sshd_config(5), Include)."""
    texts = dict(files)
    result: list[Setting] = []

    def read(path: str, match: str | None, open_files: tuple[str, ...]) -> None:
        for number, raw in enumerate(texts[path].splitlines(), 1):
            keyword, value = _line(raw)
            if not keyword:
                continue
            if keyword == "match":
                match = None if value.strip().lower() == "all" else value
            result.append(Setting(path, number, keyword, value, match))
            if keyword == "include":
                for pattern in _words(value):
                    whole = pattern if pattern.startswith("/") else f"/etc/ssh/{pattern}"
                    for other in sorted(fnmatch.filter(texts, whole)):
                        if other not in open_files:
                            read(other, match, (*open_files, other))

    if files:
        read(files[0][0], None, (files[0][0],))
    return result


def _line(raw: str) -> tuple[str, str]:
    """Keyword in lower case and value; they are parted by spaces or by one equals sign."""
    text = raw.strip()
    if not text or text.startswith("#"):
        return "", ""
    found = re.match(r'"?([A-Za-z0-9]+)"?(?:\s*=\s*|\s+)(.*)', text)
    if not found:
        return text.lower(), ""
    # Since OpenSSH 8.5 a comment may end a line.
    value = re.sub(r"\s+#.*$", "", found[2])
    # Keyword and value may stand in quotes.
    return found[1].lower(), re.sub(r'^"([^"]*)"$', r"\1", value.strip())


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()
