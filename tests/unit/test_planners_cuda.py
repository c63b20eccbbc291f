"""Role cuda: which packages bring what is asked for, what is there from elsewhere, and what is refused."""

# ruff: noqa: E501

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from planner_host import CONVERGED, MISSING, dpkg, facts, profile, said, stack, text

from provision.catalog.stack import Part, Reason, Stack
from provision.controls import all_controls
from provision.controls.model import Finding, Judged, Status
from provision.facts.known import Unknown
from provision.planners import apt_sources, cuda, nvidia_repository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.facts import Facts

URL = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
T13 = Part("13.0", ("cuda-toolkit-13-0",), ("cuda-toolkit-13-0=13.0.2-1",), "nvidia")
T12 = Part("12.8", ("cuda-toolkit-12-8",), ("cuda-toolkit-12-8=12.8.1-1",), "nvidia")
DEBIANS = Part("11.8", ("nvidia-cuda-toolkit",), (), "debian")
CUDNN = Part(
    "9.20", ("libcudnn9-cuda-13", "libcudnn9-dev-cuda-13"), ("libcudnn9-cuda-13=9.20.0.48-*",), "nvidia"
)
NCCL = Part("2.30", ("libnccl2", "libnccl-dev"), ("libnccl2=2.30.7-1+cuda13.*",), "nvidia")
OFFERS = {
    "cuda-toolkit-13-0": ["13.0.2-1"],
    "cuda-toolkit-12-8": ["12.8.1-1", "12.8.0-1"],
    **{key: ["9.28.1.4-1", "9.20.0.48-1", "9.19.1.2-1"] for key in CUDNN.packages},
    **{
        key: ["2.32.3-1+cuda13.3", "2.30.7-1+cuda13.3", "2.30.7-1+cuda12.9", "2.28.7-1+cuda13.0"]
        for key in NCCL.packages
    },
}
SOURCE = f"deb [signed-by=/etc/apt/keyrings/nvidia.asc] {URL}/ /\n"
APT = (nvidia_repository.SOURCE, nvidia_repository.KEYRING, nvidia_repository.PIN)
BOTH = {"cuda_versions": ["13.0", "12.8"]}
GROUP = "{}\n/usr/local/cuda\n\n/usr/local/cuda-12.8\n128\n/usr/local/cuda-13.0\n130\n\n"


def offered(offers: Mapping[str, list[str]] = OFFERS) -> dict[str, Any]:
    blocks = []
    for name, versions in offers.items():
        table = "".join(f"     {v} 600\n        600 {URL}  Packages\n" for v in versions)
        blocks.append(f"{name}:\n  Installed: (none)\n  Candidate: {versions[0]}\n  Version table:\n{table}")
    return said("".join(blocks))


def toolkit(version: str, *, default: bool = False, nvcc: bool = True) -> dict[str, Any]:
    path = f"/usr/local/cuda-{'.'.join(version.split('.')[:2])}"
    return {"path": path, "version": version, "default": default, "nvcc": nvcc}


def owned(*toolkits: dict[str, Any], package: str | None = "cuda-nvcc") -> dict[str, Any]:
    """Items of toolkits that are there, brought by a package or by none."""
    files = [{"path": t["path"], "target": None, "package": package, "kind": "directory"} for t in toolkits]
    return {"cuda.installed": said(list(toolkits)), "nvidia.files": said(files)}


def host(packages: Mapping[str, str] | None = None, **items: Any) -> Facts:
    paths = {f"file:{path}": MISSING for path in cuda.TEXTS}
    return facts(
        items={
            "dpkg.list": dpkg({**CONVERGED, **(packages or {})}),
            "cuda.installed": said([]),
            "cuda.conda": said([]),
            "file:/var/lib/dpkg/alternatives/cuda": MISSING,
            "glob:/etc/apt/sources.list.d/*": {"paths": ["/etc/apt/sources.list.d/nvidia.list"]},
            "file:/etc/apt/sources.list.d/nvidia.list": text(SOURCE),
            "apt.policy": offered(),
            **dict.fromkeys((f"file:{p}" for p in APT), MISSING),
            **paths,
            **items,
        }
    )


def chosen(*toolkits: Part, cudnn: Part | None = CUDNN, nccl: Part | None = NCCL) -> Stack:
    first, *others = toolkits or (T13, T12)
    reasons = (Reason("cuda.version", "13.0: as asked for", "caller"),)
    driver = stack(branch=580, version="580.95.05", source="nvidia").driver
    return Stack(
        satisfiable=True,
        driver=driver,
        cuda=first,
        cudnn=cudnn,
        nccl=nccl,
        cuda_others=tuple(others),
        reasons=reasons,
    )


def plan(on: Facts | None = None, of: Stack | None = None, **variables: Any) -> cuda.CudaWanted:
    return cuda.wanted(on or host(), profile(**variables), of or chosen())


def finding(name: str, on: Facts, of: Stack | None = None, **variables: Any) -> Finding:
    return all_controls()[name].find(Judged(on, profile(**variables), of or chosen()))


def converged(**more: Any) -> Facts:
    """A host with both toolkits, cuDNN and NCCL as BOTH and two libraries ask for."""
    there = {
        "cuda-toolkit-13-0": "13.0.2-1", "cuda-toolkit-12-8": "12.8.1-1", **dict.fromkeys(CUDNN.packages, "9.20.0.48-1"),
        **dict.fromkeys(NCCL.packages, "2.30.7-1+cuda13.3"),
    }  # fmt: skip
    planned = plan(**BOTH)
    assert planned.refused is None, planned.refused
    written = {f"file:{f.path}": MISSING if f.text is None else text(f.text) for f in planned.files}
    toolkits = owned(toolkit("13.0.2", default=True), toolkit("12.8.1"))
    held = {"apt.holds": said("".join(f"{name}\n" for name in (*CUDNN.packages, *NCCL.packages)))}
    group = {"file:/var/lib/dpkg/alternatives/cuda": text(GROUP.format("manual"))}
    return host(there, **{**written, **toolkits, **held, **group, **more})


def test_nothing_is_installed_unless_it_is_asked_for() -> None:
    planned = plan()
    assert planned.refused is None
    assert planned.packages == planned.absent == ()
    assert all(file.text is None for file in planned.files)
    assert not planned.asked


def test_several_toolkits_stand_side_by_side_and_the_first_is_the_default() -> None:
    planned = plan(**BOTH)
    assert planned.packages == ("cuda-toolkit-13-0", "cuda-toolkit-12-8")
    assert (planned.default, planned.set_default, planned.priority) == ("/usr/local/cuda-13.0", True, 130)
    assert {f.path for f in planned.files if f.text and "/apt/" not in f.path} == set(cuda.TEXTS)
    other = plan(of=chosen(T12, T13), cuda_versions=["12.8", "13.0"])
    assert other.default == "/usr/local/cuda-12.8"


@pytest.mark.parametrize(
    "variables", [BOTH, {"cuda_versions": ["auto"]}, {**BOTH, "cuda_cudnn": "9", "cuda_nccl": "auto"}]
)
def test_no_package_brings_a_driver(variables: dict[str, Any]) -> None:
    names = [entry.partition("=")[0] for entry in plan(**variables).packages]
    assert names
    assert not [n for n in names if not re.fullmatch(r"cuda-toolkit-\d+-\d+|libcudnn\S+|libnccl\S+", n)]


def test_auto_is_what_fits_best_and_a_whole_release_is_exact() -> None:
    assert plan(cuda_versions=["auto"]).packages == ("cuda-toolkit-13-0",)
    whole = Part("12.8.0", T12.packages, ("cuda-toolkit-12-8=12.8.0-*",), "nvidia")
    assert plan(of=chosen(whole), cuda_versions=["12.8.0"]).packages == ("cuda-toolkit-12-8=12.8.0-1",)


def test_libraries_are_all_at_one_version_for_the_major_and_held() -> None:
    planned = plan(**BOTH, cuda_cudnn="9", cuda_nccl="2.30")
    assert planned.packages[2:] == (
        "libcudnn9-cuda-13=9.20.0.48-1", "libcudnn9-dev-cuda-13=9.20.0.48-1",
        "libnccl2=2.30.7-1+cuda13.3", "libnccl-dev=2.30.7-1+cuda13.3",
    )  # fmt: skip
    assert planned.holds == (*CUDNN.packages, *NCCL.packages)


@pytest.mark.parametrize(
    ("installed", "asked", "gets"),
    [
        ("2.28.7-1+cuda13.0", "2", "2.28.7-1+cuda13.0"),  # what is there and fits stays
        ("2.28.7-1+cuda13.0", "2.30", "2.30.7-1+cuda13.3"),
        ("2.30.7-1+cuda12.9", "2.30", "2.30.7-1+cuda13.3"),  # built for another major
        ("2.32.3-1+cuda13.3", "2", "2.32.3-1+cuda13.3"),  # newer than the catalog knows
        ("2.22.3-1", "2", "2.30.7-1+cuda13.3"),  # Debian's own, which names no CUDA
    ],
)
def test_what_is_installed_moves_only_where_it_does_not_fit(installed: str, asked: str, gets: str) -> None:
    on = host(dict.fromkeys(NCCL.packages, installed))
    assert plan(on, **BOTH, cuda_nccl=asked).packages[2:] == tuple(f"{name}={gets}" for name in NCCL.packages)


def test_a_release_that_the_cards_bound_is_not_passed() -> None:
    """cuDNN 9.11 left the cards before Turing: the set then names the whole release."""
    bound = Part("9.19.1", CUDNN.packages, ("libcudnn9-cuda-13=9.19.1.2-1",), "nvidia")
    on = host(dict.fromkeys(CUDNN.packages, "9.20.0.48-1"))
    planned = plan(on, chosen(cudnn=bound), **BOTH, cuda_cudnn="9")
    assert planned.packages[2] == "libcudnn9-cuda-13=9.19.1.2-1"


def test_a_library_that_the_archives_lack_is_refused_with_what_they_have() -> None:
    refused = str(plan(**BOTH, cuda_nccl="2.27").refused)
    assert "no libnccl2 2.27+cuda13." in refused
    assert "2.30.7-1+cuda13.3" in refused
    half = {**OFFERS, "libnccl-dev": ["2.28.7-1+cuda12.8"]}
    assert "no version of all of them" in str(
        plan(host(**{"apt.policy": offered(half)}), **BOTH, cuda_nccl="2").refused
    )


def test_without_the_archives_offer_names_are_left_open() -> None:
    planned = plan(host(**{"apt.policy": {"timed_out": True}}), **BOTH, cuda_cudnn="9")
    assert planned.refused is None
    assert "libcudnn9-cuda-13" in planned.packages
    assert not planned.exact
    assert plan(**BOTH).exact


def test_a_toolkit_of_the_run_installer_is_adopted_where_it_is_the_one() -> None:
    theirs = host(**owned(toolkit("12.8.1"), package=None))
    planned = plan(theirs, **BOTH)
    assert planned.packages == ("cuda-toolkit-13-0",)
    assert any("brought by no package and is used as it is" in why.says for why in planned.why)
    first = plan(theirs, of=chosen(T12), cuda_versions=["12.8"])
    assert first.packages == ()
    assert (first.default, first.set_default) == ("/usr/local/cuda-12.8", True)


def test_a_toolkit_in_the_way_is_refused_and_what_a_removal_left_is_not() -> None:
    whole = Part("12.8.0", T12.packages, (), "nvidia")
    theirs = host(**owned(toolkit("12.8.1"), package=None))
    assert "cuda-uninstaller" in str(plan(theirs, of=chosen(whole), cuda_versions=["12.8.0"]).refused)
    left = host(**owned(toolkit("12.8.1", nvcc=False), package=None))
    assert plan(left, of=chosen(T12), cuda_versions=["12.8"]).packages == ("cuda-toolkit-12-8",)


def test_condas_toolkits_are_left_alone_with_a_word() -> None:
    on = host(**{"cuda.conda": said([{"path": "/opt/miniconda3", "version": "12.4.131"}])})
    assert any("/opt/miniconda3, for programs of its own" in why.says for why in plan(on, **BOTH).why)


def test_debians_toolkit_needs_no_paths_and_its_cudnn_is_refused() -> None:
    debian = chosen(DEBIANS, cudnn=Part("8.5", ("nvidia-cudnn",), (), "debian"), nccl=None)
    planned = plan(of=debian, cuda_versions=["11.8"])
    assert planned.packages == ("nvidia-cuda-toolkit",)
    assert {f.path for f in planned.files} == {apt_sources.PATH, *cuda.TEXTS}
    assert all(file.text is None for file in planned.files if file.path in cuda.TEXTS)
    assert planned.default is None
    assert "asks for its licence" in str(plan(of=debian, cuda_versions=["11.8"], cuda_cudnn="8").refused)
    assert "no NCCL for CUDA 11.8" in str(plan(of=debian, cuda_versions=["11.8"], cuda_nccl="2").refused)


def test_only_what_is_named_goes() -> None:
    there = {
        "cuda-toolkit-12-4": "12.4.1-1", "cuda-nvcc-12-4": "12.4.131-1", "libcublas-12-4": "12.4.5.8-1",
        "cuda-toolkit-12-4-config-common": "12.4.127-1", "cuda-toolkit-12-config-common": "12.9.79-1",
        "cuda-toolkit-config-common": "13.0.96-1", "cuda-toolkit-12-8": "12.8.1-1", "libcudnn8": "8.9.7.29-1+cuda12.2",
    }  # fmt: skip
    on = host(there)
    assert plan(on, **BOTH).absent == ()
    gone = plan(on, **BOTH, cuda_absent=["12.4", "libcudnn8", "not-there"])
    assert set(gone.absent) == {n for n in there if "-12-4" in n} | {"libcudnn8"}
    assert "remove libcublas-12-4" in gone.steps
    # With the last toolkit of its major what they share goes, too.
    last = plan(on, of=chosen(T13), cuda_versions=["13.0"], cuda_absent=["12.4", "12.8"])
    assert "cuda-toolkit-12-config-common" in last.absent
    assert "cuda-toolkit-config-common" not in last.absent
    assert "cuda-toolkit-config-common" in plan(on, cuda_absent=["12.4", "12.8"]).absent


def test_another_majors_cudnn_is_named_before_it_goes() -> None:
    other = {"libcudnn9-cuda-12": "9.20.0.48-1", "libcudnn9-dev-cuda-12": "9.20.0.48-1"}
    refused = str(plan(host(other), **BOTH, cuda_cudnn="9").refused)
    assert "cuda_absent: [libcudnn9-cuda-12, libcudnn9-dev-cuda-12]" in refused
    assert plan(host(other), **BOTH, cuda_cudnn="9", cuda_absent=list(other)).refused is None
    assert plan(host(other), **BOTH).refused is None


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"cuda_versions": ["13"]}, "is no release such as"),
        ({"cuda_versions": [13.0]}, "is no release such as"),
        ({"cuda_versions": ["13.0", "auto"]}, "'auto' is no release"),
        ({"cuda_versions": ["12.8", "12.8.1"]}, "12.8 is there twice"),
        ({"cuda_cudnn": "9"}, "cuda_versions names none"),
        ({**BOTH, "cuda_absent": ["12.8"]}, "cuda_versions asks for it"),
        ({**BOTH, "cuda_absent": [12.8]}, "is neither a toolkit"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(variables: dict[str, Any], says: str) -> None:
    planned = plan(**variables)
    assert says in str(planned.refused)
    assert planned.packages == ()


def test_a_toolkit_of_no_package_is_not_removed_by_us() -> None:
    theirs = host(**owned(toolkit("12.4.1"), package=None))
    assert "/usr/local/cuda-12.4/bin/cuda-uninstaller" in str(plan(theirs, cuda_absent=["12.4"]).refused)


def test_the_repository_comes_with_the_first_toolkit_and_the_driver_is_kept_out_of_it() -> None:
    bare = host(
        **{"apt.policy": offered({"bash": ["5.2.15-2"]}), "file:/etc/apt/sources.list.d/nvidia.list": MISSING}
    )
    planned = plan(bare, **BOTH)
    assert planned.refused is None
    assert not planned.exact
    texts = {f.path: str(f.text) for f in planned.files}
    assert f"URIs: {URL}/" in texts[nvidia_repository.SOURCE]
    assert planned.keys[0].path == nvidia_repository.KEYRING
    assert "Pin: version 580." in texts[nvidia_repository.PIN]
    mirror = plan(bare, **BOTH, nvidia_driver_repository="https://mirror.example/cuda")
    assert "URIs: https://mirror.example/cuda/debian12/x86_64/" in str(
        {f.path: f.text for f in mirror.files}[nvidia_repository.SOURCE]
    )
    foreign = Stack(satisfiable=True, driver=stack().driver, cuda=T13)
    away = plan(bare, foreign, cuda_versions=["13.0"])
    assert "Pin-Priority: -1" in str({f.path: f.text for f in away.files}[nvidia_repository.PIN])


def test_without_a_set_nothing_is_guessed() -> None:
    assert "could be chosen: no card" in str(cuda.wanted(host(), profile(**BOTH), Unknown("no card")).refused)
    assert "no CUDA toolkit fits" in str(
        plan(of=Stack(satisfiable=True, driver=stack().driver), cuda_versions=["auto"]).refused
    )


ASKED: dict[str, Any] = {**BOTH, "cuda_cudnn": "9", "cuda_nccl": "2.30"}


@pytest.mark.parametrize("name", ["cuda.toolkit", "cudnn.cuda-match", "nccl.cuda-match"])
def test_a_converged_host_passes(name: str) -> None:
    found = finding(name, converged(), **ASKED)
    assert found.status is Status.PASS, found


@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        ("cuda.toolkit", {"file:/var/lib/dpkg/alternatives/cuda": text(GROUP.format("auto"))}, "by choice"),
        ("cuda.toolkit", owned(toolkit("13.0.2"), toolkit("12.8.1", default=True)), "does not lead to /usr/local/cuda-13.0"),
        ("cuda.toolkit", {f"file:{cuda.LOADER}": MISSING}, f"{cuda.LOADER} is missing"),
        ("cuda.toolkit", {f"file:{cuda.LOGIN}": text("export CUDA_HOME=/usr/local/cuda-12.8\n")}, "another text"),
        ("cudnn.cuda-match", {"apt.holds": said("")}, "libcudnn9-cuda-13 is not held"),
        ("nccl.cuda-match", {"apt.holds": said("")}, "libnccl2 is not held"),
    ],
)  # fmt: skip
def test_what_somebody_changed_puts_the_role_into_the_plan(
    name: str, changed: dict[str, Any], says: str
) -> None:
    found = finding(name, converged(**changed), **ASKED)
    assert (found.status, found.role) == (Status.FAIL, "cuda")
    assert says in found.actual


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("cuda.toolkit", {"cuda_versions": ["13.0", "12.9"]}),
        ("cuda.toolkit", {"cuda_versions": []}),
        ("cuda.toolkit", {"cuda_absent": ["libnccl-dev"]}),
        ("cudnn.cuda-match", {"cuda_cudnn": "9.19"}),
        ("nccl.cuda-match", {"cuda_nccl": "2.28"}),
    ],
)
def test_another_value_puts_the_role_into_the_plan(name: str, variables: dict[str, Any]) -> None:
    more = {"12.9": Part("12.9", ("cuda-toolkit-12-9",), (), "nvidia")}
    asked = {**ASKED, **variables}
    if asked["cuda_versions"] == []:
        asked |= {"cuda_cudnn": None, "cuda_nccl": None}
    toolkits = (
        [more.get(v, T13) for v in asked["cuda_versions"]] if "12.9" in asked["cuda_versions"] else [T13, T12]
    )
    found = finding(name, converged(), chosen(*toolkits), **asked)
    assert (found.status, found.role) == (Status.FAIL, "cuda"), found


def test_what_others_set_up_is_judged_and_not_planned() -> None:
    broken = host(**owned(toolkit("12.8.1", default=True, nvcc=False)))
    found = finding("cuda.toolkit", broken)
    assert (found.status, found.role) == (Status.WARN, None)
    wrong = host({"libnccl2": "2.30.7-1+cuda12.9"}, **owned(toolkit("13.0.2", default=True)))
    nccl = finding("nccl.cuda-match", wrong)
    assert (nccl.status, nccl.role) == (Status.FAIL, None)
