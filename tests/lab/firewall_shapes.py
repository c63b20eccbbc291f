"""Shapes that a packet filter is found in, as data: how a host gets there, what role firewall makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# What each shape's profile lets in, beside sshd: 8000 for everybody, 8001 and 7000/udp for the peer alone.
# 9999 listens, too, and nobody asked for it.
ALLOW = [
    {"port": 8000, "proto": "tcp", "why": 'notebooks; "quoted" \\ words'},
    {"port": "8001-8002", "proto": "tcp", "from": ["peer"], "why": "exporters"},
    {"port": 7000, "proto": "udp", "from": ["peer"]},
]


@dataclass(frozen=True)
class Shape:
    """`setup` is run by sh as root on a host as Debian ships it, with services on all ports below and 9999.

    `says` None: the role has to end well; else it refuses or reverts with these words, files and rules
    staying as they were. `packages` are installed first. `port` is where the administrator logs in, `over_v6`
    by IPv6; `policy_changes` where ufw itself lets everybody in. `then` is run afterwards, and access has to
    be the same after it; "reboot" is a reboot.
    """

    name: str
    setup: str = ":"
    says: str | None = None
    packages: str = ""
    port: int = 22
    over_v6: bool = False
    variables: dict[str, Any] = field(default_factory=dict)
    then: tuple[str, ...] = ()
    policy_changes: bool = False
    seconds: int = 60
    sample: bool = False


def put(path: str, text: str) -> str:
    return f"mkdir -p $(dirname {path}); cat >{path} <<'END'\n{text}END\n"


SSHD = "/etc/ssh/sshd_config.d/50-port.conf"
OWN_TABLE = """\
#!/usr/sbin/nft -f
flush ruleset
table inet filter {
	set friends { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 } }
	chain input {
		type filter hook input priority 0; policy accept;
		ip saddr @friends tcp dport 5432 accept
		tcp dport 5432 drop
	}
}
"""
IPTABLES_DROP = """\
for t in iptables ip6tables; do
    $t -A INPUT -i lo -j ACCEPT
    $t -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
    $t -A INPUT -p tcp -m multiport --dports 22,8000,8001,8002 -j ACCEPT
    $t -A INPUT -p udp --dport 7000 -j ACCEPT
done
ip6tables -A INPUT -p ipv6-icmp -j ACCEPT
iptables -P INPUT DROP
ip6tables -P INPUT DROP
"""
# An nft that loses the rule which lets SSH in, as a fault of ours would; it lies before the real one in PATH.
NFT_LOSES_SSH = (
    put(
        "/usr/local/sbin/nft",
        '#!/bin/sh\nif [ "$1" = -f ] && [ "$2" != - ]; then\n'
        '    grep -v "jump ssh" "$2" | /usr/sbin/nft -f -\n    exit\nfi\nexec /usr/sbin/nft "$@"\n',
    )
    + "chmod 755 /usr/local/sbin/nft"
)
RUNS = "[Service]\nExecStart=/bin/sleep infinity\n"

SHAPES: tuple[Shape, ...] = (
    Shape("as-debian-ships-it", then=("reboot",), sample=True),
    Shape(
        "another-port",
        put(SSHD, "Port 2222\n") + "systemctl restart ssh.service",
        port=2222,
        then=("reboot",),
    ),
    Shape("two-ports", put(SSHD, "Port 22\nPort 2222\n") + "systemctl restart ssh.service", port=2222),
    Shape(
        "behind-ssh.socket",
        "systemctl disable -q --now ssh.service; systemctl enable -q --now ssh.socket",
        then=("reboot",),
    ),
    Shape(
        "behind-ssh.socket-on-another-port",
        "systemctl disable -q --now ssh.service\n"
        + put("/etc/systemd/system/ssh.socket.d/p.conf", "[Socket]\nListenStream=\nListenStream=2222\n")
        + "systemctl daemon-reload; systemctl enable -q --now ssh.socket",
        port=2222,
    ),
    Shape("over-ipv6", over_v6=True),
    Shape(
        "ufw-with-its-own-rules",
        "ufw allow 22/tcp; ufw deny from 192.0.2.66; ufw allow 7777/tcp comment 'theirs'; ufw --force enable",
        packages="ufw",
        then=("ufw reload", "reboot"),
    ),
    Shape(
        "ufw-that-allows-by-default",
        "sed -i s/^IPV6=yes/IPV6=no/ /etc/default/ufw; ufw default allow incoming; ufw --force enable",
        packages="ufw",
        policy_changes=True,
    ),
    Shape("ufw-that-is-off", "ufw allow 7777/tcp", packages="ufw"),
    Shape(
        "a-table-of-their-own",
        put("/etc/nftables.conf", OWN_TABLE) + "systemctl enable -q --now nftables.service",
        then=(
            "systemctl reload nftables",
            "nft -f /etc/nftables.conf",
            "systemctl restart nftables",
            "reboot",
        ),
        sample=True,
    ),
    Shape("iptables-that-drop", IPTABLES_DROP, packages="iptables"),
    Shape(
        "iptables-persistent",
        IPTABLES_DROP + "netfilter-persistent save; systemctl enable -q netfilter-persistent",
        packages="iptables-persistent",
        then=("systemctl restart netfilter-persistent", "reboot"),
    ),
    Shape(
        "fail2ban",
        put("/etc/fail2ban/jail.d/a.local", "[DEFAULT]\nignoreip = 192.0.2.9\n[sshd]\nbackend = systemd\n")
        + "systemctl restart fail2ban",
        packages="fail2ban python3-systemd",
        then=("fail2ban-client get sshd ignoreip | grep -F 192.0.2.9",),
    ),
    Shape(
        "fail2ban-that-exempts-nobody",
        put("/etc/fail2ban/jail.d/a.local", "[sshd]\nbackend = systemd\n") + "systemctl restart fail2ban",
        packages="fail2ban python3-systemd",
        then=("fail2ban-client get sshd ignoreip | grep -F 127.0.0",),
    ),
    Shape("rules-of-an-interface", variables={"firewall_interfaces": ["cni0", "cali*"]}),
    Shape("nobody-is-counted", variables={"firewall_ssh_per_minute": 0}),
    # Refused or put back, and nothing touched.
    Shape(
        "no-such-port",
        says="is no range of ports",
        variables={"firewall_allow": [{"port": 70000, "proto": "tcp"}]},
    ),
    Shape("no-such-group", says="no group", variables={"firewall_cluster_peers": ["nobody"]}),
    Shape("ssh-without-us", says="leaves out", variables={"firewall_ssh_from": ["192.0.2.0/24"]}),
    Shape("stops-what-carries", says="carries the line", variables={"firewall_stop": ["ssh.service"]}),
    Shape(
        "a-node-of-kubernetes",
        put("/etc/systemd/system/kubelet.service", RUNS) + "systemctl daemon-reload; systemctl start kubelet",
        says="kubelet.service runs here",
    ),
    Shape("firewalld", says="firewalld looks after", packages="firewalld"),
    Shape("rules-that-cut-the-line", NFT_LOSES_SSH, says="as it was before", seconds=15, sample=True),
    Shape(
        "rules-that-do-not-load",
        put(
            "/usr/local/sbin/nft",
            '#!/bin/sh\n[ "$1" != -f ] || [ "$2" = - ] || exit 1\nexec /usr/sbin/nft "$@"\n',
        )
        + "chmod 755 /usr/local/sbin/nft",
        says="failed",
    ),
)
