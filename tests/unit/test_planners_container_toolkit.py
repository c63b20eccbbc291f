"""The role container_toolkit: what it wants of a host, what it refuses, and that a control reads each of its variables."""

# ruff: noqa: E501

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cases import HEALTHY, VARIABLES

from provision.controls import judge
from provision.controls.model import Status
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.plan.changes import changes
from provision.planners import container_devices, container_sources, container_toolkit, docker_settings
from provision.profile.compose import compose
from provision.profile.declared import declared
from provision.recording.items import FILES

if TYPE_CHECKING:
    from provision.controls.model import Finding
    from provision.planners.container_toolkit import ToolkitWanted
    from provision.profile.model import Profile

ROLE = "container_toolkit"
NO_STACK = Unknown("not looked for")
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----"
MISSING = {"missing": True}
DAEMON = "file:/etc/docker/daemon.json"


def said(text: Any, rc: int = 0) -> dict[str, Any]:
    return {"rc": rc, "stdout": text if isinstance(text, str) else json.dumps(text), "stderr": ""}


def text(content: str) -> dict[str, Any]:
    return {"text": content, "mode": "0644", "owner": "root"}


def profile(**variables: Any) -> Profile:
    """One that says something about containers, if only this."""
    return compose(
        "test", {}, {}, {**VARIABLES, "container_toolkit_interrupt_containers": False, **variables}
    )


def host(**changed: Any) -> Facts:
    """The healthy host, which has docker.io, toolkit 1.19.0 and driver 535; `items` are answers of its recording."""
    return Facts(replace(HEALTHY, items={**HEALTHY.items, **changed.get("items", {})}))


def wanted(facts: Facts | None = None, **variables: Any) -> ToolkitWanted:
    return container_toolkit.wanted(facts or host(), profile(**variables), NO_STACK)


def packages(**versions: str | None) -> dict[str, Any]:
    """The healthy host's packages with some at another version, or gone; `__` stands for a dash."""
    lines = []
    for line in HEALTHY.items["dpkg.list"]["stdout"].splitlines():
        state, name, version, arch = line.split("\t")
        version = versions.pop(name.replace("-", "__").replace(".", "_"), version)
        lines += [f"{state}\t{name}\t{version}\t{arch}"] if version else []
    lines += [
        f"ii \t{name.replace('__', '-')}\t{version}\tamd64" for name, version in versions.items() if version
    ]
    return said("\n".join(lines) + "\n")


NO_TOOLKIT: dict[str, None] = dict.fromkeys(
    (
        "nvidia__container__toolkit",
        "nvidia__container__toolkit__base",
        "libnvidia__container__tools",
        "libnvidia__container1",
    )
)
NO_DOCKER = {
    "dpkg.list": packages(docker_io=None, containerd=None, **NO_TOOLKIT),
    "docker.info": MISSING,
    "docker.unit": said("No files found for docker.service.\n", 1),
    DAEMON: MISSING,
    "cdi": said([]),
    "units": said(HEALTHY.items["units"]["stdout"].replace("Id=docker.service\nNames=docker.service\nLoadState=loaded\nActiveState=active", "Id=docker.service\nNames=docker.service\nLoadState=not-found\nActiveState=inactive")),
    "docker.started": said({"dockerd": None, "hook": None}),
}  # fmt: skip


def offers(
    *versions: str, name: str = "nvidia-container-toolkit", uri: str = "https://nvidia.github.io/x"
) -> str:
    table = "".join(f"     {version} 600\n        600 {uri}  Packages\n" for version in versions)
    return f"{name}:\n  Installed: (none)\n  Candidate: {versions[0]}\n  Version table:\n{table}"


def archive(*versions: str) -> dict[str, Any]:
    return said("".join(offers(*versions, name=name) for name in container_toolkit.names()["toolkit"]))


# What the profile names


def test_a_host_that_has_it_all_is_left_alone() -> None:
    whole = wanted()
    assert whole.refused is None
    assert whole.steps == ()
    assert [str(c) for c in changes(whole, host())] == []
    assert whole.version == "1.19.0-1"


def test_the_newest_release_that_has_all_four_packages_is_taken() -> None:
    gone = {
        "dpkg.list": packages(**NO_TOOLKIT),
        "apt.policy": archive("1.20.0~rc.1-1", "1.19.1-1", "1.9.0-1"),
    }
    assert wanted(host(items=gone)).version == "1.19.1-1"
    assert wanted(host(items=gone), container_toolkit_version="1.9").version == "1.9.0-1"
    # One package lacks the newest.
    text_ = gone["apt.policy"]["stdout"] + offers("1.21.0-1", "1.19.1-1")
    assert wanted(host(items={**gone, "apt.policy": said(text_)})).version == "1.19.1-1"
    nothing = wanted(host(items={**gone, "apt.policy": said("")}))
    assert (nothing.version, nothing.exact) == (None, False)
    assert "nvidia-container-toolkit" in nothing.packages


def test_two_versions_beside_each_other_are_brought_to_one() -> None:
    mixed = {
        "dpkg.list": packages(libnvidia__container1="1.18.0-1"),
        "apt.policy": archive("1.20.1-1", "1.19.0-1"),
    }
    assert wanted(host(items=mixed)).version == "1.20.1-1"
    assert {p.partition("=")[2] for p in wanted(host(items=mixed)).packages} == {"1.20.1-1"}


def test_docker_is_adopted_and_otherwise_installed_only_where_that_is_asked_for() -> None:
    assert not any("docker" in p for p in wanted().packages)
    bare = host(items={**NO_DOCKER, "apt.policy": archive("1.20.1-1")})
    assert "container_toolkit_install_docker: true installs it" in str(wanted(bare).refused)
    whole = wanted(bare, container_toolkit_install_docker=True)
    assert whole.packages[0] == "docker.io"
    policy = archive("1.20.1-1")["stdout"] + offers("26.1.5", name="docker-cli", uri="http://deb.example")
    debian13 = host(items={**NO_DOCKER, "apt.policy": said(policy)})
    assert wanted(debian13, container_toolkit_install_docker=True).packages[:2] == ("docker.io", "docker-cli")
    policy += offers("5:29.0.0", name="docker-ce", uri="https://download.docker.com/linux/debian")
    theirs = host(items={**NO_DOCKER, "apt.policy": said(policy)})
    assert wanted(theirs, container_toolkit_install_docker=True).packages[:3] == (
        "docker-ce",
        "docker-ce-cli",
        "containerd.io",
    )


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ({"pci": said([])}, "no NVIDIA GPU"),
        ({"units": {"append": "snap"}}, "snap remove docker"),
        ({"dpkg.list": packages(docker_io=None, containerd=None, containerd_io=None, **NO_TOOLKIT), "docker.info": MISSING}, "container_toolkit_install_docker"),
        ({"units": said("Id=docker.service\nNames=docker.service\nLoadState=masked\nActiveState=inactive\n")}, "systemctl unmask docker.service"),
        ({"docker.info": said("Cannot connect", 1)}, "docker runs and does not answer"),
        ({DAEMON: text('{"a": 1,}')}, "line 1, column"),
        ({DAEMON: text('{\n "a": 1, "a": 2}')}, "stands a second time in its object at line 2, column 10"),
        ({DAEMON: {"not_asked": "it is a directory"}}, "a directory"),
        ({DAEMON: {"denied": True}}, "no right to read it"),
        ({DAEMON: text('{"hosts": ["fd://"]}')}, "hosts stands in /etc/docker/daemon.json and on docker's command line"),
        ({DAEMON: text('{"runtimes": []}')}, "runtimes is no object"),
        ({"docker.unit": said("# /x\nExecStart=/usr/sbin/dockerd --default-ulimit memlock=-1\n"), DAEMON: text("{}")}, "command line sets default-ulimits to 'memlock=-1'"),
        ({"file:/etc/apt/sources.list.d/nvidia-docker.list": text("deb https://nvidia.github.io/nvidia-docker/debian11/amd64 /\ndeb https://other.example/ x main\n")}, "line 2, which is left to you"),
    ],
)  # fmt: skip
def test_refusals_name_the_way_out(items: dict[str, Any], says: str) -> None:
    if "append" in items.get("units", {}):
        snap = "\n\nId=snap.docker.dockerd.service\nNames=snap.docker.dockerd.service\nLoadState=loaded\nActiveState=active\n"
        items = {
            "units": said(
                HEALTHY.items["units"]["stdout"].replace("Id=snap.docker", "Id=was").rstrip() + snap
            ),
            "dpkg.list": packages(docker_io=None),
        }
    whole = wanted(host(items=items))
    assert says in str(whole.refused)
    assert (whole.packages, whole.files, whole.settings) == ((), (), {})


# daemon.json


def test_settings_of_others_are_neither_named_nor_removed() -> None:
    there = {"log-opts": {"max-size": "10m"}, "runtimes": {"kata": {"path": "/opt/kata"}}}
    whole = wanted(host(items={DAEMON: text(json.dumps(there))}), container_toolkit_default_shm_size="16G")
    assert set(whole.settings) == {"runtimes", "default-shm-size", "default-ulimits"}
    assert set(whole.settings["runtimes"]) == {"nvidia"}
    assert whole.remove == ()


def test_the_same_size_in_other_words_is_left() -> None:
    there = json.loads(HEALTHY.items[DAEMON]["text"]) | {"default-shm-size": "16384m"}
    whole = wanted(host(items={DAEMON: text(json.dumps(there))}), container_toolkit_default_shm_size="16G")
    assert whole.steps == ()


def test_a_flag_that_says_the_same_is_enough() -> None:
    unit = said(
        "# /lib/systemd/system/docker.service\nExecStart=/usr/sbin/dockerd -H fd:// --default-shm-size 16g\n"
    )
    whole = wanted(host(items={"docker.unit": unit}), container_toolkit_default_shm_size="16G")
    assert whole.refused is None
    assert "default-shm-size" not in whole.settings


def test_what_we_set_once_and_nobody_changed_since_is_taken_back() -> None:
    ours = [
        {"path": ["default-shm-size"], "value": "16G"},
        {"path": ["default-ulimits", "stack"], "value": 1},
    ]
    there = json.loads(HEALTHY.items[DAEMON]["text"]) | {"default-shm-size": "16G"}
    items = {DAEMON: text(json.dumps(there)), f"file:{docker_settings.OURS}": text(json.dumps(ours))}
    whole = wanted(host(items=items))
    assert whole.remove == (("default-shm-size",),)
    assert "take default-shm-size out of /etc/docker/daemon.json" in whole.steps
    there["default-shm-size"] = "32G"  # somebody's own since
    assert wanted(host(items={**items, DAEMON: text(json.dumps(there))})).remove == ()


def test_a_host_that_may_raise_no_limit_gives_what_it_has() -> None:
    poor = {
        "rights": said({"user": "root", "root": True, "capabilities": "00000000fcecbfff"}),
        "limits": said({"session": {"memlock": [8388608, 8388608]}, "services": {}, "systemd": {}}),
    }
    whole = wanted(host(items=poor))
    assert whole.settings["default-ulimits"]["memlock"] == {
        "Name": "memlock",
        "Hard": 8388608,
        "Soft": 8388608,
    }
    assert any("may not raise limits" in why.says for why in whole.why)
    assert (
        wanted(host(items=poor), limits_memlock=4096).settings["default-ulimits"]["memlock"]["Hard"] == 4096
    )
    assert wanted().settings["default-ulimits"]["memlock"]["Hard"] == -1


def running(count: int, *, live: bool = False) -> dict[str, Any]:
    info = json.loads(HEALTHY.items["docker.info"]["stdout"])
    return said({**info, "ContainersRunning": count, "LiveRestoreEnabled": live})


@pytest.mark.parametrize(
    ("items", "variables", "refused"),
    [
        ({"docker.info": running(2)}, {}, False),  # nothing changes
        ({"docker.info": running(2)}, {"limits_memlock": 4096}, True),
        ({"docker.info": running(0)}, {"limits_memlock": 4096}, False),
        ({"docker.info": running(2, live=True)}, {"limits_memlock": 4096}, False),
        (
            {"docker.info": running(2)},
            {"limits_memlock": 4096, "container_toolkit_interrupt_containers": True},
            False,
        ),
        ({"docker.info": running(1), f"file:{docker_settings.UNAPPLIED}": text("x")}, {}, True),
        ({"docker.info": running(1), "docker.started": said({"dockerd": 10, "hook": 20})}, {}, True),
        (
            {
                "docker.info": running(1),
                "dpkg.list": packages(**NO_TOOLKIT),
                "apt.policy": archive("1.20.1-1"),
            },
            {},
            True,
        ),
    ],
)
def test_containers_are_not_ended_unless_that_is_allowed(
    items: dict[str, Any], variables: dict[str, Any], refused: bool
) -> None:
    whole = wanted(host(items=items), **variables)
    assert (whole.refused is not None) is refused
    if refused:
        assert "container_toolkit_interrupt_containers: true" in str(whole.refused)


# Sources


def test_somebodys_own_source_is_used_and_none_put_beside_it() -> None:
    theirs = {
        "file:/etc/apt/sources.list.d/ctk.list": text(
            "deb [signed-by=/k.gpg] https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /\n"
        )
    }
    gone = {"dpkg.list": packages(**NO_TOOLKIT), "apt.policy": archive("1.20.1-1"), "docker.info": running(0)}
    files = {f.path: f.text for f in wanted(host(items={**gone, **theirs})).files}
    assert (files[container_sources.PATH], files[container_sources.KEY]) == (None, None)
    files = {f.path: f.text for f in wanted(host(items=gone)).files}
    assert "URIs: https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)\nSuites: /\n" in str(
        files[container_sources.PATH]
    )
    [key] = wanted(host(items=gone)).keys
    assert key.urls == ("https://nvidia.github.io/libnvidia-container/gpgkey",)
    assert key.fingerprints == ("C95B321B61E88C1809C4F759DDCAE044F796ECB0",)
    # Whoever names an address of their own vouches for what is there.
    [key] = wanted(host(items=gone), container_toolkit_repository_key="https://mirror.example/key").keys
    assert (key.urls, key.fingerprints) == (("https://mirror.example/key",), ())


def test_a_key_may_be_given_as_text_and_nothing_else() -> None:
    gone = {"dpkg.list": packages(**NO_TOOLKIT), "apt.policy": archive("1.20.1-1"), "docker.info": running(0)}
    whole = wanted(host(items=gone), container_toolkit_repository_key=KEY)
    assert whole.keys == ()
    assert {f.path: f.text for f in whole.files}[container_sources.KEY] == KEY + "\n"
    assert "address of the key" in str(
        wanted(host(items=gone), container_toolkit_repository_key="/root/key").refused
    )


def test_the_retired_packages_and_repositories_go() -> None:
    old = {
        "dpkg.list": packages(nvidia__docker2="2.13.0-1"),
        "file:/etc/apt/sources.list.d/nvidia-docker.list": text(
            "deb https://nvidia.github.io/libnvidia-container/stable/debian11/$(ARCH) /\ndeb https://nvidia.github.io/nvidia-docker/debian11/$(ARCH) /\n"
        ),
    }
    whole = wanted(host(items=old))
    assert whole.absent == ("nvidia-docker2",)
    assert {f.path: f.text for f in whole.files}["/etc/apt/sources.list.d/nvidia-docker.list"] is None


# Devices


def files_of(whole: ToolkitWanted) -> set[str]:
    return {f.path.rpartition("/")[2] for f in whole.files if f.text is not None}


def test_the_specification_follows_the_driver() -> None:
    cdi = said(
        [
            {
                "path": "/etc/cdi/nvidia.yaml",
                "kind": "nvidia.com/gpu",
                "versions": ["530.30.02"],
                "devices": ["all"],
            }
        ]
    )
    assert wanted(host(items={"cdi": cdi})).refresh == ("/etc/cdi/nvidia.yaml",)
    assert wanted(host(items={"cdi": said([])})).refresh == ("/var/run/cdi/nvidia.yaml",)
    moved = {
        "cdi": said([]),
        f"file:{container_devices.THEIR_ENV}": text("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/etc/cdi/gpu.yaml\n"),
    }
    assert wanted(host(items=moved)).refresh == ("/etc/cdi/gpu.yaml",)
    assert wanted().refresh == ()


def test_releases_without_refreshing_units_and_containers_get_ours() -> None:
    old = {"dpkg.list": packages(**dict.fromkeys(NO_TOOLKIT, "1.17.8-1"))}
    assert {"gpu-provision-cdi.path", "gpu-provision-cdi.service"} <= files_of(wanted(host(items=old)))
    shared = {"virtualization": said("lxc\n")}
    assert "gpu-provision-cdi.path" in files_of(wanted(host(items=shared)))
    assert "gpu-provision-cdi.path" not in files_of(wanted())
    assert "nvidia-cdi-refresh.path" in {u.name for u in wanted().units}


def test_links_in_dev_char_are_made_where_systemd_keeps_the_control_groups() -> None:
    nodes = json.loads(HEALTHY.items["nvidia.devices"]["stdout"])
    bare = {"nvidia.devices": said([{**node, "char_link": False} for node in nodes])}
    assert wanted(host(items=bare)).restart == ("gpu-provision-dev-char.service",)
    info = json.loads(HEALTHY.items["docker.info"]["stdout"])
    fs = {**bare, "docker.info": said({**info, "CgroupDriver": "cgroupfs"})}
    assert wanted(host(items=fs)).restart == ()
    assert "gpu-provision-dev-char.service" not in files_of(wanted(host(items=fs)))
    cdi = {
        **bare,
        "file:/etc/nvidia-container-runtime/config.toml": text('[nvidia-container-runtime]\nmode = "cdi"\n'),
    }
    assert wanted(host(items=cdi)).restart == ()


# A control reads each variable


OUR_SOURCE = {
    f"file:{container_sources.PATH}": text(
        "# Written by gpu-provision (role container_toolkit). The key: https://nvidia.github.io/libnvidia-container/gpgkey\n"
        f"Types: deb\nURIs: https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)\nSuites: /\nSigned-By: {container_sources.KEY}\n"
    ),
    f"file:{container_sources.KEY}": text(KEY + "\n"),
}
TRIED: dict[str, list[Any]] = {
    "container_toolkit_version": ["1.18", "1.20.1"],
    "container_toolkit_repository": ["http://mirror.example/ctk"],
    "container_toolkit_repository_key": ["http://mirror.example/key.asc", KEY],
    "container_toolkit_default_runtime": [True],
    "container_toolkit_default_shm_size": ["16G"],
    "container_toolkit_default_stack": [None, 8388608],
    "limits_memlock": [1048576],
}
# These two say how, and for which hosts; a host that has it all has nothing to do by either.
HOW = {"container_toolkit_install_docker", "container_toolkit_interrupt_containers"}


def failing(facts: Facts, **variables: Any) -> list[Finding]:
    found = judge(facts, profile(**variables), NO_STACK)
    return [f for f in found if f.control.startswith("container.") and f.status in (Status.FAIL, Status.WARN)]


def ours(name: str) -> bool:
    return declared()[name].role == ROLE or name == "limits_memlock"


@pytest.mark.parametrize("name", [name for name in declared() if ours(name)])
def test_every_variable_is_tried(name: str) -> None:
    assert name in TRIED or name in HOW


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in TRIED.items() for v in values])
def test_a_changed_variable_puts_the_role_in_the_plan(name: str, value: Any) -> None:
    facts = host(items=OUR_SOURCE)
    assert failing(facts) == []
    assert ROLE in {f.role for f in failing(facts, **{name: value})}


def test_a_host_without_docker_is_planned_only_where_it_is_to_get_one() -> None:
    bare = host(items={**NO_DOCKER, "apt.policy": archive("1.20.1-1")})
    assert failing(bare) == []
    planned = failing(bare, container_toolkit_install_docker=True)
    assert {"container.runtime", "container.toolkit"} <= {f.control for f in planned}
    assert {f.role for f in planned} == {ROLE}


@pytest.mark.parametrize(
    ("items", "control", "says"),
    [
        ({f"file:{docker_settings.UNAPPLIED}": text("x")}, "container.settings", "not restarted since"),
        ({"docker.started": said({"dockerd": 10, "hook": 20})}, "container.runtime", "before the toolkit came"),
        ({"apt.holds": said("")}, "container.toolkit", "is not held"),
        ({f"file:/etc/systemd/system/{container_devices.LINKS_UNIT}": MISSING}, "container.cgroup", "after a boot nothing makes the links"),
        ({"cdi": said([])}, "container.cdi", "there is no CDI specification"),
        ({DAEMON: text("\ufeff{}")}, "container.daemon-json", "byte order mark"),
    ],
)  # fmt: skip
def test_what_the_role_keeps_is_seen_by_a_control(items: dict[str, Any], control: str, says: str) -> None:
    found = {f.control: f for f in failing(host(items=items))}
    assert says in found[control].actual


def test_what_only_a_person_can_lift_keeps_no_other_role_waiting() -> None:
    broken = host(items={DAEMON: text("{")})
    assert {f.control for f in failing(broken)} == {"container.daemon-json", "container.settings"}
    assert {f.role for f in failing(broken)} == {None}


def test_every_file_that_it_writes_is_asked_for() -> None:
    gone = {"dpkg.list": packages(**NO_TOOLKIT), "apt.policy": archive("1.17.8-1"), "docker.info": running(0)}
    paths = {f.path for f in wanted(host(items=gone), container_toolkit_repository_key=KEY).files}
    assert {*paths, docker_settings.UNAPPLIED} <= set(FILES)
