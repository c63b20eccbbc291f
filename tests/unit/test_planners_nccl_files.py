"""Role nccl beside /etc/nccl.conf: the environment file, debug output with an end, what a platform wants."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest
from planner_host import MISSING, facts, gpu, port, profile, said, stack, text, with_gpus

from provision.controls.model import Judged, Status
from provision.controls.nccl_files import debug, environment
from provision.facts.known import Unknown
from provision.planners import nccl, nccl_env, nccl_file
from provision.profile.shapes import SHAPES

CONF, ENV = "file:/etc/nccl.conf", f"file:{nccl_env.PATH}"
INFO = {"level": "info", "subsystems": ["init", "NET"], "until": "2026-12-05"}


def plan(items: dict[str, Any] | None = None, **wanted: Any) -> dict[str, str | None]:
    planned = nccl.wanted(
        facts(items={CONF: MISSING, ENV: MISSING, **(items or {})}), profile(**wanted), stack()
    )
    assert planned.refused is None, planned.refused
    return {file.path: file.text for file in planned.files}


def judge(control: Any, items: dict[str, Any], **wanted: Any) -> Any:
    return control(Judged(facts(items=items), profile(**wanted), Unknown("none")))


def as_docker_reads(env: str) -> dict[str, str]:
    """`docker run --env-file`: a line is a comment or NAME=VALUE as it stands."""
    return dict(line.split("=", 1) for line in env.splitlines() if line and not line.startswith("#"))


def test_the_environment_file_says_what_nccl_reads() -> None:
    there = "NCCL_IB_TIMEOUT=22\nNCCL_DEBUG=WARN\n"
    made = plan({CONF: text(there)}, nccl_environment=True, nccl_variables={"NCCL_ALGO": "^Tree"})
    conf, env = made[nccl_file.PATH], made[nccl_env.PATH]
    assert conf is not None
    assert env is not None
    assert as_docker_reads(env) == nccl_file.effective(conf)
    assert as_docker_reads(env)["NCCL_SOCKET_IFNAME"] == "=ens5"


@pytest.mark.parametrize("value", ['a"b', "a\\b", " a", "a\t", "it's"])
def test_a_value_that_docker_and_systemd_read_differently_is_left_out_of_it(value: str) -> None:
    env = nccl_env.render({"NCCL_ALGO": value, "NCCL_IB_TIMEOUT": "22", "not a name": "x"})
    assert as_docker_reads(env) == {"NCCL_IB_TIMEOUT": "22"}
    assert "# NCCL_ALGO is left out" in env


def test_an_environment_file_that_nobody_asks_for_goes_away_and_is_not_made() -> None:
    assert nccl_env.PATH not in plan()
    assert plan({ENV: text("NCCL_DEBUG=WARN\n")})[nccl_env.PATH] is None


def test_drift_between_the_two_files_is_seen() -> None:
    made = plan(nccl_environment=True)
    there = {CONF: text(made[nccl_file.PATH] or ""), ENV: text(made[nccl_env.PATH] or "")}
    assert judge(environment, there, nccl_environment=True).status is Status.PASS
    there[ENV] = text((made[nccl_env.PATH] or "").replace("=ens5", "=eth9") + "NCCL_ALGO=Ring\n")
    drifted = judge(environment, there, nccl_environment=True)
    assert (drifted.status, drifted.actual) == (Status.FAIL, "NCCL_ALGO, NCCL_SOCKET_IFNAME differ")
    assert judge(environment, {**there, ENV: MISSING}, nccl_environment=True).status is Status.FAIL
    assert (
        judge(environment, {**there, ENV: {"denied": True}}, nccl_environment=True).status is Status.UNKNOWN
    )
    assert judge(environment, there).status is Status.FAIL
    assert judge(environment, {**there, ENV: MISSING}).status is Status.SKIP


def test_debug_output_ends_by_itself() -> None:
    conf = plan(nccl_debug=INFO)[nccl_file.PATH]
    found = nccl_file.effective(conf or "")
    assert (found["NCCL_DEBUG"], found["NCCL_DEBUG_SUBSYS"]) == ("INFO", "INIT,NET")
    assert judge(debug, {CONF: text(conf or "")}, nccl_debug=INFO).status is Status.PASS
    over = {**INFO, "until": date(2026, 11, 29)}
    ended = judge(debug, {CONF: text(conf or "")}, nccl_debug=over)
    assert ended.status is Status.FAIL
    assert "was to end on 2026-11-29" in ended.actual
    assert "NCCL_DEBUG" not in (plan({CONF: text(conf or "")}, nccl_debug=over)[nccl_file.PATH] or "")
    assert judge(debug, {CONF: text(conf or "")}).status is Status.FAIL


def test_debug_output_lasts_through_its_last_day() -> None:
    assert "NCCL_DEBUG=TRACE" in (
        plan(nccl_debug={"level": "TRACE", "until": "2026-11-30"})[nccl_file.PATH] or ""
    )


def test_debug_output_of_somebody_else_is_told_and_left_alone() -> None:
    there = {CONF: text("NCCL_DEBUG=INFO\n")}
    found = judge(debug, there)
    assert (found.status, found.mendable) == (Status.WARN, False)
    assert "NCCL_DEBUG=INFO" in (plan(there)[nccl_file.PATH] or "")
    assert judge(debug, {CONF: text("NCCL_DEBUG=WARN\n")}).status is Status.PASS
    assert judge(debug, {CONF: MISSING}).status is Status.SKIP


@pytest.mark.parametrize(
    "wanted", [{"NCCL_DEBUG": "INFO"}, {"NCCL_DEBUG_SUBSYS": "ALL"}, {"NCCL_DEBUG_FILE": "/x"}]
)
def test_debug_output_for_ever_is_refused(wanted: dict[str, str]) -> None:
    refused = nccl.wanted(facts(), profile(nccl_variables=wanted), stack()).refused
    assert refused is not None
    assert "nccl_debug" in refused
    assert "NCCL_DEBUG=WARN" in (plan(nccl_variables={"NCCL_DEBUG": "WARN"})[nccl_file.PATH] or "")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (INFO, None),
        ({"level": "INFO", "until": date(2026, 12, 5), "file": "/var/tmp/nccl.%h.%p"}, None),
        ({"level": "INFO"}, "until"),
        ({"level": "LOUD", "until": "2026-12-05"}, "no level"),
        ({"level": "INFO", "until": "soon"}, "no day"),
        ({"level": "INFO", "until": "2026-12-05", "subsystem": "NET"}, "subsystems"),
        ({"level": "INFO", "until": "2026-12-05", "subsystems": "NET"}, "list"),
        ({"level": "INFO", "until": "2026-12-05", "file": "a b"}, "absolute path"),
        ("INFO", "level, until"),
    ],
)
def test_the_shape_of_nccl_debug(value: Any, problem: str | None) -> None:
    told = SHAPES["nccl_debug"](value)
    assert told is None if problem is None else problem in (told or "")


def test_a_play_without_the_command_is_told_of_a_wrong_shape_too() -> None:
    refused = nccl.wanted(facts(), profile(nccl_debug={"level": "INFO"}), stack()).refused
    assert refused == "nccl_debug: is {level, until} and may have subsystems and file."


AZURE = {
    "virtualization": said("microsoft\n"),
    "dmi": said({"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}),
    "rdma": said([port("mlx5_ib0", rate="200 Gb/sec")]),
    CONF: MISSING,
}
TOPO = "/opt/microsoft/ndv4/topo.xml"


def azure(name: str, count: int = 8, topology: str | None = TOPO, **changed: Any) -> Any:
    items = {**AZURE, **({f"file:{topology}": text("<system/>")} if topology else {}), **changed}
    host = with_gpus(facts(items=items), *(gpu(n, name=name) for n in range(count)))
    return nccl.settings(host, profile())


def test_an_azure_machine_gets_its_topology_file_and_relaxed_ordering_with_their_source() -> None:
    chosen = azure("NVIDIA A100-SXM4-80GB")
    assert (chosen.values["NCCL_TOPO_FILE"], chosen.values["NCCL_IB_PCI_RELAXED_ORDERING"]) == (TOPO, "1")
    assert any("azhpc-images" in why.source for why in chosen.why if why.about == "NCCL_TOPO_FILE")
    hopper = azure("NVIDIA H200", topology="/opt/microsoft/ndv5-topo.xml")
    assert hopper.values["NCCL_TOPO_FILE"] == "/opt/microsoft/ndv5-topo.xml"


def test_a_topology_file_that_is_not_there_is_not_named_and_told() -> None:
    chosen = azure("NVIDIA A100-SXM4-80GB", topology=None)
    assert "NCCL_TOPO_FILE" not in chosen.values
    assert any(re.search("not set.*ndv4", why.says) for why in chosen.why)


@pytest.mark.parametrize(
    "other",
    [
        azure("NVIDIA A100-SXM4-80GB", 4),
        azure("NVIDIA A100 80GB PCIe"),
        azure("NVIDIA H100 80GB HBM3"),
        azure("NVIDIA A100-SXM4-80GB", virtualization=said("none\n", 1)),
        azure("NVIDIA A100-SXM4-80GB", dmi=said({"sys_vendor": "Supermicro"})),
        azure("NVIDIA A100-SXM4-80GB", dmi={"denied": True}),
    ],
    ids=["a part", "other cards", "the file of other cards", "no guest", "another maker", "not known"],
)
def test_what_is_no_such_machine_gets_no_file_of_it(other: Any) -> None:
    assert "NCCL_TOPO_FILE" not in other.values


def test_a_container_of_it_needs_the_file_too() -> None:
    assert f"-v {TOPO}:{TOPO}:ro" in nccl_env.render({"NCCL_TOPO_FILE": TOPO})
