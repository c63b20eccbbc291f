"""A redacted recording tells nothing of whose host it was, and is judged as the original."""

from __future__ import annotations

import json

from provision.recording.model import Recording
from provision.recording.redact import redacted

GPU = "GPU-5a3b1c2d-1111-2222-3333-444455556666"
ADDRESSES = [
    {
        "ifname": "ens3",
        "address": "52:54:00:aa:bb:cc",
        "addr_info": [
            {"local": "203.0.114.9", "prefixlen": 24},
            {"local": "2a01:4f8:1:2::9", "prefixlen": 64},
            {"local": "10.0.0.5", "prefixlen": 8},
        ],
    }
]


def recording() -> Recording:
    accounts = [
        {"name": "root", "uid": 0},
        {"name": "jsmith", "uid": 1000},
        {"name": "ubuntu", "uid": 1001},
        {"name": "dev"},
    ]
    return Recording(
        host="gpu01.lab.acme.example",
        taken="2026-11-30T12:00:00Z",
        as_root=True,
        seconds=0.4,
        items={
            "uname": {"rc": 0, "stdout": "Linux gpu01 6.8.0-60-generic #63-Ubuntu SMP x86_64 GNU/Linux\n"},
            "file:/etc/hostname": {"text": "gpu01\n"},
            "file:/etc/hosts": {"text": "127.0.0.1 localhost\n203.0.114.9 gpu01.lab.acme.example gpu01\n"},
            "file:/home/jsmith/x": {"missing": True},
            "accounts": {"rc": 0, "stdout": json.dumps(accounts)},
            "ip.addresses": {"rc": 0, "stdout": json.dumps(ADDRESSES)},
            "nvidia-smi.list": {"rc": 0, "stdout": f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {GPU})\n"},
            "nvidia-smi.query": {
                "rc": 0,
                "stdout": f"<serial>1563820004711</serial><uuid>{GPU}</uuid><serial>N/A</serial>"
                "<driver_version>580.95.05</driver_version><vbios_version>92.00.45.00.03</vbios_version>",
            },
            "lsblk": {
                "rc": 0,
                "stdout": '{"serial": "S64GNE0R123456", "wwn": "eui.0025385b21404321", '
                '"path": "/dev/nvme0n1"}',
            },
            "disks.by-id": {"rc": 0, "stdout": '{"nvme-Samsung_S64GNE0R123456": "nvme0n1"}'},
            "sshd.effective": {"cases": [{"user": "jsmith", "addr": "203.0.114.9", "rc": 0}]},
            "dpkg.list": {
                "rc": 0,
                "stdout": "ii \tlibc6\t2.39-0ubuntu8.4\tamd64\nii \tnvidia-580\t1:580.95.05-1\tamd64\n",
            },
            "rdma": {"rc": 0, "stdout": '[{"gids": [{"gid": "fe80:0000:0000:0000:5054:00ff:feaa:bbcc"}]}]'},
            "time": {"rc": 0, "stdout": "Timezone=Europe/Berlin\n"},
        },
    )


def test_nothing_of_the_host_is_left() -> None:
    text = json.dumps(redacted(recording()).as_dict())
    for word in (
        "acme",
        "gpu01",
        "jsmith",
        "203.0.114",
        "2a01",
        "52:54:00",
        "5a3b1c2d",
        "1563820004711",
        "S64GNE0R",
        "5b21404321",
    ):
        assert word not in text, word


def test_what_was_equal_stays_equal() -> None:
    clean = redacted(recording())
    listed = clean.answer("nvidia-smi.list").stdout.split("UUID: ")[1].rstrip(")\n")
    assert f"<uuid>{listed}</uuid>" in clean.answer("nvidia-smi.query").stdout
    address = json.loads(clean.answer("ip.addresses").stdout)[0]["addr_info"][0]["local"]
    assert clean.items["sshd.effective"]["cases"][0]["addr"] == address
    assert address in clean.file("/etc/hosts").text
    serial = json.loads(clean.answer("lsblk").stdout)["serial"]
    assert f"nvme-Samsung_{serial}" in json.loads(clean.answer("disks.by-id").stdout)
    user = json.loads(clean.answer("accounts").stdout)[1]["name"]
    assert f"file:/home/{user}/x" in clean.items


def test_what_is_judged_stays() -> None:
    before, after = recording(), redacted(recording())
    assert after.answer("dpkg.list").raw == before.answer("dpkg.list").raw
    assert "580.95.05" in after.answer("nvidia-smi.query").stdout
    assert "92.00.45.00.03" in after.answer("nvidia-smi.query").stdout
    assert "10.0.0.5" in after.answer("ip.addresses").stdout
    assert "127.0.0.1 localhost" in after.file("/etc/hosts").text
    assert [row["name"] for row in json.loads(after.answer("accounts").stdout)][:3:2] == ["root", "ubuntu"]
    assert after.answer("uname").stdout.split()[2] == "6.8.0-60-generic"
    assert "/dev/nvme0n1" in after.answer("lsblk").stdout  # and there is a user called dev
    assert after.answer("time").raw == before.answer("time").raw
    assert (after.as_root, after.taken, after.seconds) == (before.as_root, before.taken, before.seconds)
