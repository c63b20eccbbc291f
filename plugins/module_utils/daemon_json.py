# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""The text of docker's daemon.json: read strictly, merged without loss, written as it was laid out. Pure.

What cannot be read for certain is refused with line and column, and nothing is put over it.
"""

from __future__ import annotations

import copy
import json
import re

# Of these each entry is a setting of its own (a runtime, a limit).
ENTRIES = ("runtimes", "default-ulimits")
_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]')
_INDENT = re.compile(r"[{,\[]\s*?\n([ \t]+)\"")


class Refused(Exception):
    """What is wrong with the text, in words."""


def read(raw):
    """(settings, whether docker of any version reads the text as it is) of the file's bytes.

    Docker before 23.0 starts neither with an empty file nor with one that begins with a byte order mark.
    """
    plain = raw[len(_BOM) :] if raw.startswith(_BOM) else raw
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused("it is written in UTF-16; docker reads UTF-8")
    try:
        text = plain.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Refused("it is not UTF-8 at %s" % _place(plain[: e.start].decode("utf-8"))) from None
    if not text.strip(" \t\r\n"):
        return {}, False
    try:
        found = json.loads(text, parse_constant=_constant)
    except json.JSONDecodeError as e:
        raise Refused("it is not JSON at line %d, column %d: %s" % (e.lineno, e.colno, e.msg)) from None
    except (RecursionError, ValueError) as e:
        raise Refused("it cannot be read: %s" % (e or "nested too deep")) from None
    if not isinstance(found, dict):
        raise Refused("it holds no object but begins with %s at line 1, column 1" % text.lstrip()[0])
    second = _twice(text)
    if second is not None:
        name, offset = second
        raise Refused("%s stands a second time in its object at %s" % (name, _place(text[:offset])))
    for key in ENTRIES:
        if key in found and not isinstance(found[key], dict):
            raise Refused("%s is no object, and docker does not start with that" % key)
    return found, plain is raw


def _constant(name):
    raise ValueError("%s is no JSON" % name)


def _place(before):
    return "line %d, column %d" % (before.count("\n") + 1, len(before) - before.rfind("\n"))


def _twice(text):
    """(name, offset) of the first name in valid JSON that its object has already; else None."""
    objects, last = [], None
    for token in _TOKEN.finditer(text):
        kind = token.group()
        if kind in "{[":
            objects.append(set() if kind == "{" else None)
        elif kind in "}]":
            objects.pop()
        elif kind != ":":
            last = token
        elif objects[-1] is not None:
            if last.group() in objects[-1]:
                return last.group(), last.start()
            objects[-1].add(last.group())
    return None


def merged(now, settings, remove):
    """The settings with ours in them: other keys and the order of all stay as they are."""
    new = copy.deepcopy(now)
    for key, value in settings.items():
        if key in ENTRIES:
            new.setdefault(key, {}).update(value)
        else:
            new[key] = value
    for path in remove:
        holder = new if len(path) == 1 else new.get(path[0], {})
        holder.pop(path[-1], None)
        if len(path) > 1 and not holder:
            new.pop(path[0], None)
    return new


def changes(now, new):
    """What differs, as paths in words; never the values of keys that are not ours."""
    told = []
    for key in [*new, *(key for key in now if key not in new)]:
        before, after = now.get(key), new.get(key)
        if before == after:
            continue
        if key in ENTRIES and isinstance(before or {}, dict) and isinstance(after or {}, dict):
            names = [*(after or {}), *(name for name in before or {} if name not in (after or {}))]
            told += ["%s.%s" % (key, n) for n in names if (before or {}).get(n) != (after or {}).get(n)]
        else:
            told.append(key)
    return told


def write(new, raw):
    """Bytes of the settings, with the indentation and the line ends that `raw` has."""
    text = raw.decode("utf-8", "replace")
    indent = _INDENT.search(text)
    said = json.dumps(new, indent=indent.group(1) if indent else 4, ensure_ascii=False)
    try:
        said.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape and UTF-8 cannot hold
        said = json.dumps(new, indent=indent.group(1) if indent else 4)
    ends = "\r\n" if "\r\n" in text else "\n"
    return (said + "\n").replace("\n", ends).encode("utf-8")
