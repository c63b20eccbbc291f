"""Controls of what stands in a driver's way: other makers' packages, rivals, Secure Boot, its age."""

from __future__ import annotations

from ..facts.cards_out import left_out
from ..facts.kernel_log import Refusal
from ..facts.known import Absent, Unknown
from ..facts.versions import driver_tuple
from ..planners import driver_place, rival_modules
from ..planners.driver_modules import modules
from ..planners.driver_origin import strangers
from ..planners.secure_boot import refusal
from . import driver_set
from .driver import ROLE, SHOWN, driver_of, installed_version, other_kernel, packages_of
from .gpu import cards
from .model import (
    Disrupts,
    Judged,
    Severity,
    Status,
    Verdict,
    control,
    failed,
    passed,
    skipped,
    unknown,
    warned,
)


@control("driver.single-origin", "All packages of the driver come from one source", severity=Severity.HIGH)
def single_origin(host: Judged) -> Verdict:
    ours, packages = cards(host), host.facts.packages
    if isinstance(ours, Verdict) and ours.status is Status.SKIP:
        return ours
    if isinstance(packages, Unknown):
        return unknown(packages)
    mixed = driver_set.mixed(packages)
    if mixed:
        return failed(
            "one release of one packager",
            f"{len(mixed)} kinds: {'; '.join(kind for kind in mixed)}",
            advice="Keep one source and pin it: purge the other's packages, jobs drained first.",
            evidence=tuple(f"{kind}: {', '.join(names[:SHOWN])}" for kind, names in mixed.items()),
        )
    driver = driver_of(host)
    if isinstance(driver, Verdict):
        return driver
    others = [f"{p.name} {p.version}" for p in strangers(host.facts, packages, driver)]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return failed(
            f"packages of {driver.source} alone",
            f"{others[0]}{more} of another source",
            advice="Keep one source: name it (nvidia_driver_source), and what is of the other is replaced.",
            evidence=tuple(others[:SHOWN]),
        )
    return (
        passed("one source")
        if driver_set.members(packages)
        else skipped("no driver is installed as a package")
    )


@control(
    "driver.rival-module",
    "No other kernel driver takes the GPUs",
    severity=Severity.HIGH,
    role=ROLE,
    disrupts=Disrupts.REBOOT,
)
def rival(host: Judged) -> Verdict:
    ours = cards(host)
    if isinstance(ours, Verdict):
        return ours
    text = host.facts.file(rival_modules.MODPROBE)
    if isinstance(text, Unknown):
        return unknown(text)
    bound = [f"{gpu.address} is bound to {gpu.driver}" for gpu in ours if rival_modules.is_rival(gpu.driver)]
    other = rival_modules.kept_out_by(host.facts) if isinstance(text, Absent) else None
    if other is not None and all(gpu.driver == "nvidia" for gpu in ours):
        return passed(f"kept out by {other}")
    if text != rival_modules.MODPROBE_TEXT:
        return failed(
            "nouveau and nova_core kept out",
            "; ".join([*bound, f"{rival_modules.MODPROBE} does not keep them out"]),
        )
    if bound and other_kernel(host) is None:
        return failed(
            "the NVIDIA driver has the cards",
            "; ".join(bound),
            advice="Kept out from the next boot on: reboot.",
        )
    return passed("kept out")


@control("driver.secure-boot", "Secure Boot lets the driver's module load", severity=Severity.HIGH)
def secure_boot(host: Judged) -> Verdict:
    ours = cards(host)
    if isinstance(ours, Verdict):
        return ours
    if (why := other_kernel(host)) is not None:
        return why
    state = host.facts.secure_boot
    if isinstance(state, Unknown):
        return unknown(state)
    if not state.enabled:
        return passed("Secure Boot is off")
    refused = refusal(host.facts, signed=_signed(host))
    return (
        failed("a module that may load", refused)
        if refused
        else passed("Secure Boot is on, and the module's key is known")
    )


def _signed(host: Judged) -> bool:
    """Whether each kernel's module comes built and signed by the distribution."""
    driver, kernels = driver_of(host), host.facts.kernels
    if isinstance(driver, Verdict) or isinstance(kernels, Unknown):
        return False
    return modules(host.facts, driver, tuple(k.release for k in kernels if k.image)).signed


@control("driver.runfile-leftovers", "Nothing of NVIDIA's .run installer is left", severity=Severity.HIGH)
def runfile(host: Judged) -> Verdict:
    packages = packages_of(host)
    if isinstance(packages, Verdict):
        return packages
    left = driver_place.runfile(host.facts)
    if left:
        return failed(
            "files of packages only",
            left,
            advice=f"{driver_place.RUNFILE_OUT}.",
        )
    if isinstance(host.facts.driver_files, Unknown):
        return unknown(host.facts.driver_files)
    return passed("nothing left")


@control("driver.supports-gpus", "The driver serves every card of the host", severity=Severity.HIGH)
def supports(host: Judged) -> Verdict:
    if (refused := _refused(host)) is not None:
        return refused
    ours, driver = cards(host), driver_of(host)
    for verdict in (ours, driver):
        if isinstance(verdict, Verdict):
            return verdict
    assert not isinstance(driver, Verdict)
    packages = host.facts.packages
    if isinstance(packages, Unknown):
        return unknown(packages)
    version = installed_version(packages, driver)
    if version is None:
        return passed(f"branch {driver.branch} is chosen for these cards")
    if driver.minimum and not _reaches(version, driver.minimum):
        return failed(f"{driver.minimum} or newer", f"{version} is installed")
    return passed(f"{version} serves them", expected=f"{driver.minimum} or newer" if driver.minimum else "")


def _refused(host: Judged) -> Verdict | None:
    """What the driver itself said of cards that it no longer serves (its README, "Legacy GPUs")."""
    log, virtualization = host.facts.kernel_log, host.facts.virtualization
    left = [bus for bus, why in left_out(host.facts).items() if why is Refusal.NOT_SERVED]
    if left:
        return failed(
            "a branch that serves every card",
            f"the loaded driver leaves out {', '.join(left)}",
            advice="`gpu-provision resolve --gpu NAME` says which branch does.",
        )
    if isinstance(log, Unknown) or not log.legacy:
        return None
    if not isinstance(virtualization, Unknown) and virtualization.shares_kernel:
        return None
    return failed(
        "; ".join(dict.fromkeys(f"a branch up to {last} for {name}" for name, last in log.legacy)),
        f"the loaded driver leaves out {log.legacy[0][0]}",
        advice="Install that branch. Where other cards of the host need a newer one, no branch serves all.",
        evidence=log.nvrm[:SHOWN],
    )


def _reaches(version: str, minimum: str) -> bool:
    now, least = driver_tuple(version), driver_tuple(minimum)
    return now is not None and least is not None and now >= least


@control("driver.branch-supported", "Somebody still mends the driver's branch", severity=Severity.MEDIUM)
def branch_supported(host: Judged) -> Verdict:
    ours, driver = cards(host), driver_of(host)
    for verdict in (ours, driver):
        if isinstance(verdict, Verdict):
            return verdict
    assert not isinstance(driver, Verdict)
    assert not isinstance(host.stack, Unknown)
    past = [w for w in host.stack.warnings if w.kind == "end-of-life"]
    if past and driver.mended:
        return warned("a branch within its life", past[0].says, evidence=(past[0].source,))
    if past:
        return failed(
            "a branch that NVIDIA or the distribution still mends",
            past[0].says,
            evidence=(past[0].source,),
            advice="Nobody mends its security holes any more. Name another branch, or waive this.",
        )
    return passed(driver.support or f"branch {driver.branch}")
