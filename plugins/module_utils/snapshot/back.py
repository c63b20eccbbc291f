# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""What has to be done for a host's packages and holds to be as a snapshot has them. Pure."""

from __future__ import annotations


def installed(package):
    return package is not None and package["state"][1:3] in ("i ", "i")


def returning(then, now):
    """Names of the packages whose .deb files the snapshot keeps and that are not installed as they were."""
    was = then["packages"]
    same = {n for n in then["debs"] if installed(now.get(n)) and now[n]["version"] == was[n]["version"]}
    return sorted(set(then["debs"]) - same)


def leaving(then, now, brought):
    """Names of the packages that came by us and were not there then."""
    here = (n for n in brought if n in now and now[n]["state"][1:2] not in ("n", "c", ""))
    return sorted(n for n in here if not installed(then["packages"].get(n)))


def purging(then, now, brought):
    """Of what came by us, what left not even configuration files then, and has some now or will have."""
    was = then["packages"]
    return sorted(n for n in brought if n in now and n not in was and now[n]["state"][1:2] not in ("n", ""))


def others(then, now, brought):
    """Words for packages that are not ours and are not as they were: they stay as they are."""
    was = then["packages"]
    ours = {*then["debs"], *brought}
    told = []
    for name in sorted({*was, *now} - ours):
        old = was[name]["version"] if installed(was.get(name)) else None
        new = now[name]["version"] if installed(now.get(name)) else None
        if old != new:
            told.append("%s (%s then, %s now)" % (name, old or "not there", new or "not there"))
    return told


def refusal(steps, returning_names, leaving_names):
    """Why a simulated way back must not be taken; None where it does what is meant and no more."""
    wrong = [s for s in steps if s["do"] == "Remv" and s["name"] not in leaving_names]
    if wrong:
        told = ", ".join(sorted(s["name"] for s in wrong))
        return "it would remove %s, which came later and needs what is to go" % told
    more = [s for s in steps if s["do"] == "Inst" and s["name"] not in returning_names]
    if more:
        told = ", ".join("%s %s" % (s["name"], s["new"]) for s in more)
        return "it would install %s, which the snapshot does not keep" % told
    return None


def marks(then, now_held, now_own):
    """(names to hold, names to let go of): ours and those that the snapshot keeps are held as they were."""
    was = set(then["holds"])
    ours = {n for names in [*now_own.values(), *then["own_holds"].values()] for n in names} | set(
        then["debs"]
    )
    hold = sorted(n for n in ours & was if n not in now_held)
    return hold, sorted(n for n in (ours & set(now_held)) - was)
