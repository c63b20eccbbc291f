# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What of a host's packages is of our making: those that we hold, by set, and those that we brought."""

from __future__ import annotations

import json
import os

from . import transient

HOLDS = os.path.join(transient.STATE, "holds.json")  # what we hold, as opposed to the administrator
BROUGHT = os.path.join(transient.STATE, "brought.json")


def holds(path=HOLDS):
    """Names of the packages that we hold, in order, by the set that they belong to."""
    try:
        with open(path, encoding="utf-8") as file:
            return {name: sorted(held) for name, held in json.load(file)["sets"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep_holds(sets, path=HOLDS):
    _write(path, {"sets": sets})


def brought(path=BROUGHT):
    """Names of the packages that were not there before a transaction of ours."""
    try:
        with open(path, encoding="utf-8") as file:
            return sorted(json.load(file)["names"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def note_brought(names, path=BROUGHT):
    """Add names, before they come: going back takes these away again, and nothing else."""
    known, names = set(brought(path)), set(names)
    if not known.issuperset(names):
        _write(path, {"names": sorted(known | names)})


def _write(path, document):
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.rename(path + ".new", path)
