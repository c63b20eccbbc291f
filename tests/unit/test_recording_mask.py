"""Secrets are masked where they are read, and nothing else is."""

from __future__ import annotations

import json
import time

import pytest

from provision.recording.collect.mask import mask

SECRET = "Zx9-hunter2.K"

HIDING_PLACES = (
    f"deb https://user:{SECRET}@repo.example/ubuntu noble main",
    f"deb https://{SECRET}@repo.example/ubuntu noble main",
    f"http_proxy=http://me:{SECRET}@proxy.example:3128/",
    f'Environment="HTTPS_PROXY=http://me:{SECRET}@proxy:3128"',
    f"https://me:pa/ss{SECRET}@host.example/",
    f"//nas/share /data cifs credentials=/etc/nas,password={SECRET},uid=0 0 0",
    f"//nas/share /data cifs username=joe,pass={SECRET} 0 0",
    f"admin@.data=/ /ceph ceph name=admin,secret={SECRET}==,_netdev 0 0",
    f"Environment=AWS_SECRET_ACCESS_KEY={SECRET}",
    f"Environment='WANDB_API_KEY={SECRET}' OTHER=1",
    f"ExecStart=/usr/bin/agent --token {SECRET} --verbose",
    f"ExecStart=/usr/bin/agent --api-key={SECRET}",
    f"ExecStart=/usr/bin/agent --registry-password '{SECRET}'",
    f'{{"auths": {{"r.example": {{"auth": "{SECRET}"}}}}}}',
    f'{{"insecure": true, "password": "{SECRET}", "x": 1}}',
    f'{{"clientSecret":"{SECRET} with blanks"}}',
    f"password: {SECRET} and more",
    f"  token: '{SECRET}'",
    f"machine repo.example login joe password {SECRET}",
    f"Authorization: Bearer {SECRET}",
    f'Acquire::https::Proxy::password "x"; Auth-Token = {SECRET}',
    f"chpasswd:\n  list: |\n    root:{SECRET}\n    joe:other\n",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\nabc\n-----END OPENSSH PRIVATE KEY-----\nnext",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\ncut off here",
    f"[ 1.2] Kernel command line: root=/dev/sda1 luks.password={SECRET} quiet",
    f"PASSWORD_FOR_DB={SECRET}",
    f"[Peer]\nPresharedKey = {SECRET}=\nPrivateKey = {SECRET}=",
    f"aws_secret_access_key = {SECRET}",
    f"https://acct.blob.example/c?sv=2024&sig={SECRET}&se=2026",
    f"//nas/share /data cifs user=joe%{SECRET},noauto 0 0",
    f"ExecStartPre=/usr/bin/sshpass -p {SECRET} ssh joe@host",
    f"ExecStart=/usr/bin/curl -fsS -u joe:{SECRET} https://host",
    f"ldap_default_authtok = {SECRET}",
    f"bindpw {SECRET}",
)

TOKENS = (
    "ghp_0123456789abcdefghijABCDEFGHIJ",
    "hf_abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE",
    "passwd: $6$saltsalt$0123456789abcdef/ABCDEFG.hij",
    "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123",
)

HARMLESS = (
    "PasswordAuthentication no",
    "PasswordAuthentication=no",
    "passwordauthentication yes",
    "permitemptypasswords no",
    "hostkeyalgorithms sk-ssh-ed25519-cert-v01@openssh.com,sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "    (ALL : ALL) NOPASSWD: ALL",
    "    (root) NOPASSWD: /usr/bin/apt-get",
    "    (ALL) PASSWD: ALL",
    "Install: libsecret-1-0:amd64 (0.20.5-3, automatic), libpam-modules:amd64 (1.5)",
    "ii \tlibsecret-1-0\t0.20.5-3\tamd64",
    "libsecret-1-0:\n  Installed: 0.20.5-3\n  Candidate: 0.20.5-3",
    "deb http://deb.example/debian bookworm main contrib non-free",
    "UUID=0b5f9c6e-1b1c-4c9f-9d4e-000000000000 /data xfs defaults,nofail 0 2",
    "NCCL_SOCKET_IFNAME==ens1f0",
    "Listen=[::]:22 (Stream)",
    "PAM: pam_unix.so nullok",
    "passwd:         files systemd",
    "<fb_memory_usage><total>81920 MiB</total></fb_memory_usage>",
    "Systemd: Started Forward Password Requests to Wall.",
    "git clone https://github.com/NVIDIA/nccl-tests.git",
    "mirror+file:/etc/apt/mirrors.list a@b.example",
)


@pytest.mark.parametrize("text", HIDING_PLACES)
def test_a_planted_secret_does_not_stay(text: str) -> None:
    assert SECRET not in mask(text)
    assert "***" in mask(text)


@pytest.mark.parametrize("text", TOKENS)
def test_a_token_is_known_by_its_shape(text: str) -> None:
    assert mask(text) in ("***", "passwd: ***")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


def test_what_stands_beside_a_secret_stays() -> None:
    line = f"//nas/share /data cifs credentials=/etc/nas,password={SECRET},uid=0 0 0"
    assert mask(line).startswith("//nas/share /data cifs ")
    assert mask(line).endswith(",uid=0 0 0")
    assert mask(f"deb https://user:{SECRET}@repo.example/u x") == "deb https://***@repo.example/u x"


def test_json_stays_json() -> None:
    proxies = {"default": {"httpProxy": f"http://a:{SECRET}@p:1"}}
    text = json.dumps({"proxies": proxies, "password": SECRET, "pin_token": 12345678, "n": 1, "token": None})
    assert json.loads(mask(text)) == {
        "proxies": {"default": {"httpProxy": "http://***@p:1"}},
        "password": "***",
        "pin_token": "***",
        "n": 1,
        "token": None,
    }


def test_a_long_line_is_read_in_reasonable_time() -> None:
    began = time.monotonic()
    mask("secret " + "a_b-c." * 40_000)
    assert time.monotonic() - began < 2
