# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Where snapshots lie on a host. One is there whole or not at all: it gets its name when it is finished."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil

ROOT = "/var/lib/gpu-provision/snapshots"
SCHEMA = "gpu-provision/snapshot/1"
ALL, ABOUT = "snapshot.json", "about.json"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_UNFINISHED = ".new"


class NoSnapshot(Exception):
    """There is none of that name that is whole; holds the words for a person."""


def names(root=ROOT):
    """Names of the whole snapshots, oldest first."""
    try:
        found = [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name, ABOUT))]
    except OSError:
        return []
    whole = [name for name in found if not name.endswith(_UNFINISHED)]
    return sorted(whole, key=lambda name: (read(name, root, ABOUT).get("taken", ""), name))


def read(name, root=ROOT, part=ALL):
    """A snapshot's document, or its short form (ABOUT). Raises NoSnapshot."""
    if not _NAME.match(name):
        raise NoSnapshot("%r is no name of a snapshot" % name)
    try:
        with open(os.path.join(root, name, part), encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as e:
        raise NoSnapshot("there is no whole snapshot %s on this host (%s)" % (name, e)) from e
    if document.get("schema") != SCHEMA:
        raise NoSnapshot("the snapshot %s is of the form %r" % (name, document.get("schema")))
    return document


def begin(name, root=ROOT):
    """A folder to fill, which is no snapshot yet; what earlier ones left unfinished is cleared away."""
    if not _NAME.match(name) or name.endswith(_UNFINISHED):
        raise NoSnapshot("%r is no name of a snapshot" % name)
    os.makedirs(root, mode=0o700, exist_ok=True)
    for left in os.listdir(root):
        if left.endswith(_UNFINISHED):
            shutil.rmtree(os.path.join(root, left))
    folder = os.path.join(root, name + _UNFINISHED)
    for path in (folder, os.path.join(folder, "files"), os.path.join(folder, "debs")):
        os.mkdir(path, 0o700)
    return folder


def finish(folder, document, about):
    """Write the documents, have all of it on the disk, and give it its name. Returns the bytes it takes."""
    size = sum(
        os.path.getsize(os.path.join(place, name)) for place, _, found in os.walk(folder) for name in found
    )
    for part, text in ((ALL, document), (ABOUT, dict(about, bytes=size))):
        with open(os.path.join(folder, part), "w", encoding="utf-8") as out:
            json.dump(dict(text, schema=SCHEMA), out)
    os.sync()
    os.rename(folder, folder[: -len(_UNFINISHED)])
    return size


def abandon(folder):
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)


def remove(name, root=ROOT):
    """Take a snapshot away. It loses its name first, so that no half of one is ever taken for whole."""
    going = os.path.join(root, name + _UNFINISHED)
    shutil.rmtree(going, ignore_errors=True)
    os.rename(os.path.join(root, name), going)
    shutil.rmtree(going)


def surplus(found, keep):
    """Of the names, oldest first, those that are one too many; the first (the host before us) stays."""
    return found[1:][: max(0, len(found) - max(keep, 2))]
