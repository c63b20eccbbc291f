"""XML of a host, read without trust: bounded, no entities, no external documents."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from .known import Unknown, Unsupported

_LARGEST = 32 * 1024 * 1024
_DEEPEST = 40
# Elements that captures of all drivers from 418 to 595 have: one that lacks them is damaged, not old.
_IN_EVERY_VERSION = frozenset(
    [
        "attached_gpus",
        "driver_version",
        "product_name",
        "uuid",
        "persistence_mode",
        "pci",
        "ecc_mode",
        "ecc_errors",
        "retired_pages",
        "fb_memory_usage",
        "temperature",
        "clocks",
        "max_clocks",
        "applications_clocks",
        "default_applications_clocks",
    ]
)
_NOT_THERE = re.compile(r"\[?(n/?a|not supported|unknown|not available|none found)?\]?", re.IGNORECASE)
_DEPRECATED = re.compile(r"requested functionality has been deprecated|^\[?deprecated\]?$", re.IGNORECASE)
_ERROR = re.compile(
    r"\[?(gpu is lost|gpu is in use.*|unknown error|err!|insufficient permissions?|"
    r"gpu access blocked by the operating system|gpu requires reset|no data|internal error|timeout)\]?",
    re.IGNORECASE,
)


class Refused(ValueError):
    """A document that is not read, with the reason."""


def tree(text: str) -> Element:
    """The root element. Raises Refused where the text is too large, no XML, or declares entities."""
    if len(text) > _LARGEST:
        raise Refused(f"larger than {_LARGEST // 1024 // 1024} MiB")
    builder = TreeBuilder()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise Refused(f"nested deeper than {_DEEPEST}")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def entity(*_: object) -> None:
        raise Refused("it declares or uses entities of its own")

    # The encoding is ours: the text was decoded when it was recorded, whatever its first line claims.
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = entity
    parser.SkippedEntityHandler = entity
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
        return builder.close()
    except expat.ExpatError as e:
        raise Refused(str(e)) from e


def value(element: Element | None, path: str, item: str) -> str | Unknown:
    """The text at a path below an element, or why there is none."""
    found = element.find(path) if element is not None else None
    if found is None:
        top = path.split("/")[0]
        if element is None or (top in _IN_EVERY_VERSION and element.find(top) is None):
            return Unknown(f"the answer has no {path}", item)
        return Unsupported(f"this driver reports no {path}", item)
    text = " ".join((found.text or "").split())
    if _DEPRECATED.search(text):
        return Unsupported(text.strip("[]"), item, deprecated=True)
    if _NOT_THERE.fullmatch(text):
        return Unsupported(f"{found.tag} is {text or 'empty'}", item)
    if error(text):
        return Unknown(f"{found.tag}: {text}", item)
    return text


def first(element: Element, item: str, *paths: str) -> str | Unknown:
    """The first path that exists: elements were renamed over the driver's versions."""
    for path in paths:
        if element.find(path) is not None:
            return value(element, path, item)
    return value(element, paths[0], item)


def error(text: str) -> bool:
    """Whether a text that stands where a value should is one of NVML's errors."""
    return _ERROR.fullmatch(text) is not None


def number(text: str | Unknown, item: str) -> int | Unknown:
    """A count, with or without its unit (`81559 MiB`, `16x`, `0 %`)."""
    if isinstance(text, Unknown):
        return text
    found = re.fullmatch(r"(-?\d{1,18})(?:\s*(?:x|%|MHz|MiB|C|us|bank\(s\)|W))?", text)
    return int(found[1]) if found else Unknown(f"no number: {text}", item)


def decimal(text: str | Unknown, item: str) -> float | Unknown:
    if isinstance(text, Unknown):
        return text
    found = re.fullmatch(r"(-?\d{1,12}(?:\.\d{1,6})?)(?:\s*W)?", text)
    return float(found[1]) if found else Unknown(f"no number: {text}", item)


_YES = frozenset({"enabled", "yes", "active", "true"})
_NO = frozenset({"disabled", "no", "not active", "false"})


def flag(text: str | Unknown, item: str) -> bool | Unknown:
    if isinstance(text, Unknown):
        return text
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    return Unknown(f"neither yes nor no: {text}", item)
