"""Controls of CUDA toolkits and libraries: that the driver carries them and that they are of one major."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..catalog.compatibility import floor, wanted_driver
from ..catalog.numbers import below, is_number, major
from ..catalog.tables import catalog
from ..facts.known import Absent, Unknown
from ..facts.versions import driver_version, upstream
from ..planners import cuda as planner
from . import compare
from .model import Judged, Severity, Verdict, control, failed, not_ours, passed, skipped, unknown, warned

if TYPE_CHECKING:
    from ..facts.cuda import Toolkit

ROLE = "cuda"
_MAIN = ("nvidia-smi", "nvidia-utils", "libcuda1", "libnvidia-compute")
_CUDNN9 = re.compile(r"libcudnn9-cuda-(\d+)")
_BUILT_FOR = re.compile(r"\+cuda(\d+)\.(\d+)")


def _toolkits(host: Judged) -> tuple[Toolkit, ...] | Verdict:
    found = host.facts.cuda_toolkits
    if isinstance(found, Unknown):
        return unknown(found)
    return found or skipped("no CUDA toolkit is installed below /usr/local")


def _driver(host: Judged) -> str | Verdict:
    """The driver that programs meet: the loaded one, what nvidia-smi names, or the installed package."""
    loaded, smi, packages = host.facts.loaded_driver, host.facts.smi, host.facts.packages
    if not isinstance(loaded, Unknown | Absent):
        return loaded.version
    if not isinstance(smi, Unknown) and isinstance(smi.driver_version, str):
        return smi.driver_version
    if not isinstance(packages, Unknown):
        for name, package in packages.installed.items():
            version = driver_version(upstream(package.version))
            if version and any(name == main or name.startswith(f"{main}-") for main in _MAIN):
                return version
    return unknown(loaded) if isinstance(loaded, Unknown) else skipped("no driver is there to carry it")


@control(
    "cuda.driver-match",
    "The driver carries every CUDA toolkit of the host",
    severity=Severity.MEDIUM,
    needs=("driver.installed",),
)
def driver_match(host: Judged) -> Verdict:
    toolkits = _toolkits(host)
    if isinstance(toolkits, Verdict):
        return toolkits
    driver = _driver(host)
    if isinstance(driver, Verdict):
        return driver
    bad, narrow, unclear, good = [], [], [], []
    for toolkit in toolkits:
        version = toolkit.version
        if version is None or not is_number(version):
            unclear.append(f"{toolkit.path} names no version")
            continue
        wanted, least = wanted_driver(catalog(), version), floor(catalog(), version)
        if wanted is None and least is None:
            unclear.append(f"no driver is known for CUDA {version}")
        elif wanted is not None and not below(driver, wanted):
            good.append(f"CUDA {version} asks for {wanted}")
        elif least is not None and not below(driver, least.min):
            narrow.append(
                f"CUDA {version} was made for {wanted or 'a newer driver'}, and runs from {least.min} on"
            )
        elif _forward(host, version):
            narrow.append(f"CUDA {version} runs through its package of forward compatibility")
        else:
            bad.append(f"CUDA {version} asks for {least.min if least else wanted}")
    if bad:
        return failed(
            "a driver that is new enough",
            f"driver {driver}: {'; '.join(bad)}",
            advice="Programs end with `CUDA driver version is insufficient`: upgrade the driver, or use an "
            "older toolkit.",
        )
    if unclear:
        return unknown("; ".join(unclear))
    if narrow:
        return warned(
            "a driver of the toolkit's own release or newer",
            f"driver {driver}: {'; '.join(narrow)}",
            advice="Minor-version compatibility: code that the driver has to compile (PTX) may not load.",
        )
    return passed(f"driver {driver}", evidence=tuple(good))


def _forward(host: Judged, version: str) -> bool:
    """Whether cuda-compat of that release is installed (NVIDIA CUDA Compatibility guide, "Forward")."""
    packages = host.facts.packages
    name = f"cuda-compat-{'-'.join(version.split('.')[:2])}"
    return not isinstance(packages, Unknown) and packages.get(name) is not None


@control(
    "cuda.toolkit",
    "The toolkits that the profile asks for are there, and the default one is whole",
    severity=Severity.LOW,
    role=ROLE,
)
def toolkit(host: Judged) -> Verdict:
    whole, installed = planner.wanted(host.facts, host.profile, host.stack), host.facts.packages
    if not whole.asked:
        left = [file.path for file in whole.files if isinstance(host.facts.file(file.path), str)]
        return (
            failed("none of our paths", f"{', '.join(left)} are left") if left else not_ours(_default(host))
        )
    expected = f"CUDA {', '.join(whole.toolkits)}" if whole.toolkits else "what the profile asks for"
    if whole.refused:
        return failed(expected, whole.refused)
    if isinstance(installed, Unknown):
        return unknown(installed)
    libraries = {name for each in (whole.libraries or {}).values() for name in each}
    wrong = compare.packages(installed, [name for name in whole.packages if name not in libraries])
    wrong += [f"{name} is installed and was named to go" for name in whole.absent]
    wrong += compare.files(host, whole.files)
    if whole.set_default:
        wrong.append(f"{planner.LINK} does not lead to {whole.default} by choice")
    if wrong:
        return failed(expected, "; ".join(wrong[:4]), evidence=tuple(wrong))
    notes = tuple(f"{w.about}: {w.says}" for w in whole.why if w.about.startswith("CUDA"))
    return passed(expected, expected=expected, evidence=notes)


def _default(host: Judged) -> Verdict:
    """What is there without having been asked for."""
    toolkits = _toolkits(host)
    if isinstance(toolkits, Verdict):
        return toolkits
    named = ", ".join(t.version or t.path for t in toolkits)
    default = [t for t in toolkits if t.default]
    if not default:
        return warned(
            "/usr/local/cuda names one of them",
            f"it names none of {named}",
            advice="Programs look there: `update-alternatives --config cuda`, or make the link.",
        )
    if not default[0].compiler:
        return warned(
            "a toolkit with its compiler",
            f"{default[0].path} has no nvcc",
            advice="It holds run-time libraries only, or a removal left it behind.",
        )
    return passed(f"{default[0].version or default[0].path} of {named}")


def _majors(host: Judged) -> set[int]:
    toolkits = host.facts.cuda_toolkits
    if isinstance(toolkits, Unknown):
        return set()
    return {major(t.version) for t in toolkits if t.version and is_number(t.version)}


def _library(host: Judged, variable: str) -> Verdict | None:
    """A library that the profile asks for against what the role would make of it; None where it does not."""
    if not host.profile[variable]:
        return None
    whole, installed = planner.wanted(host.facts, host.profile, host.stack), host.facts.packages
    expected = f"{variable}: {host.profile[variable]}"
    if whole.refused:
        return failed(expected, whole.refused)
    if isinstance(installed, Unknown):
        return unknown(installed)
    packages = (whole.libraries or {}).get(variable, ())
    held = compare.holds(host, installed, [name.partition("=")[0] for name in packages])
    if isinstance(held, Verdict):
        return held
    wrong = compare.packages(installed, packages) + held
    if wrong:
        return failed(expected, "; ".join(wrong), evidence=tuple(wrong))
    return passed(", ".join(packages), expected=expected)


@control(
    "cudnn.cuda-match",
    "cuDNN is built for a CUDA toolkit of the host",
    severity=Severity.MEDIUM,
    role=ROLE,
)
def cudnn(host: Judged) -> Verdict:
    if (asked := _library(host, "cuda_cudnn")) is not None:
        return asked
    return not_ours(_installed_cudnn(host))


def _installed_cudnn(host: Judged) -> Verdict:
    packages = host.facts.packages
    if isinstance(packages, Unknown):
        return unknown(packages)
    built = {}
    for name, package in packages.installed.items():
        if named := _CUDNN9.fullmatch(name):
            built[f"{name} {package.version}"] = int(named[1])
        elif re.fullmatch(r"libcudnn\d", name) and (made := _BUILT_FOR.search(package.version)):
            built[f"{name} {package.version}"] = int(made[1])
    return _match(host, built, "cuDNN")


@control(
    "nccl.cuda-match",
    "NCCL is built for a CUDA that toolkit and driver have",
    severity=Severity.MEDIUM,
    role=ROLE,
)
def nccl(host: Judged) -> Verdict:
    if (asked := _library(host, "cuda_nccl")) is not None:
        return asked
    return not_ours(_installed_nccl(host))


def _installed_nccl(host: Judged) -> Verdict:
    packages = host.facts.packages
    if isinstance(packages, Unknown):
        return unknown(packages)
    package = packages.get("libnccl2") or packages.get("libnccl")
    if package is None:
        return skipped("NCCL is not installed as a package")
    made = _BUILT_FOR.search(package.version)
    if made is None:
        return skipped(f"{package.name} {package.version} names no CUDA that it was built for")
    return _match(host, {f"{package.name} {package.version}": int(made[1])}, "NCCL")


def _match(host: Judged, built: dict[str, int], what: str) -> Verdict:
    if not built:
        return skipped(f"{what} is not installed as a package")
    toolkits, smi = host.facts.cuda_toolkits, host.facts.smi
    majors = _majors(host)
    if majors:
        wrong = [f"{name} is for CUDA {of}" for name, of in built.items() if of not in majors]
        some = [name for name, of in built.items() if of in majors]
        expected = f"CUDA {' or '.join(str(m) for m in sorted(majors))}"
        if wrong and not some:
            return failed(
                expected, "; ".join(wrong), advice="Install the build for the toolkit's major version."
            )
        return passed("; ".join(some), expected=expected)
    if isinstance(toolkits, Unknown):
        return unknown(toolkits)
    # Without a toolkit programs bring their own, up to what the driver can.
    told = None if isinstance(smi, Unknown) else smi.cuda_version
    if not isinstance(told, str) or not is_number(told):
        return unknown(smi if isinstance(smi, Unknown) else "nvidia-smi tells no CUDA version")
    over = [f"{name} is for CUDA {of}" for name, of in built.items() if of > major(told)]
    if over:
        return failed(
            f"CUDA {told} or older", "; ".join(over), advice="Upgrade the driver, or install an older build."
        )
    return passed("; ".join(built), expected=f"CUDA {told} or older")
