"""Controls of the driver: packages, the module of each kernel, and what is loaded now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.cards_out import left_out
from ..facts.kernel_log import Refusal
from ..facts.kernels import LoadedDriver
from ..facts.known import Absent, Unknown
from ..facts.smi_trouble import DriverSilence, SmiTrouble
from ..facts.versions import driver_version, same_driver, upstream
from ..planners import driver_place
from ..planners import nvidia_driver as planner
from .gpu import cards, what_to_do
from .model import Disrupts, Judged, Severity, Verdict, control, failed, passed, skipped, unknown

if TYPE_CHECKING:
    from ..catalog.stack import Driver
    from ..facts.packages import Packages

ROLE = "nvidia_driver"
SHOWN = 8


def packages_of(host: Judged) -> Packages | Verdict:
    """The installed packages, on a host that has cards for a driver to serve."""
    ours = cards(host)
    if isinstance(ours, Verdict):
        return ours
    found = host.facts.packages
    return unknown(found) if isinstance(found, Unknown) else found


def driver_of(host: Judged) -> Driver | Verdict:
    """The driver that the stack chose."""
    stack = host.stack
    if isinstance(stack, Unknown):
        return unknown(stack)
    if not stack.satisfiable or stack.driver is None:
        said = tuple(f"{', '.join(c.demands)}: {c.says}" for c in stack.conflicts)
        return failed(
            "a set of versions that serves this host",
            "none fits",
            evidence=said,
            advice="; ".join(c.relax for c in stack.conflicts if c.relax),
        )
    return stack.driver


def installed_version(packages: Packages, driver: Driver | None = None) -> str | None:
    """The driver release that is installed, by the package that carries its number."""
    for name in filter(None, (driver.main if driver else None, *driver_place.names("same_name"))):
        package = packages.get(name)
        if package is not None:
            return driver_version(upstream(package.version))
    return None


@control(
    "driver.installed",
    "The stack's driver is installed, whole and at one release",
    severity=Severity.HIGH,
    required=True,
    role=ROLE,
)
def installed(host: Judged) -> Verdict:
    packages, driver = packages_of(host), driver_of(host)
    for verdict in (packages, driver):
        if isinstance(verdict, Verdict):
            return verdict
    assert not isinstance(packages, Verdict)
    assert not isinstance(driver, Verdict)
    whole = planner.wanted(host.facts, host.profile, host.stack)
    expected = f"driver {driver.version or driver.branch} of {driver.source}, {driver.modules} modules"
    if whole.refused:
        return failed(expected, whole.refused)
    wrong = [f"{want}: {_there(packages, want)}" for want in whole.packages if not _satisfied(packages, want)]
    wrong += [f"{name} is installed and in the way" for name in whole.absent]
    if wrong:
        return failed(
            expected,
            wrong[0] + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""),
            evidence=tuple(wrong[:SHOWN]),
        )
    return passed(f"{installed_version(packages, driver)}, {len(whole.packages)} packages", expected=expected)


def _satisfied(packages: Packages, want: str) -> bool:
    name, _, version = want.partition("=")
    package = packages.get(name)
    return package is not None and (not version or package.version == version)


def _there(packages: Packages, want: str) -> str:
    package = packages.get(want.partition("=")[0])
    return package.version if package else "not installed"


@control(
    "driver.loaded-matches-installed",
    "The loaded module is the installed driver's",
    severity=Severity.HIGH,
    required=True,
    role=ROLE,
    disrupts=Disrupts.REBOOT,
    needs=("driver.installed",),
)
def loaded(host: Judged) -> Verdict:
    packages = packages_of(host)
    if isinstance(packages, Verdict):
        return packages
    if (why := other_kernel(host)) is not None:
        return why
    now, version = host.facts.loaded_driver, installed_version(packages)
    if isinstance(now, Unknown):
        return unknown(now)
    if version is None:
        return unknown("no driver is installed to compare with")
    if isinstance(now, Absent):
        return failed(
            f"{version} loaded",
            "no NVIDIA module is loaded",
            advice="It loads without a reboot where nothing else holds the card.",
        )
    silence = host.facts.driver_silence
    library = silence.userspace_version if isinstance(silence, DriverSilence) else None
    mismatch = isinstance(silence, DriverSilence) and silence.trouble is SmiTrouble.VERSION_MISMATCH
    if same_driver(now.version, version) and not mismatch:
        if isinstance(silence, DriverSilence) and silence.trouble is SmiTrouble.OTHER:
            # A library of another release than both shows only here, in words that cannot be read.
            return unknown(f"whether the library is of that release: {silence.says}")
        return passed(f"{now.version} loaded and installed")
    return failed(
        f"{version} loaded",
        f"{now.version} loaded" + (f", library {library}" if library else ""),
        advice="Drain and reboot, or stop all users and reload the modules: new jobs fail until then.",
        evidence=_history(host),
    )


def _history(host: Judged) -> tuple[str, ...]:
    """What apt did to the driver last, which is the usual cause."""
    events = host.facts.apt_history
    if isinstance(events, Unknown):
        return ()
    moved = [
        (e, name, pair)
        for e in events
        for name, pair in e.upgraded.items()
        if "nvidia" in name or name == "libcuda1"
    ]
    return tuple(
        f"{e.start} {e.command or 'apt'}: {name} {old} -> {new}" for e, name, (old, new) in moved[-3:]
    )


def other_kernel(host: Judged) -> Verdict | None:
    """A container shares its machine's kernel, about which nothing can be said from inside."""
    virtualization = host.facts.virtualization
    if isinstance(virtualization, Unknown):
        return unknown(virtualization)
    if virtualization.shares_kernel:
        return skipped(f"the running kernel is another machine's ({virtualization.kind})")
    return None


@control(
    "driver.next-boot",
    "Each kernel that can be booted has headers and the driver's module",
    severity=Severity.HIGH,
    required=True,
    role=ROLE,
    needs=("driver.installed",),
)
def next_boot(host: Judged) -> Verdict:
    packages, kernels = packages_of(host), host.facts.kernels
    if isinstance(packages, Verdict):
        return packages
    if isinstance(kernels, Unknown):
        return unknown(kernels)
    bootable = [kernel for kernel in kernels if kernel.image]
    version = installed_version(packages)
    if not bootable:
        return skipped("no kernel is installed here")
    if version is None:
        return failed("a module for each kernel", "no driver is installed")
    expected = f"module {version} for {', '.join(kernel.release for kernel in bootable)}"
    told = []
    for kernel in bootable:
        if kernel.nvidia_module is None:
            told.append(
                f"{kernel.release} has no module"
                + ("" if kernel.headers else ", and no headers to build one")
            )
        elif not same_driver(kernel.nvidia_module, version):
            told.append(f"{kernel.release} has module {kernel.nvidia_module}")
        elif not kernel.headers:
            told.append(f"{kernel.release} has no headers, so the next driver would not build")
    if told:
        return failed(
            expected,
            "; ".join(told),
            evidence=_dkms(host),
            advice="A boot into that kernel has no driver: do not reboot before this is mended.",
        )
    return passed(expected, expected=expected, evidence=_dkms(host))


def _dkms(host: Judged) -> tuple[str, ...]:
    found = host.facts.dkms
    if isinstance(found, Unknown | Absent):
        return ()
    return tuple(
        f"dkms: {m.name}/{m.version}, {m.kernel or 'no kernel'}: {m.state}" for m in found if m.is_nvidia
    )


@control(
    "driver.modules-flavour",
    "The modules are of the flavour that the cards and the profile ask for",
    severity=Severity.HIGH,
    role=ROLE,
    needs=("driver.installed",),
    disrupts=Disrupts.REBOOT,
)
def flavour(host: Judged) -> Verdict:
    packages, driver, kernels = packages_of(host), driver_of(host), host.facts.kernels
    for verdict in (packages, driver):
        if isinstance(verdict, Verdict):
            return verdict
    assert not isinstance(packages, Verdict)
    assert not isinstance(driver, Verdict)
    if isinstance(kernels, Unknown):
        return unknown(kernels)
    built = {k.release: k.nvidia_open for k in kernels if k.image and k.nvidia_open is not None}
    now = host.facts.loaded_driver
    if isinstance(now, LoadedDriver):
        if isinstance(now.open, Unknown):
            return unknown(now.open)
        built["loaded"] = now.open
    elif isinstance(now, Unknown) and host.facts.recording.asked("file:/proc/driver/nvidia/version"):
        return unknown(now)
    if not built:
        return unknown("no module is built whose licence tells its flavour")
    expected = f"{driver.modules} modules"
    if (wrong := _by_the_log(host)) is not None:
        return wrong
    other = [where for where, is_open in built.items() if is_open is not (driver.modules == "open")]
    if other:
        word = "proprietary" if driver.modules == "open" else "open"
        return failed(expected, f"{word} modules: {', '.join(other)}")
    return passed(expected, expected=expected)


def _by_the_log(host: Judged) -> Verdict | None:
    """What the driver itself said of cards that need the other flavour; the profile has to ask for it."""
    needs = {Refusal.NEEDS_OPEN: "open", Refusal.NEEDS_PROPRIETARY: "proprietary"}
    told = {bus: needs[why] for bus, why in left_out(host.facts).items() if why in needs}
    if not told:
        return None
    return failed(
        " and ".join(f"{word} modules" for word in sorted(set(told.values()))),
        "; ".join(f"{bus} needs the {word} modules, by the driver's own words" for bus, word in told.items()),
        advice=what_to_do(why for why in left_out(host.facts).values() if why in needs),
        mendable=False,
    )


@control("driver.pinned", "The driver is held as a whole set", role=ROLE, needs=("driver.installed",))
def pinned(host: Judged) -> Verdict:
    packages, held = packages_of(host), host.facts.holds
    if isinstance(packages, Verdict):
        return packages
    if isinstance(held, Unknown):
        return unknown(held)
    whole = planner.wanted(host.facts, host.profile, host.stack)
    if whole.refused:
        return unknown(f"what to hold is not known: {whole.refused}")
    free = [name for name in whole.holds if packages.get(name) is not None and name not in held]
    missing = [name for name in whole.holds if packages.get(name) is None]
    if free:
        return failed(
            "apt holds all of it",
            f"{len(free)} of {len(whole.holds)} packages are not held",
            evidence=tuple(free[:SHOWN]),
            advice="An upgrade would move them apart.",
        )
    if missing:
        return unknown(f"{missing[0]} is not installed yet")
    return passed(f"{len(whole.holds)} packages held")
