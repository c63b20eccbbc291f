"""Which exit code a result gives. The numbers are public interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..controls.model import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .model import HostRun, Judgement, Run

OK, FAILED, USAGE, UNJUDGED, INTERRUPTED = 0, 1, 2, 3, 130


def worst(codes: Iterable[int]) -> int:
    """The one code for several results: interrupted, then failed, then a wrong call, then not judged."""
    given = set(codes)
    return next((code for code in (INTERRUPTED, FAILED, USAGE, UNJUDGED) if code in given), OK)


def of_judgement(host: Judgement) -> int:
    """FAILED for a finding that fails; UNJUDGED for no answer, from the host or of a required control."""
    if host.unreached is not None:
        return host.unreached_code
    counted = [f for f in host.findings if not f.waived]
    if any(f.status is Status.FAIL for f in counted):
        return FAILED
    return UNJUDGED if any(f.status is Status.UNKNOWN and f.required for f in counted) else OK


def of_host_run(host: HostRun) -> int:
    """What one host of a run adds: its state, its findings afterwards and its checks from outside."""
    if host.stopped != OK:
        return host.stopped
    codes = [OK if host.state == "done" else FAILED]
    codes.append(of_judgement(host.judgement) if host.judgement else UNJUDGED)
    codes += [FAILED for check in host.checks if check.failed]
    return worst(codes)


def of_run(run: Run) -> int:
    """A wrong call gives USAGE only where nothing was done on any host."""
    if run.interrupted:
        return INTERRUPTED
    code = worst(of_host_run(h) for h in run.hosts)
    return FAILED if code == USAGE and any(h.passes for h in run.hosts) else code


def of_audit(hosts: Iterable[Judgement]) -> int:
    return worst(of_judgement(h) for h in hosts)
