"""What the role firewall wants of hosts, which it leaves alone, and that its controls read every variable."""

from __future__ import annotations

import re
from typing import Any

import pytest
from firewall_hosts import OURS, SSH_SERVICE, UFW, converged, findings, heard, host, interface, loaded, wanted

from provision.controls.model import Status
from provision.facts.known import Unknown
from provision.planners import firewall_docker as docker
from provision.planners import firewall_fail2ban as fail2ban
from provision.planners import firewall_nft as nft
from provision.planners import firewall_ufw as ufw
from provision.planners.firewall_files import INCLUDE, NFTABLES_CONF, RULES, UNIT_FILE
from provision.planners.firewall_openings import never_stopped
from provision.planners.firewall_sources import sources
from provision.profile.declared import declared

BANS = f"{SSH_SERVICE}\nId=fail2ban.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
ACTIVE = "Id={}\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
MINE = "192.0.2.1"  # where ssh_hosts' operator comes from
PEERS = {"firewall_peers": {"nodes": ["10.0.0.1", "10.0.0.2", "fd00::/64"]}}
ALLOW = [
    {"port": 8000, "why": 'a "quoted" reason\nwith a line end'},
    {"port": "9000-9010", "proto": "udp", "from": ["nodes", "192.0.2.0/24"]},
]


def rules(facts: Any, **variables: Any) -> list[str]:
    text = next(f.text for f in wanted(facts, **variables).files if f.path == RULES)
    assert text is not None
    return [line.strip() for line in text.splitlines()]


def test_a_bare_host_gets_a_table_and_a_unit_and_lets_in_ssh_alone() -> None:
    plan = wanted(host())
    assert [f.path for f in plan.files] == [RULES, UNIT_FILE]
    assert plan.loaded == ({"nft": "inet gpu_provision"},)
    lines = rules(host())
    assert "type filter hook input priority filter + 5; policy drop;" in lines
    assert "tcp dport 22 jump ssh" in lines
    assert not [line for line in lines if re.match(r"(tcp|udp) dport \S+ accept", line)]


def test_what_networks_need_is_let_in() -> None:
    lines = "\n".join(rules(host()))
    for needed in (
        "ct state established,related",
        'iifname "lo"',
        "packet-too-big",
        "udp sport 67 udp dport 68",
    ):
        assert needed in lines
    discovery = next(line for line in lines.splitlines() if "133, 134, 135, 136" in line)
    assert discovery.startswith("ip6 hoplimit 255"), "a router of another network must not announce itself"


def test_ports_are_those_that_sshd_listens_on_and_those_of_its_socket() -> None:
    socket = ACTIVE.format("ssh.socket") + "Listen=[::]:2022 (Stream)\n"
    other = [{"proto": "tcp", "address": "::", "port": 2222, "program": "sshd", "unit": "ssh.service"}]
    assert "tcp dport { 2022, 2222 } jump ssh" in rules(host(units=f"{SSH_SERVICE}\n{socket}", sockets=other))


def test_the_profile_opens_ports_for_whom_it_names() -> None:
    lines = rules(host(), firewall_allow=ALLOW, **PEERS)
    assert 'tcp dport 8000 accept comment "a quoted reason with a line end"' in lines
    assert "ip saddr { 10.0.0.1, 10.0.0.2, 192.0.2.0/24 } udp dport 9000-9010 accept" in lines
    assert "ip6 saddr fd00::/64 udp dport 9000-9010 accept" in lines


def test_a_group_without_hosts_opens_nothing() -> None:
    only = [{"port": 8000, "from": ["training"]}]
    assert rules(host(), firewall_allow=only) == rules(host()), "a preset's group is there, and empty"


def test_peers_come_in_for_the_traffic_that_is_named() -> None:
    ports = {"sysctl": {"rc": 0, "stdout": "net.ipv4.ip_local_port_range = 40000 50000\n"}}
    lines = rules(host(items=ports), firewall_cluster_peers=["nodes"], **PEERS)
    assert any("tcp dport 40000-50000" in line and "ip saddr { 10.0.0.1" in line for line in lines)
    assert any("udp dport 4791" in line for line in lines)
    assert any("tcp dport 2049" in line for line in lines)
    nfs = rules(host(), firewall_cluster_peers=["nodes"], firewall_cluster_traffic=["nfs"], **PEERS)
    assert not any("4791" in line for line in nfs)


def test_who_is_too_quick_waits_and_operators_and_peers_are_not_counted() -> None:
    lines = rules(host(), firewall_cluster_peers=["nodes"], **PEERS)
    counted = next(n for n, line in enumerate(lines) if "limit rate over 20/minute burst 100" in line)
    free = [n for n, line in enumerate(lines) if line.startswith(f"ip saddr {MINE} accept")]
    peers = [n for n, line in enumerate(lines) if line.startswith("ip saddr { 10.0.0.1, 10.0.0.2 } accept")]
    assert free
    assert peers
    assert max(*free, *peers) < counted
    assert not any("limit rate over" in line for line in rules(host(), firewall_ssh_per_minute=0))


def test_operators_are_remembered_and_do_not_make_a_host_unlike() -> None:
    there = "\n".join(rules(host())).replace(MINE, "198.51.100.7")
    facts = host(items={f"file:{RULES}": {"text": there}})
    assert {f"ip saddr {a} accept {nft.OPERATOR}" for a in (MINE, "198.51.100.7")} <= set(rules(facts))
    elsewhere = converged()
    text = elsewhere.file(RULES)
    assert isinstance(text, str)
    again = nft.essential(text)
    assert MINE not in again
    assert nft.mark(text) == nft.mark(again)


def test_ssh_from_shuts_out_everybody_else_and_never_the_operator() -> None:
    lines = rules(host(), firewall_ssh_from=["192.0.2.0/24"])
    chain = lines[lines.index("chain ssh {") : lines.index("chain input {")]
    assert "accept" not in chain
    assert "ip saddr 192.0.2.0/24 accept" in chain
    assert MINE in str(wanted(host(), firewall_ssh_from=["203.0.113.0/24"]).refused)


def test_a_tunnel_stays_open_and_only_a_tunnel() -> None:
    sockets = heard(("udp", 51820, None), ("tcp", 1194, "openvpn"), ("tcp", 8080, "python3"))
    lines = "\n".join(rules(host(sockets=sockets, items=interface("wg0", "wireguard"))))
    assert "udp dport 51820 accept" in lines
    assert "tcp dport 1194 accept" in lines
    assert "8080" not in lines
    assert "51820" not in "\n".join(rules(host(sockets=sockets))), (
        "without WireGuard a kernel's socket is none"
    )


def test_guests_of_libvirt_get_addresses_and_names() -> None:
    assert 'iifname "virbr*" udp dport { 53, 67, 547 } accept' in rules(
        host(items=interface("virbr0", "bridge"))
    )


def test_interfaces_that_are_named_are_open() -> None:
    assert {'iifname "cni0" accept', 'iifname "cali*" accept'} <= set(
        rules(host(), firewall_interfaces=["cni0", "cali*"])
    )


def test_the_hosts_own_nftables_file_gets_one_line_where_it_is_in_use() -> None:
    used = (
        f"{SSH_SERVICE}\nId=nftables.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
    )
    text = {f"file:{NFTABLES_CONF}": {"text": "flush ruleset\ntable ip mine {}", "mode": "0755"}}
    (file,) = [f for f in wanted(host(units=used, items=text)).files if f.path == NFTABLES_CONF]
    assert file.text == f"flush ruleset\ntable ip mine {{}}\n{INCLUDE}\n"
    assert file.mode == "0755"
    assert NFTABLES_CONF not in {f.path for f in wanted(host(items=text)).files}


def in_ufw(**more: Any) -> Any:
    chains = "table ip filter {\n\tchain ufw-user-input {\n\t}\n}\n"
    return host(items={**UFW, **loaded(chains), **more})


def test_ufw_is_kept_with_our_rules_behind_those_of_others() -> None:
    plan = wanted(in_ufw(), firewall_allow=ALLOW, **PEERS)
    texts = {f.path: f.text or "" for f in plan.files}
    assert RULES not in texts
    v4, v6 = texts[ufw.RULES[4]], texts[ufw.RULES[6]]
    assert v4.index("--dport 7777") < v4.index("--dport 22 -j ACCEPT") < v4.index("### END RULES ###")
    assert "-A ufw-user-input -p udp -m multiport --dports 9000:9010 -s 10.0.0.1 -j ACCEPT" in v4
    assert "-A ufw6-user-input -p udp -m multiport --dports 9000:9010 -s fd00::/64 -j ACCEPT" in v6
    assert "ufw reload" in plan.reload
    again = ufw.with_ours(v4, 4, ())
    theirs = UFW["file:/etc/ufw/user.rules"]["text"]
    assert again.split() == theirs.split(), "taken out again, the file is theirs"


def test_ufw_is_made_to_refuse_by_default_for_both_families() -> None:
    changed = ufw.defaults('# theirs\nIPV6=no\nDEFAULT_INPUT_POLICY="ACCEPT"\n')
    assert changed == '# theirs\nIPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\n'
    assert (
        ufw.defaults('IPV6=yes\nDEFAULT_INPUT_POLICY="REJECT"\n')
        == 'IPV6=yes\nDEFAULT_INPUT_POLICY="REJECT"\n'
    )


def test_ufws_own_limit_is_named() -> None:
    limit = UFW["file:/etc/ufw/user.rules"]["text"].replace(
        "### END", "### tuple ### limit tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n\n### END"
    )
    found = findings(in_ufw(**{"file:/etc/ufw/user.rules": {"text": limit}}))["firewall.foreign-rules"]
    assert found.status is Status.WARN
    assert "6 connections" in found.actual


def test_published_ports_are_closed_in_a_chain_that_its_content_names() -> None:
    openings = wanted(host(packages=("docker.io",)), firewall_docker_published="close")
    (script,) = [f for f in openings.files if f.path == docker.SCRIPT]
    assert script.mode == "0755"
    assert re.search(r"chain=GPU-PROVISION-[0-9a-f]{10}\n", script.text or "")
    other = wanted(
        host(packages=("docker.io",)), firewall_docker_published="close", firewall_allow=ALLOW, **PEERS
    )
    (wider,) = [f for f in other.files if f.path == docker.SCRIPT]
    assert "--ctorigdstport 9000:9010" in (wider.text or "")
    assert (script.text or "").splitlines()[3] != (wider.text or "").splitlines()[3]
    assert docker.SCRIPT not in {f.path for f in wanted(host(), firewall_docker_published="close").files}


def test_fail2ban_never_bans_the_operator_or_a_peer() -> None:
    peers: dict[str, Any] = {"firewall_cluster_peers": ["nodes"], **PEERS}
    texts = {f.path: f.text or "" for f in wanted(host(units=BANS), **peers).files}
    ours = texts[fail2ban.PATH]
    for jail in ("[sshd]", "[recidive]"):
        block = ours.partition(jail)[2].partition("[")[0]
        assert "%(known/ignoreip)s" in block, "whom the host exempts already stays exempt"
        assert {MINE, "10.0.0.1", "fd00::/64"} <= set(block.split())
    assert texts[fail2ban.FIRST].endswith("ignoreip =\n")
    other = host(units=BANS, items={f"file:{fail2ban.PATH}": {"text": ours.replace(MINE, "198.51.100.7")}})
    again = {f.path: f.text or "" for f in wanted(other, **peers).files}[fail2ban.PATH]
    assert {MINE, "198.51.100.7"} <= set(again.split()), "an operator from elsewhere is remembered"
    assert findings(other, **peers)["firewall.fail2ban"].status is Status.FAIL
    done = converged(units=BANS, **peers)
    assert findings(done, **peers)["firewall.fail2ban"].status is Status.PASS
    said = host(
        units=BANS, items={f"file:{fail2ban.JAIL_CONF}": {"text": "[DEFAULT]\nignoreip = 192.0.2.9\n"}}
    )
    assert fail2ban.FIRST not in {f.path for f in wanted(said).files}
    assert not [f for f in wanted(host()).files if "fail2ban" in f.path]


REFUSED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("firewalld looks after", {"units": f"{SSH_SERVICE}\n{ACTIVE.format('firewalld.service')}"}, {}),
    ("kubelet.service runs here", {"units": f"{SSH_SERVICE}\n{ACTIVE.format('kubelet.service')}"}, {}),
    ("nothing would let anybody in", {"sockets": []}, {}),
    ("is not known", {"items": {"sockets": {"denied": True}}}, {}),
    ("is filtered on this host is not known", {"items": {"firewall": {"denied": True}}}, {}),
    ("systemd does not run", {"items": {"units": {"missing": True}}}, {}),
    ("no range of ports", {}, {"firewall_allow": [{"port": 70000}]}),
    ("no range of ports", {}, {"firewall_allow": [{"port": "9-8"}]}),
    ("no port", {}, {"firewall_allow": [{"port": "http"}]}),
    ("has no port", {}, {"firewall_allow": [{"proto": "tcp"}]}),
    ("no part of an entry", {}, {"firewall_allow": [{"port": 1, "form": []}]}),
    ("no group whose addresses are known", {}, {"firewall_allow": [{"port": 1, "from": ["nobody"]}]}),
    ("no address", {}, {"firewall_cluster_peers": ["n"], "firewall_peers": {"n": ["not.an.address"]}}),
    ("no name of an interface", {}, {"firewall_interfaces": ["a name"]}),
    ("carries the line", {}, {"firewall_stop": ["sshd"]}),
    ("carries the line", {}, {"firewall_stop": ["systemd-networkd.service"]}),
]


@pytest.mark.parametrize(
    ("says", "shape", "variables"), REFUSED, ids=[f"{n}-{r[0]}" for n, r in enumerate(REFUSED)]
)
def test_refused(says: str, shape: dict[str, Any], variables: dict[str, Any]) -> None:
    plan = wanted(host(**shape), **variables)
    assert says in str(plan.refused)
    assert not plan.files
    assert not wanted(host(**shape), **{**variables, "firewall_managed": False}).refused, (
        "left alone on request"
    )


def test_a_node_of_kubernetes_is_served_once_its_interfaces_are_named() -> None:
    node = f"{SSH_SERVICE}\n{ACTIVE.format('kubelet.service')}"
    assert wanted(host(units=node), firewall_interfaces=["cni0"]).refused is None


def test_services_are_stopped_by_name_with_the_socket_that_starts_them() -> None:
    plan = wanted(host(), firewall_stop=["rpcbind"])
    assert plan.stop == ("rpcbind.service", "rpcbind.socket")
    assert {"stop and disable rpcbind.service", "stop and disable rpcbind.socket"} <= set(plan.steps)
    assert wanted(host()).stop == (), "and never without"
    assert never_stopped("serial-getty@ttyS0.service")


def test_what_will_be_closed_is_in_the_plan_until_it_is_closed() -> None:
    sockets = heard(("tcp", 8888, "jupyter-lab"))
    assert any("close 8888/tcp (jupyter-lab)" in step for step in wanted(host(sockets=sockets)).steps)
    assert not wanted(host(sockets=sockets), firewall_allow=[{"port": 8888}]).steps


# The variables that a converged host was made with, and other values for each.
CHOSEN: dict[str, Any] = {
    **PEERS,
    "firewall_allow": ALLOW,
    "firewall_cluster_peers": ["nodes"],
    "firewall_docker_published": "close",
}
CHANGES: dict[str, list[Any]] = {
    "firewall_managed": [],
    "firewall_allow": [[], [*ALLOW, {"port": 1}], [{**ALLOW[0], "port": 8001}, ALLOW[1]]],
    "firewall_ssh_from": [["192.0.2.0/24"], ["203.0.113.0/24"]],
    "firewall_ssh_per_minute": [0, 30],
    "firewall_ssh_unlimited": [["198.51.100.0/24"]],
    "firewall_cluster_peers": [[], ["192.0.2.0/24"]],
    "firewall_cluster_traffic": [["nccl"], []],
    "firewall_peers": [{"nodes": ["10.0.0.9"]}, {"nodes": []}],
    "firewall_interfaces": [["cni0"]],
    "firewall_docker_published": ["leave"],
    "firewall_stop": [["rpcbind"]],
    "firewall_confirm_seconds": [4, 3601],
}


def through() -> Any:
    """A host that the role is through with, docker's chain among the rules."""
    first = host(packages=("docker.io",))
    (script,) = [f for f in wanted(first, **CHOSEN).files if f.path == docker.SCRIPT]
    name = re.findall(r"chain=(\S+)", script.text or "")[0]
    count = len(re.findall(rf"(?m)^-A {name} ", (script.text or "").split("load ip6tables")[0]))
    chains = "".join(f"\t\tcounter return # {n}\n" for n in range(count))
    ruleset = f"table ip filter {{\n\tchain {name} {{\n{chains}\t}}\n"
    ruleset += f"\tchain DOCKER-USER {{\n\t\tcounter packets 0 bytes 0 jump {name}\n\t}}\n}}\n"
    return converged(docker=ruleset, **CHOSEN)


def test_nothing_is_planned_for_a_converged_host() -> None:
    found = findings(through(), **CHOSEN)
    assert {n: f.actual for n, f in found.items() if f.status not in (Status.PASS, Status.SKIP)} == {}
    assert wanted(through(), **CHOSEN).pending is False


@pytest.mark.parametrize("name", [n for n, v in declared().items() if v.role == "firewall"])
def test_every_variable_is_tried(name: str) -> None:
    assert name in CHANGES
    assert CHANGES[name] or name == "firewall_managed", "it only says whether anything is looked after"


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in CHANGES.items() for v in values])
def test_a_changed_variable_puts_the_role_in_the_plan(name: str, value: Any) -> None:
    found = findings(through(), **{**CHOSEN, name: value})
    assert [n for n, f in found.items() if f.role == "firewall" and f.status is Status.FAIL]


def test_an_unmanaged_host_is_told_of_and_not_planned() -> None:
    found = findings(host(), firewall_managed=False)
    assert found["firewall.default-deny"].status is Status.SKIP
    assert "what no rule names is let in" in found["firewall.default-deny"].actual
    assert not [f for f in found.values() if f.role and f.status in (Status.FAIL, Status.WARN)]


def table_of(facts: Any) -> str:
    text = facts.file(RULES)
    assert isinstance(text, str)
    return text.split("\n", 5)[5]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda text: "",
        lambda text: text.replace("policy drop", "policy accept"),
        lambda text: text.replace("\t\ttcp dport 22 jump ssh\n", "\t\ttcp dport 22 jump ssh\n\t\taccept\n"),
        lambda text: text.replace('\t\tiifname "lo" accept\n', ""),
        lambda text: re.sub(r"gpu-provision [0-9a-f]+", "gpu-provision 000000000000", text),
    ],
    ids=["flushed", "policy", "one rule more", "one less", "of another file"],
)
def test_rules_that_were_changed_in_the_kernel_are_loaded_again(tamper: Any) -> None:
    good = converged()
    texts = {f"file:{p}": good.recording.file(p).raw for p in (RULES, UNIT_FILE)}
    facts = host(units=f"{SSH_SERVICE}\n{OURS}", items={**texts, **loaded(tamper(table_of(good)))})
    assert wanted(facts).pending
    assert Status.FAIL in {
        findings(facts)[n].status for n in ("firewall.default-deny", "firewall.open-ports")
    }
    good_again = host(units=f"{SSH_SERVICE}\n{OURS}", items={**texts, **loaded(table_of(good))})
    assert not wanted(good_again).pending


def test_a_unit_that_does_not_start_at_boot_is_found() -> None:
    good = converged()
    texts = {f"file:{p}": good.recording.file(p).raw for p in (RULES, UNIT_FILE)}
    facts = host(items={**texts, **loaded(table_of(good))})
    assert "does not start at boot" in findings(facts)["firewall.open-ports"].actual


def test_rules_of_others_that_refuse_what_the_profile_lets_in_are_told() -> None:
    foreign = (
        "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy drop;\n"
        "\t\ttcp dport { 22, 8000 } accept\n\t}\n}\n"
    )
    facts = host(items=loaded(foreign))
    found = findings(facts, firewall_allow=[{"port": 8000}, {"port": 8443}])["firewall.foreign-rules"]
    assert found.status is Status.WARN
    assert "8443" in found.actual
    assert "8000" not in found.actual
    assert findings(facts, firewall_allow=[{"port": 8000}])["firewall.foreign-rules"].status is Status.PASS


def test_sources_are_merged_and_told_apart() -> None:
    found = sources(["10.0.0.0/25", "10.0.0.128/25", "fd00::1", "nodes"], {"nodes": ["10.0.0.7"]})
    assert [str(n) for n in found.v4] == ["10.0.0.0/24"]
    assert [str(n) for n in found.v6] == ["fd00::1/128"]
    assert found.holds("::ffff:10.0.0.9")
    assert not found.holds("10.0.1.1")
    assert isinstance(wanted(host(items={"sockets": {"denied": True}})).refused, str)
    assert not isinstance(host().firewall, Unknown)
