"""Role profiling_tools: which packages, whether sysstat collects, who may read counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from planner_host import CONVERGED, KERNEL, MISSING, dpkg, facts, profile, said, stack, text, unit

from provision.controls import judge
from provision.controls.model import Status
from provision.facts.known import Unknown
from provision.planners import profiling_counters as counters
from provision.planners import profiling_tools
from provision.profile.declared import declared
from provision.recording.items import FILES
from provision.recording.names import POLICY, UNITS

if TYPE_CHECKING:
    from provision.facts import Facts

ALL = list(profiling_tools.tools())
MODPROBE, SYSCTL = f"file:{counters.MODPROBE}", f"file:{counters.SYSCTL}"
LIST = "glob:/etc/modprobe.d/*"
UBUNTU = text('ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n')
ON = "\n\n".join(unit(name) for name in profiling_tools.COLLECTING)


def offers(*names: str) -> dict[str, Any]:
    return said(
        "".join(
            f"{name}:\n  Installed: (none)\n  Candidate: 1.0\n  Version table:\n     1.0 500\n"
            "        500 http://deb.example/debian bookworm/main amd64 Packages\n"
            for name in names
        )
    )


def host(**items: Any) -> Facts:
    quiet = {
        MODPROBE: MISSING,
        SYSCTL: MISSING,
        LIST: {"paths": []},
        "sysctl": said(f"{counters.NAME} = 3\n"),
    }
    return facts(items={**quiet, **items})


def plan(seen: Facts | None = None, **wanted: Any) -> Any:
    return profiling_tools.wanted(seen or host(), profile(**wanted), stack())


def verdicts(seen: Facts, **wanted: Any) -> dict[str, Any]:
    found = judge(seen, profile(**wanted), Unknown("none"))
    return {f.control: f for f in found if f.control.startswith("profiling.")}


def test_nothing_is_wanted_where_nothing_is_named() -> None:
    planned = plan()
    assert (planned.packages, planned.units, planned.files, planned.steps) == ((), (), (), ())
    assert {f.status for f in verdicts(host()).values()} == {Status.SKIP}


def test_what_is_named_is_installed_and_what_is_there_is_not() -> None:
    seen = host(**{"dpkg.list": dpkg({**CONVERGED, "hwloc": "2.9.0-1"})})
    assert plan(seen, profiling_tools_install=["perf", "fio", "hwloc"]).packages == ("linux-perf", "fio")
    wanted = {"profiling_tools_install": ["fio"]}
    assert verdicts(host(), **wanted)["profiling.tools"].status is Status.FAIL
    there = host(**{"dpkg.list": dpkg({**CONVERGED, "fio": "3.33-3"})})
    assert verdicts(there, **wanted)["profiling.tools"].status is Status.PASS


def test_perf_of_ubuntu_is_that_of_the_running_kernel() -> None:
    planned = plan(host(**{"os-release": UBUNTU}), profiling_tools_install=["perf"])
    assert planned.packages == (f"linux-tools-{KERNEL}",)


@pytest.mark.parametrize(
    ("version", "status"), [("6.1.192-3", "pass"), ("6.12.9-1~bpo12+1", "warn"), ("6.10.1-1", "warn")]
)
def test_perf_of_another_series_is_told(version: str, status: str) -> None:
    seen = host(**{"dpkg.list": dpkg({**CONVERGED, "linux-perf": version})})
    found = verdicts(seen, profiling_tools_install=["perf"])["profiling.perf"]
    assert (found.status, found.role) == (status, None)


def test_nsight_is_left_out_and_told_where_no_archive_has_it() -> None:
    asked = {"profiling_tools_install": ["nsight-systems", "nsight-compute"]}
    planned = plan(host(**{"apt.policy": offers("e2fsprogs")}), **asked)
    assert planned.packages == ()
    assert ["is left out" in why.says for why in planned.why] == [True, True]
    found = verdicts(host(**{"apt.policy": offers("e2fsprogs")}), **asked)["profiling.tools"]
    assert (found.status, len(found.evidence)) == (Status.PASS, 2)
    there = plan(host(**{"apt.policy": offers("nsight-systems", "nsight-compute")}), **asked)
    assert there.packages == ("nsight-systems", "nsight-compute")


def test_a_system_without_apt_is_refused() -> None:
    seen = host(**{"os-release": text('ID=rhel\nVERSION_ID="9.4"\n')})
    assert "this host has rhel" in plan(seen, profiling_tools_install=["fio"]).refused
    assert plan(seen).refused is None


def test_sysstat_collects() -> None:
    asked = {"profiling_tools_install": ["sysstat"]}
    assert [(u.name, u.enabled, u.active) for u in plan(**asked).units] == [
        (name, True, True) for name in profiling_tools.COLLECTING
    ]
    installed = dpkg({**CONVERGED, "sysstat": "12.6.1-1"})
    on = host(**{"dpkg.list": installed, "units": said(ON)})
    assert verdicts(on, **asked)["profiling.collecting"].status is Status.PASS
    off = host(
        **{
            "dpkg.list": installed,
            "units": said(ON.replace("UnitFileState=enabled", "UnitFileState=disabled", 1)),
        }
    )
    assert verdicts(off, **asked)["profiling.collecting"].status is Status.FAIL


def params(closed: int) -> dict[str, Any]:
    return {"file:/proc/driver/nvidia/params": text(f"EnableMSI: 1\nRmProfilingAdminOnly: {closed}\n")}


def test_counters_of_gpus_are_opened_only_where_asked_and_the_price_is_told() -> None:
    asked = {"profiling_tools_gpu_counters": True}
    (file,) = plan(**asked).files
    assert (file.path, file.text.splitlines()[1]) == (
        counters.MODPROBE,
        "options nvidia NVreg_RestrictProfilingToAdminUsers=0",
    )
    assert any("CVE-2018-6260" in why.says for why in plan(**asked).why)
    written = {MODPROBE: text(file.text)}
    name = "profiling.gpu-counters"
    assert verdicts(host(), **asked)[name].status is Status.FAIL
    waits = verdicts(host(**written, **params(1)), **asked)[name]
    assert (waits.status, str(waits.disrupts)) == (Status.FAIL, "reboot")
    assert verdicts(host(**written, **params(0)), **asked)[name].status is Status.PASS
    assert verdicts(host(**written))[name].status is Status.FAIL
    assert plan(host(**written)).files[0].text is None


def test_a_file_that_closes_them_again_refuses() -> None:
    other = "/etc/modprobe.d/site.conf"
    line = text("options nvidia NVreg_RestrictProfilingToAdminUsers=1\n")
    seen = host(**{LIST: {"paths": [other]}, f"file:{other}": line})
    assert other in plan(seen, profiling_tools_gpu_counters=True).refused


def test_counters_of_processors_are_as_asked() -> None:
    asked, name = {"profiling_tools_perf_event_paranoid": 2}, "profiling.cpu-counters"
    planned = plan(**asked)
    assert planned.steps == (f"set {counters.NAME} to 2 (now 3)",)
    written = {SYSCTL: text(planned.files[0].text)}
    assert verdicts(host(**written), **asked)[name].status is Status.FAIL
    set_ = {**written, "sysctl": said(f"{counters.NAME} = 2\n")}
    assert verdicts(host(**set_), **asked)[name].status is Status.PASS
    assert plan(host(**set_), **asked).steps == ()
    assert verdicts(host(**set_), profiling_tools_perf_event_paranoid=1)[name].status is Status.FAIL
    assert verdicts(host(**set_))[name].status is Status.FAIL
    assert plan(host(**set_)).files[0].text is None


def test_a_host_that_shares_its_kernel_is_left_alone() -> None:
    seen = host(virtualization=said("lxc\n"))
    asked: dict[str, Any] = {"profiling_tools_gpu_counters": True, "profiling_tools_perf_event_paranoid": 2}
    planned = plan(seen, **asked)
    assert (planned.files, planned.steps, len(planned.why)) == ((), (), 2)
    assert {verdicts(seen, **asked)[f"profiling.{kind}-counters"].status for kind in ("gpu", "cpu")} == {
        Status.SKIP
    }


def test_every_variable_and_name_is_known() -> None:
    ours = {name for name, variable in declared().items() if variable.role == "profiling_tools"}
    assert ours == {profiling_tools.VARIABLE, counters.GPU, counters.CPU}
    assert declared()[profiling_tools.VARIABLE].spec["choices"] == ALL
    assert {counters.MODPROBE, counters.SYSCTL} <= set(FILES)
    assert set(profiling_tools.COLLECTING) <= set(UNITS)
    packages = {
        n for row in profiling_tools.tools().values() for names in row["packages"].values() for n in names
    }
    assert {name for name in packages if "{" not in name} <= set(POLICY)
