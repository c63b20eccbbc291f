"""Recordings of a lab host: nothing changes there, with any rights, from any shell, with secrets planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stillness import STATE, tree

from provision import lab
from provision.facts import Facts
from provision.recording import items, remote
from provision.recording.redact import redacted
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.lab import LabHost
    from provision.recording.model import Recording

pytestmark = pytest.mark.skipif(lab.can_run() is not None, reason=str(lab.can_run()))

PASSWORD = "sésame mot$de\"pas'se"
SECRET = "Zx9-hunter2.K"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    made = lab.up("recording")
    try:
        yield made
    finally:
        lab.down(made.name)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gp-") as made:
        yield Path(made)


def run(host: LabHost, text: str, stdin: bytes = b"") -> str:
    argv = [*ssh.fresh_args(host.target()), "sh -s" if stdin else text]
    done = subprocess.run(argv, input=stdin or None, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def recorded(host: LabHost, folder: Path, user: str = "root", password: str | None = None) -> Recording:
    target = replace(host.target(), user=user)
    with ssh.Session(target, folder, password) as session:
        return remote.record(session, target=target)


def test_nothing_on_the_host_changes(host: LabHost, folder: Path) -> None:
    recorded(host, folder)  # what a first login leaves behind is none of ours
    files, state = tree(host.root), run(host, STATE)
    recording = recorded(host, folder)
    assert recording.as_root
    assert json.loads(recording.answer("rights").stdout)["read_only_view"] is True
    after = tree(host.root)
    changed = {name for name in files.keys() | after.keys() if files.get(name) != after.get(name)}
    assert not changed
    assert run(host, STATE) == state
    assert len(files) > 5000


def test_nothing_changes_without_the_read_only_view_either(host: LabHost, folder: Path) -> None:
    """An old kernel has no such view: then only what is asked, and how, keeps the host as it is."""
    from provision.recording.program import program

    sent = program(sudo=False)
    switched_off = sent.stdin.replace(
        b"package.main.main(", b"package.main.confine = bool; package.main.main("
    )
    assert switched_off != sent.stdin
    with ssh.Session(host.target(), folder) as session:
        session.run(["true"])
        files, state = tree(host.root), run(host, STATE)
        done = session.run(sent.argv, switched_off, 90)
    recording = remote.from_output(done.stdout, done.stderr, sent, host="h")
    assert json.loads(recording.answer("rights").stdout)["read_only_view"] is False
    after = tree(host.root)
    changed = {name for name in files.keys() | after.keys() if files.get(name) != after.get(name)}
    assert not changed
    assert run(host, STATE) == state


def test_every_item_is_answered_and_read(host: LabHost, folder: Path) -> None:
    recording = recorded(host, folder)
    assert {item.name for item in items.ITEMS} | {"python"} <= set(recording.items)
    failed = {name: raw for name, raw in recording.items.items() if "failed at" in str(raw.get("not_asked"))}
    assert not failed
    for name in (
        "apt.policy",
        "dpkg.list",
        "units",
        "sshd.effective",
        "accounts",
        "pci",
        "kernels",
        "firewall",
    ):
        assert recording.answer(name).silence is None, name
    facts = Facts(recording)
    assert facts.virtualization.shares_kernel
    assert len(facts.nvidia_gpus_on_bus) == 2
    assert {case.rc for case in facts.sshd.cases} == {0}
    operator = recording.items["sshd.effective"]["operator"]
    assert operator["user"] == "root"
    assert operator["addr"].startswith(host.address.rsplit(".", 1)[0])
    assert not lab_names(redacted(recording), host)


def lab_names(recording: Recording, host: LabHost) -> set[str]:
    return {
        word for word in (f'"{host.name}"', f"Linux {host.name} ") if word in json.dumps(recording.as_dict())
    }


USERS = f"""
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null 2>&1
apt-get -qq install -y sudo csh fish >/dev/null 2>&1
key=$(tail -n 1 /root/.ssh/authorized_keys)
for each in plain:/bin/sh free:/usr/bin/fish cshell:/bin/csh pw:/bin/bash; do
  name=${{each%%:*}}
  useradd -m -s "${{each#*:}}" "$name"
  install -d -m 700 -o "$name" "/home/$name/.ssh"
  echo "$key" > "/home/$name/.ssh/authorized_keys"
  chown "$name" "/home/$name/.ssh/authorized_keys"
done
printf '%s ALL=(ALL:ALL) NOPASSWD: ALL\\n' free cshell > /etc/sudoers.d/test
echo 'pw ALL=(ALL:ALL) ALL' >> /etc/sudoers.d/test
cat > /tmp/pass <<'END'
pw:{PASSWORD}
END
chpasswd < /tmp/pass
rm /tmp/pass
sed -i '1i echo noise on standard output; printf "no last newline"' /home/pw/.bashrc
"""


@pytest.fixture(scope="module")
def users(host: LabHost) -> LabHost:
    run(host, "", USERS.encode())
    return host


@pytest.mark.parametrize(
    ("user", "password", "as_root"),
    [
        ("root", None, True),
        ("plain", None, False),
        ("free", None, True),
        ("cshell", None, True),
        ("pw", None, False),
        ("pw", PASSWORD, True),
        ("pw", "wrong", False),
        ("free", "not needed", True),
        ("root", "not needed", True),
    ],
)
def test_rights_decide_how_much_is_seen_and_never_break_the_recording(
    users: LabHost, folder: Path, user: str, password: str | None, as_root: bool
) -> None:
    recording = recorded(users, folder, user, password)
    assert recording.as_root is as_root
    rights = json.loads(recording.answer("rights").stdout)
    assert rights["user"] == user
    assert rights["from"]
    if password:
        assert password not in json.dumps(recording.as_dict(), ensure_ascii=False)
    # Useful without rights, and honest about what was not seen.
    assert "openssh-server" in recording.answer("dpkg.list").stdout
    assert recording.answer("pci").rc == 0
    if not as_root:
        assert recording.answer("blkid").denied
        assert recording.answer("firewall").denied
        assert "sudo: " in rights["says"]
        known = {row["name"]: row for row in json.loads(recording.answer("accounts").stdout)}
        assert known["root"]["password"] is None
    else:
        known = {row["name"]: row for row in json.loads(recording.answer("accounts").stdout)}
        assert known["free"]["sudo"] == "nopasswd"
        assert known["pw"]["sudo"] == "passwd"
        assert known["plain"]["sudo"] == "none"
        assert known["pw"]["password"] == "set"
        assert known["plain"]["password"] == "locked"
        assert (known["pw"]["keys"], known["pw"]["forced_command_keys"]) == (1, 0)


SECRETS = f"""
mkdir -p /etc/docker /etc/systemd/system/docker.service.d /etc/cloud/cloud.cfg.d
echo 'deb https://me:{SECRET}@repo.example/debian bookworm main' > /etc/apt/sources.list.d/private.list
echo 'Acquire::http::Proxy "http://me:{SECRET}@proxy:3128/";' > /etc/apt/apt.conf.d/95proxy
echo '//nas/x /mnt/x cifs username=joe,password={SECRET},noauto 0 0' >> /etc/fstab
echo '{{"proxies": {{"http-proxy": "http://me:{SECRET}@proxy:3128"}}, "token": "{SECRET}"}}' \\
  > /etc/docker/daemon.json
printf '[Service]\\nEnvironment=HTTPS_PROXY=http://me:{SECRET}@proxy API_TOKEN={SECRET}\\n' \\
  > /etc/systemd/system/docker.service.d/proxy.conf
printf '#cloud-config\\nchpasswd:\\n  list: |\\n    root:{SECRET}\\n' > /etc/cloud/cloud.cfg.d/90-pw.cfg
echo 'NCCL_DEBUG=INFO' > /etc/nccl.conf
unit=/etc/systemd/system/gpu-provision-clocks.service
printf '[Service]\\nExecStart=/bin/true --password {SECRET}\\n' > $unit
systemctl daemon-reload
"""


def test_planted_secrets_appear_in_no_recording(host: LabHost, folder: Path) -> None:
    run(host, "", SECRETS.encode())
    recording = recorded(host, folder)
    assert SECRET not in json.dumps(recording.as_dict())
    assert json.loads(recording.file("/etc/docker/daemon.json").text)["token"] == "***"
    assert (
        "deb https://***@repo.example/debian bookworm main"
        in recording.file("/etc/apt/sources.list.d/private.list").text
    )
    assert "username=joe,password=***,noauto" in recording.file("/etc/fstab").text
    assert "clocks.service" in recording.answer("units").stdout


def test_many_recordings_at_once_over_one_session(host: LabHost, folder: Path) -> None:
    target = host.target()
    logins = (
        "grep -c Accepted /var/log/auth.log 2>/dev/null || journalctl -u ssh --no-pager | grep -c Accepted"
    )
    before = int(run(host, logins))
    with ssh.Session(target, folder) as session, ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: remote.record(session, target=target), range(4)))
    assert len({r.answer("dpkg.list").stdout for r in taken}) == 1
    assert int(run(host, logins)) == before + 2  # the session, and the fresh login that counts


def test_a_host_without_python(host: LabHost, folder: Path) -> None:
    run(host, "for p in /usr/bin/python3.*; do mv $p /usr/bin/hidden-${p##*/}; done")
    try:
        recording = recorded(host, folder)
    finally:
        run(host, "for p in /usr/bin/hidden-python3.*; do mv $p /usr/bin/${p##*/hidden-}; done")
    assert recording.answer("python").missing
    facts = Facts(recording)
    assert facts.os.code.startswith("debian")
    assert recording.answer("accounts").not_asked


def test_interrupting_leaves_no_master(host: LabHost, folder: Path) -> None:
    session = ssh.Session(host.target(), folder)
    session.open()
    assert session.alive()
    path = session.control_path
    session.close()
    assert not path.exists()
    assert not session.alive()


@pytest.mark.parametrize(
    ("user", "become", "arguments", "as_root"),
    [
        ("root", False, [], True),
        ("free", True, ["--check"], True),
        ("plain", False, [], False),
    ],
)
def test_roles_get_the_same_recording_over_their_own_connection(
    users: LabHost, folder: Path, user: str, become: bool, arguments: list[str], as_root: bool
) -> None:
    checkout = Path(items.__file__).parents[2]
    collections = folder / "collections"
    place = collections / "ansible_collections" / "gpu_provision"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "host").exists():
        (place / "host").symlink_to(checkout)
    play = [
        {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [
                {"gpu_provision.host.recording": {}, "become": become, "register": "said"},
                {
                    "ansible.builtin.copy": {
                        "content": "{{ {'recording': gpu_provision_recording, 'said': said} | to_json }}",
                        "dest": str(folder / "answer.json"),
                        "mode": "0600",
                    },
                    "delegate_to": "localhost",
                    "vars": {"ansible_python_interpreter": sys.executable, "ansible_become": False},
                    "check_mode": False,
                },
            ],
        }
    ]
    (folder / "play.yml").write_text(json.dumps(play))
    target = users.target()
    variables = {
        "ansible_host": target.address,
        "ansible_user": user,
        "ansible_ssh_private_key_file": target.identity,
        "ansible_ssh_common_args": " ".join(f"-o {option}" for option in target.options),
    }
    inventory = {"all": {"hosts": {"h": variables, "localhost": {"ansible_connection": "local"}}}}
    (folder / "hosts.json").write_text(json.dumps(inventory))
    ansible = Path(sys.executable).parent / "ansible-playbook"
    env = {"ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_HOME": str(folder / "home")}
    done = subprocess.run(
        [ansible, "-i", folder / "hosts.json", "-l", "h", *arguments, folder / "play.yml"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads((folder / "answer.json").read_text())
    assert answer["said"]["changed"] is False
    recording = answer["recording"]
    assert (recording["schema"], recording["host"]) == ("gpu-provision/recording/1", "h")
    assert recording["as_root"] is as_root
    # Text of the host that looks like a template stays as it is.
    assert recording["items"]["docker.info"]["argv"][-1] == "{{json .}}"


def audited(host: LabHost, folder: Path) -> str:
    """All that the whole command prints and leaves behind."""
    env = {**os.environ, "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    argv = [sys.executable, "-m", "provision", "audit", host.name, "--format", "json"]
    done = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 3), done.stderr
    left = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    return "\n".join([done.stdout, done.stderr, *left])


DOCKER = """
DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends docker.io >/dev/null 2>&1
systemctl stop docker.service containerd.service
systemctl is-active docker.socket; systemctl is-active docker.service
"""


def test_docker_that_is_stopped_stays_so_and_no_report_tells_a_secret(host: LabHost, tmp_path: Path) -> None:
    """Its socket listens: whoever asks docker anything starts it."""
    run(
        host, "rm -f /etc/docker/daemon.json /etc/apt/sources.list.d/private.list /etc/apt/apt.conf.d/95proxy"
    )
    assert run(host, "", DOCKER.encode() + b"true\n").split() == ["active", "inactive"]
    run(host, "", SECRETS.encode())
    audited(host, tmp_path)
    files, state = tree(host.root), run(host, STATE)
    said = audited(host, tmp_path)
    after = tree(host.root)
    assert not {name for name in files.keys() | after.keys() if files.get(name) != after.get(name)}
    assert run(host, STATE) == state
    assert run(host, "systemctl is-active docker.service || true").strip() == "inactive"
    findings = {f["control"]: f for f in json.loads(said[: said.rindex("}") + 1])["hosts"][0]["findings"]}
    assert "docker.service is not active" in findings["container.cgroup"]["actual"]
    assert SECRET not in said
