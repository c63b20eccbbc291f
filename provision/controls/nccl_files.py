"""Controls of what stands beside /etc/nccl.conf: the environment file, and debug output that has to end."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from ..planners import nccl as planner
from ..planners import nccl_debug, nccl_env, nccl_file
from .model import Judged, Severity, Verdict, control, failed, passed, skipped, unknown, warned

ROLE = "nccl"


@control(
    "nccl.environment",
    "Containers and units get the settings of /etc/nccl.conf from an environment file",
    severity=Severity.LOW,
    role=ROLE,
)
def environment(host: Judged) -> Verdict:
    now = host.facts.file(nccl_env.PATH)
    if not host.profile["nccl_environment"]:
        if isinstance(now, str):
            return failed("no file, as the profile asks for none", f"{nccl_env.PATH} is still there")
        return skipped("the profile asks for none")
    for fact in (now, host.facts.interfaces, host.facts.file(nccl_file.PATH)):
        if isinstance(fact, Unknown):
            return unknown(fact)
    whole = planner.wanted(host.facts, host.profile, host.stack)
    if whole.refused:
        return failed("settings that fit this host", whole.refused)
    text = next(file.text for file in whole.files if file.path == nccl_env.PATH)
    if now == text:
        return passed(nccl_env.PATH)
    if isinstance(now, Absent):
        return failed(nccl_env.PATH, "it is not there")
    assert isinstance(now, str)
    assert text is not None
    there, wanted = nccl_file.effective(now), nccl_file.effective(text)
    unlike = sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))
    return failed(
        "the settings of /etc/nccl.conf", f"{', '.join(unlike)} differ" if unlike else "other comments"
    )


@control(
    "nccl.debug",
    "Debug output of NCCL has a last day, and that is not over",
    severity=Severity.LOW,
    role=ROLE,
)
def debug(host: Judged) -> Verdict:
    text = host.facts.file(nccl_file.PATH)
    if isinstance(text, Unknown):
        return unknown(text)
    settings = {} if isinstance(text, Absent) else nccl_file.effective(text)
    end, today = nccl_debug.until(host.profile), nccl_debug.day(host.facts)
    said = ", ".join(f"{name}={settings[name]}" for name in nccl_debug.NAMES if name in settings)
    if not said:
        return skipped(f"{nccl_file.PATH} asks for none")
    if not nccl_debug.loud(settings):
        return passed(said)
    foreign = "" if isinstance(text, Absent) else "\n".join(nccl_file.foreign(text))
    if nccl_debug.loud(nccl_file.effective(foreign)):
        return warned(
            "none, or with a last day",
            f"{said}, written by somebody else",
            advice=f"Each rank writes hundreds of lines at its start: take it out of {nccl_file.PATH}.",
            mendable=False,
        )
    if end is None:
        return failed("none", f"{said}, which the profile does not ask for any more")
    if end < today:
        return failed("none", f"{said}, which was to end on {end}")
    return passed(f"{said} until {end}")
