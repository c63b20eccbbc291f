"""The program that runs on the host: asks all questions at once, changes nothing, prints one document.

It travels on standard input (`python3 -`) and needs nothing but the standard library of Python 3.6 or
newer. The questions come with it, as data (see `items`). What it promises:

- Nothing on the host changes. Where the kernel lets it (root, Linux 5.12 or newer), it says so to the
  kernel: all file systems are read-only for this program and its children, in a mount namespace of
  their own, and children can neither load modules nor make device nodes. Elsewhere only questions that
  change nothing are asked.
- Each item has a time limit, and so has the whole. A child that does not even die when it is killed
  (it sleeps in the driver) is not waited for: the answer names it.
- Output is bounded; what was cut is marked. Passwords and tokens are masked before anything is sent.
"""

import base64
import errno
import fcntl
import glob
import grp
import json
import os
import pwd
import re
import selectors
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import zlib

MYPY = False
if MYPY:  # `typing` costs 10 ms to import
    from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

MARK = "@gpu-provision-recording"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
TOKEN_VARIABLE = "GPU_PROVISION_ITEM"
GRACE = 0.5  # seconds between SIGKILL and calling a process left behind
TICK = 0.05
FILE_LIMIT = 256 * 1024
NICE_ENVIRONMENT = {
    "PATH": PATH,
    "LC_ALL": "C",
    "LANG": "C",
    "LANGUAGE": "C",
    "HOME": "/nonexistent",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "SYSTEMD_PAGER": "",
    "SYSTEMD_COLORS": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}


# ------------------------------------------------------------------------------------------ secrets

_KEYWORD = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
    r"|credentials?|sas[_-]?key|account[_-]?key|psk)"
)
_NAME = r"(?<![A-Za-z0-9])[\w.-]*?" + _KEYWORD + r"(?:[\w-]{0,24})"
_HARMLESS = r"(?:yes|no|true|false|none|null|on|off|files|sha512|md5|ask|\d{1,5})\b"
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'"
_RULES = (
    # user-info of a URL; a password may hold an unescaped slash
    (re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/@:\"'<>]*:[^\s@\"'<>]*|[^\s/@\"'<>]*)@"), r"\1***@"),
    (
        re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.S),
        r"-----BEGIN \1----- ***",
    ),
    (
        re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest)\s+)[^\s\"',]+"),
        r"\1***",
    ),
    (re.compile(r"(?i)(\"(?:identity)?auth\"\s*:\s*)" + _QUOTED), r'\1"***"'),
    # key = value, key=value, "key": "value", and key: value to the end of the line
    (
        re.compile(
            r"(?i)(" + _NAME + r"[\"']?[ \t]*=[ \t]*)(?!" + _HARMLESS + r")(?:" + _QUOTED + r"|[^\s,;&\"']+)"
        ),
        r"\1***",
    ),
    (
        re.compile(
            r"(?i)(" + _NAME + r"[\"']?[ \t]*:)(?:([ \t]*)(?!" + _HARMLESS + r")(?:" + _QUOTED + r")"
            r"|([ \t]+)(?!" + _HARMLESS + r")[^\s\"'{\[|>][^\n}]*)"
        ),
        lambda found: found.group(1) + (found.group(2) or found.group(3) or "") + "***",
    ),
    # --password value, and netrc's login/password pairs
    (
        re.compile(r"(?i)(--[\w-]*" + _KEYWORD + r"[\w-]{0,24}[ \t]+)(?!-)(?:" + _QUOTED + r"|[^\s\"',]+)"),
        r"\1***",
    ),
    (re.compile(r"(?i)(\blogin\s+\S+\s+password\s+)\S+"), r"\1***"),
    # crypt(3) hashes and well-known token shapes
    (re.compile(r"\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|argon2\w*)\$[./A-Za-z0-9$=,+-]{8,}"), "***"),
    (
        re.compile(
            r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}"
        ),
        "***",
    ),
    (
        re.compile(
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abprs]-[\w-]{10,}|\bnvapi-[\w-]{16,}|\bsk-[A-Za-z0-9_-]{20,}"
        ),
        "***",
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), "***"),
)
_HINTS = re.compile(
    r"(?i)://|"
    + _KEYWORD
    + r"|private key|\$[1-7y][a-z]?\$|\$argon|gh[pousr]_|glpat-|hf_|akia|asia|xox|nvapi-|sk-|eyj"
    r"|auth\"|authorization|chpasswd"
)
_CHPASSWD = re.compile(r"(?m)^([ \t]*(?:-[ \t]*)?[a-z_][\w-]*):(?![ \t/])\S+$")


def mask(text: str) -> str:
    """The text with every password, token and private key replaced by `***`."""
    if not _HINTS.search(text):
        return text
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    if "chpasswd" in text:
        text = _CHPASSWD.sub(r"\1:***", text)
    return text


def decoded(data: bytes) -> str:
    return mask(data.decode("utf-8", "backslashreplace"))


# -------------------------------------------------------------------- keeping the host as it is

_confined = False
_host_mounts = -1  # descriptor of the mount namespace that we came from


def confine() -> bool:
    """Make every file system read-only for this process and its children; True where that worked.

    mount_setattr(2) is in Linux since 5.12. Children of root also lose CAP_SYS_MODULE and CAP_MKNOD,
    so that nvidia-smi's helper can neither load the module nor make device nodes (capabilities(7)).
    """
    global _confined, _host_mounts
    if os.geteuid() != 0:
        return False
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        here = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        private, read_only = 1 << 18, 1
        if libc.unshare(0x00020000) != 0:
            return False
        if libc.mount(b"none", b"/", None, 0x4000 | private, None) != 0:
            return False
        attributes = struct.pack("QQQQ", read_only, 0, 0, 0)
        if libc.syscall(442, -100, b"/", 0x8000, attributes, len(attributes)) != 0:
            return False
        # Scratch space that vanishes with us, for tools that want a temporary file.
        libc.mount(b"none", b"/tmp", b"tmpfs", 2 | 4, b"size=16m,mode=1777")
        for capability in (16, 27):  # CAP_SYS_MODULE, CAP_MKNOD
            libc.prctl(24, capability, 0, 0, 0)
        _confined, _host_mounts = True, here
        return True
    except (ImportError, OSError, AttributeError):
        return False


def _back_to_host_mounts() -> None:
    """For the few questions about mounts, whose answer the read-only view would change."""
    import ctypes

    ctypes.CDLL(None).setns(_host_mounts, 0x00020000)


def _as_nobody() -> None:
    """For tools that write caches as a matter of course: an account that cannot."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


# ------------------------------------------------------------------------------------- small helpers


def read(path: str, limit: int = FILE_LIMIT) -> str:
    """A small file's text without its last newline. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(limit).decode("utf-8", "backslashreplace").rstrip("\n")


def peek(path: str) -> "Optional[str]":
    try:
        return read(path).strip()
    except OSError:
        return None


def number(text: "Optional[str]") -> "Optional[int]":
    try:
        return int(text or "", 0)
    except ValueError:
        return None


def link(path: str) -> "Optional[str]":
    """The last part of what a symbolic link points at."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return None


def names(folder: str) -> "List[str]":
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def program(name: str) -> "Optional[str]":
    if "/" in name:
        return name if os.access(name, os.X_OK) else None
    for folder in PATH.split(":"):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def processes() -> "Iterator[Tuple[int, str, str]]":
    """(pid, name, state letter) of each process that we may see."""
    for entry in names("/proc"):
        if entry.isdigit():
            text = peek("/proc/" + entry + "/stat")
            if text and ")" in text:
                name, rest = text[text.index("(") + 1 :].rsplit(")", 1)
                yield int(entry), name, rest.split()[0]


def command_line(pid: int) -> str:
    text = peek("/proc/%d/cmdline" % pid) or ""
    return mask(text.replace("\0", " ").strip())


def denial(text: str) -> bool:
    return (
        re.search(
            r"(?i)permission denied|operation not permitted|must be (?:super ?user|root)|only root|EACCES",
            text,
        )
        is not None
    )


def as_json(value: "Any") -> "Dict[str, Any]":
    """An answer in the form of a command that printed JSON."""
    return {"rc": 0, "stdout": json.dumps(value), "stderr": ""}


def ask(argv: "List[str]", seconds: float = 5.0, limit: int = 256 * 1024) -> "Dict[str, Any]":
    """Run one command from within a builtin; the builtin's own group and time limit hold for it too."""
    path = program(argv[0])
    if path is None:
        return {"argv": argv, "missing": True}
    began = time.time()
    child = subprocess.Popen(
        [path, *argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(NICE_ENVIRONMENT, **{TOKEN_VARIABLE: os.environ.get(TOKEN_VARIABLE, "")}), cwd="/",
    )  # fmt: skip
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        return {"argv": argv, "rc": None, "timed_out": True, "seconds": round(time.time() - began, 3)}
    answer = {
        "argv": argv,
        "rc": child.returncode,
        "stdout": decoded(out[:limit]),
        "stderr": decoded(err[:8192]),
    }
    if len(out) > limit:
        answer["cut"] = True
    return answer


def ask_all(commands: "List[List[str]]", seconds: float = 5.0) -> "List[Dict[str, Any]]":
    """Several commands side by side, four at a time."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda argv: ask(argv, seconds), commands))


# ------------------------------------------------------------------------------------------- files


def file(path: str) -> "Dict[str, Any]":
    """One file's text with mode and owner. Anything but a regular file is not opened."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
            return {"not_asked": "it is " + kind.get(stat.S_IFMT(status.st_mode), "a device")}
        with open(path, "rb") as handle:
            data = handle.read(FILE_LIMIT + 1)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENOTDIR):
            return {"missing": True}
        if e.errno in (errno.EACCES, errno.EPERM):
            return {"denied": True}
        return {"not_asked": "it could not be read: " + (e.strerror or str(e))}
    answer: "Dict[str, Any]" = {
        "text": decoded(data[:FILE_LIMIT]),
        "mode": "%04o" % stat.S_IMODE(status.st_mode),
        "owner": account_name(status.st_uid),
    }
    if os.path.islink(path):
        answer["link"] = os.readlink(path)
    if len(data) > FILE_LIMIT:
        answer["cut"] = True
    return answer


_names: "Dict[int, str]" = {}


def account_name(uid: int) -> str:
    if not _names:
        _names.update((entry[2], entry[0]) for entry in reversed(passwd()))
    return _names.get(uid, str(uid))


def passwd() -> "List[Tuple[str, str, int, int, str, str]]":
    """(name, password field, uid, gid, home, shell) of /etc/passwd; no directory service is asked."""
    found = []
    for line in (peek("/etc/passwd") or "").splitlines():
        part = line.split(":")
        if len(part) == 7 and part[2].isdigit() and part[3].isdigit():
            found.append((part[0], part[1], int(part[2]), int(part[3]), part[5], part[6]))
    return found


def tail(path: str, size: int) -> "Dict[str, Any]":
    """The end of a log, from a whole line on."""
    try:
        with open(path, "rb") as log:
            length = os.fstat(log.fileno()).st_size
            log.seek(max(0, length - size))
            data = log.read(size)
    except OSError as e:
        return {"denied": True} if e.errno == errno.EACCES else {"missing": True}
    if length > size:
        data = data[data.find(b"\n") + 1 :]
    return dict({"text": decoded(data)}, **({"from_the_end": True} if length > size else {}))


# ---------------------------------------------------------------------------------------- hardware


def pci() -> "Dict[str, Any]":
    """Devices from /sys: minimal images have no lspci."""
    root = "/sys/bus/pci/devices"
    if not os.path.isdir(root):
        return {"missing": True}
    found = []
    for address in names(root):
        at = os.path.join(root, address)
        row = {
            "address": address,
            "driver": link(at + "/driver"),
            "numa_node": number(peek(at + "/numa_node")),
        }
        for key, source in (
            ("vendor", "vendor"), ("device", "device"), ("class", "class"),
            ("subsystem_vendor", "subsystem_vendor"), ("subsystem_device", "subsystem_device"), ("revision", "revision"),
        ):  # fmt: skip
            text = peek(at + "/" + source)
            row[key] = text[2:] if text and text.startswith("0x") else text
        for key in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"):
            row[key] = peek(at + "/" + key)
        row["iommu_group"] = link(at + "/iommu_group")
        row["physical_function"] = link(at + "/physfn")
        found.append(row)
    return as_json(found)


def kernels() -> "Dict[str, Any]":
    """Installed kernels with image, headers and the nvidia module on disk for each."""
    found = []
    for release in names("/lib/modules"):
        at = os.path.join("/lib/modules", release)
        if not os.path.isdir(at):
            continue
        image = any(
            os.path.exists(path)
            for path in (
                "/boot/vmlinuz-" + release,
                "/boot/vmlinux-" + release,
                "/boot/Image-" + release,
                at + "/vmlinuz",
            )
        )
        row: "Dict[str, Any]" = {
            "release": release,
            "image": image,
            "headers": os.path.exists(os.path.join(at, "build", "Makefile")),
            "initrd": any(
                os.path.exists("/boot/" + name % release)
                for name in ("initrd.img-%s", "initramfs-%s.img", "initrd-%s")
            ),
        }
        row.update(nvidia_module(at))
        found.append(row)
    return as_json(found)


# Debian names it nvidia-current(-open).ko or after the branch; everybody else nvidia.ko. The
# companions nvidia-drm, -modeset, -uvm, -peermem, -fs and -vgpu are other modules.
_MODULE = re.compile(r"nvidia(?:-(?:current|tesla|legacy)(?:-[\w.]+?)?(?:-open)?)?\.ko(?:\.(?:xz|zst|gz))?$")
_COMPANION = re.compile(r"-(?:drm|modeset|uvm|peermem|fs|vgpu[\w-]*)\.ko")


def nvidia_module(modules: str) -> "Dict[str, Any]":
    """Version, licence and path of the nvidia module below /lib/modules/RELEASE."""
    found = []
    for folder, _, entries in os.walk(modules):
        if folder.startswith(modules + "/build") or folder.startswith(modules + "/source"):
            continue
        found += [os.path.join(folder, e) for e in entries if _MODULE.match(e) and not _COMPANION.search(e)]
    if not found:
        return {"nvidia_module": None}
    # depmod's default order looks into updates first (depmod.d(5)).
    found.sort(key=lambda path: (0 if "/updates/" in path else 1, path))
    said = ask(["modinfo", found[0]])
    values: "Dict[str, str]" = {}
    for line in said.get("stdout", "").splitlines():
        key, _, value = line.partition(":")
        values.setdefault(key.strip(), value.strip())
    version = values.get("version") or _version_inside(found[0]) or "unknown"
    row = {"nvidia_module": version, "nvidia_path": found[0], "nvidia_license": values.get("license")}
    row["nvidia_signer"] = values.get("signer")
    if len(found) > 1:
        row["nvidia_more"] = found[1:]
    return row


def _version_inside(path: str) -> "Optional[str]":
    """The version in an uncompressed module's .modinfo section, where there is no modinfo to ask."""
    if not path.endswith(".ko"):
        return None
    with open(path, "rb") as module:
        found = re.search(rb"\0version=([0-9.]+)\0", module.read())
    return found.group(1).decode() if found else None


def lsmod() -> "Dict[str, Any]":
    if program("lsmod") and os.path.exists("/proc/modules"):
        return ask(["lsmod"])
    lines = ["Module                  Size  Used by"]
    text = peek("/proc/modules")
    if text is None and not os.path.isdir("/sys/module"):
        return {"missing": True}
    for line in (text or "").splitlines():
        part = line.split()
        lines.append("%-20s %8s  %s %s" % (part[0], part[1], part[2], part[3].strip(",").replace("-", "")))
    return {"rc": 0, "stdout": "\n".join(lines) + "\n", "stderr": ""}


def secure_boot() -> "Dict[str, Any]":
    """mokutil's answer; where it is not installed, the same from the firmware's own variable (UEFI 3.3)."""
    if program("mokutil"):
        return ask(["mokutil", "--sb-state"])
    if not os.path.isdir("/sys/firmware/efi"):
        return {"rc": 255, "stdout": "", "stderr": "EFI variables are not supported on this system\n"}
    found = glob.glob("/sys/firmware/efi/efivars/SecureBoot-*")
    if not found:
        return {"missing": True}
    with open(found[0], "rb") as variable:
        data = variable.read(16)
    on = len(data) == 5 and data[4] == 1
    return {"rc": 0, "stdout": "SecureBoot %s\n" % ("enabled" if on else "disabled"), "stderr": ""}


def cpu() -> "Dict[str, Any]":
    governors: "Dict[str, int]" = {}
    base = "/sys/devices/system/cpu"
    for path in glob.glob(base + "/cpu[0-9]*/cpufreq/scaling_governor"):
        name = peek(path) or "unknown"
        governors[name] = governors.get(name, 0) + 1
    information = peek("/proc/cpuinfo") or ""
    model = re.search(r"(?m)^(?:model name|Model|cpu)\s*:\s*(.+)$", information)
    nodes = []
    for path in glob.glob("/sys/devices/system/node/node[0-9]*"):
        memory = re.search(r"MemTotal:\s+(\d+) kB", peek(path + "/meminfo") or "")
        nodes.append({
            "node": int(re.sub(r"\D", "", os.path.basename(path))),
            "cpus": peek(path + "/cpulist"),
            "memory_kb": int(memory.group(1)) if memory else None,
            "distance": peek(path + "/distance"),
        })  # fmt: skip
    first = base + "/cpu0/cpufreq/"
    return as_json({
        "model": model.group(1).strip() if model else None,
        "count": os.cpu_count(),
        "online": peek(base + "/online"),
        "sockets": len(set(re.findall(r"(?m)^physical id\s*:\s*(\d+)", information))) or None,
        "smt": peek(base + "/smt/active"),
        "governors": governors,
        "scaling_driver": peek(first + "scaling_driver"),
        "available_governors": (peek(first + "scaling_available_governors") or "").split(),
        "energy_preference": peek(first + "energy_performance_preference"),
        "idle_driver": peek(base + "/cpuidle/current_driver"),
        "nodes": sorted(nodes, key=lambda row: row["node"]),
    })  # fmt: skip


def nvidia_devices() -> "Dict[str, Any]":
    """NVIDIA's device nodes and whether /dev/char has the link that runc needs (libnvidia-container, C35)."""
    found = []
    for path in sorted(glob.glob("/dev/nvidia*") + glob.glob("/dev/nvidia-caps/*")):
        status = os.stat(path)
        if stat.S_ISCHR(status.st_mode):
            major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
            found.append({
                "path": path, "major": major, "minor": minor, "mode": "%04o" % stat.S_IMODE(status.st_mode),
                "owner": account_name(status.st_uid), "char_link": os.path.lexists("/dev/char/%d:%d" % (major, minor)),
            })  # fmt: skip
    return as_json(found)


def nvidia_files(patterns: "List[str]") -> "Dict[str, Any]":
    """Which of the driver's files are there, and the package that owns each: leftovers have none."""
    paths = sorted(path for pattern in patterns for path in glob.glob(pattern))[:400]
    owners: "Dict[str, str]" = {}
    if os.path.isdir("/var/lib/dpkg/info"):
        # `dpkg-query -S` reads the lists of all packages (2 s); these are the few that can own such files.
        for name in names("/var/lib/dpkg/info"):
            if name.endswith(".list") and re.search(r"nvidia|cuda|cudnn|nccl|gsp", name):
                owners.update(
                    (line, name[:-5]) for line in (peek("/var/lib/dpkg/info/" + name) or "").splitlines()
                )
    elif paths and program("rpm"):
        asked = ask(["rpm", "-qf", "--qf", "%{NAME}\n", *paths], 8.0).get("stdout", "").splitlines()
        if len(asked) == len(paths):
            owners = {path: line for path, line in zip(paths, asked) if " " not in line}
    found = []
    for path in paths:
        real = os.path.realpath(path)
        # Merged /usr: dpkg may know the file below /lib while we found it below /usr/lib.
        other = path[4:] if path.startswith("/usr/") else "/usr" + path
        found.append({
            "path": path,
            "target": os.path.realpath(path) if real != path else None,
            "kind": "directory" if os.path.isdir(path) else "file",
            "package": owners.get(path) or owners.get(other),
        })  # fmt: skip
    return as_json(found)


def cuda_installed() -> "Dict[str, Any]":
    """Toolkits below /usr/local, by their own version.json, and which one is the default."""
    found = []
    default = os.path.realpath("/usr/local/cuda") if os.path.exists("/usr/local/cuda") else None
    for path in sorted(glob.glob("/usr/local/cuda-*")):
        if not os.path.isdir(path) or os.path.islink(path):
            continue
        version = None
        try:
            version = json.loads(read(path + "/version.json"))["cuda"]["version"]
        except (OSError, ValueError, KeyError, TypeError):
            old = re.search(r"CUDA Version ([\d.]+)", peek(path + "/version.txt") or "")
            version = old.group(1) if old else None
        found.append({
            "path": path, "version": version, "default": os.path.realpath(path) == default,
            "nvcc": os.path.exists(path + "/bin/nvcc"),
        })  # fmt: skip
    return as_json(found)


def cdi() -> "Dict[str, Any]":
    """Library versions that each CDI specification names; the specification itself is long and is not kept."""
    found = []
    for folder in ("/etc/cdi", "/var/run/cdi", "/run/cdi"):
        if folder == "/run/cdi" and os.path.realpath("/var/run") == "/run":
            continue
        for name in names(folder):
            if not name.endswith((".yaml", ".yml", ".json")):
                continue
            path = os.path.join(folder, name)
            try:
                text = read(path, 4 * 1024 * 1024)
            except OSError as e:
                found.append({"path": path, "error": e.strerror})
                continue
            kind = re.search(r"(?m)[\"']?kind[\"']?\s*:\s*[\"']?([\w./-]+)", text)
            version = re.search(r"(?m)[\"']?cdiVersion[\"']?\s*:\s*[\"']?([\d.]+)", text)
            libraries = re.findall(r"lib(?:cuda|nvidia-[a-z0-9-]+)\.so\.(\d+\.\d+(?:\.\d+)?)", text)
            devices = re.findall(r"(?m)^\s*(?:-\s+|[\"'])name[\"']?\s*:\s*[\"']?([\w.:-]+)", text)
            found.append({
                "path": path, "kind": kind.group(1) if kind else None, "cdi_version": version.group(1) if version else None,
                "versions": sorted(set(libraries)), "devices": devices[:200],
            })  # fmt: skip
    return as_json(found)


# ----------------------------------------------------------------------------------------- storage


def disks_by_id() -> "Dict[str, Any]":
    """Names of /dev/disk/by-id and what each points at."""
    root = "/dev/disk/by-id"
    return as_json({name: link(os.path.join(root, name)) for name in names(root)})


_REMOTE = re.compile(r"^(?:nfs|cifs|smb|ceph|lustre|fuse|9p|afs|gpfs|beegfs|glusterfs|autofs|virtiofs)")
_VIRTUAL = frozenset(
    "proc sysfs devtmpfs devpts cgroup cgroup2 securityfs pstore efivarfs bpf tracefs debugfs configfs mqueue "
    "hugetlbfs fusectl binfmt_misc nsfs rpc_pipefs ramfs squashfs iso9660".split()
)


def space() -> "Dict[str, Any]":
    """Size and use of each local file system, in bytes. Network file systems can hang and are left out."""
    found: "List[Dict[str, Any]]" = []
    seen: "Set[str]" = set()
    for line in (peek("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        part, kind, source = left.split(), right.split()[0], right.split()[1]
        if kind in _VIRTUAL or _REMOTE.match(kind) or part[2] in seen:
            continue
        target = part[4].encode().decode("unicode_escape")
        try:
            status = os.statvfs(target)
        except OSError:
            continue
        seen.add(part[2])
        found.append({
            "target": target, "source": source, "type": kind,
            "size": status.f_blocks * status.f_frsize, "free": status.f_bfree * status.f_frsize,
            "available": status.f_bavail * status.f_frsize, "inodes": status.f_files, "inodes_free": status.f_ffree,
        })  # fmt: skip
    return as_json(found)


def nvme_smart() -> "Dict[str, Any]":
    disks = [path for path in sorted(glob.glob("/dev/nvme[0-9]*n[0-9]*")) if re.search(r"n\d+$", path)]
    if not disks:
        return {"disks": []}
    if program("smartctl") is None:
        return {"missing": True}
    if os.geteuid() != 0:
        return {"denied": True}
    said = ask_all([["smartctl", "-j", "-a", path] for path in disks], 6.0)
    return {"disks": [dict(answer, device=path) for path, answer in zip(disks, said)]}


# ----------------------------------------------------------------------------------------- network


def rdma() -> "Dict[str, Any]":
    """One entry a port below /sys/class/infiniband."""
    root, found = "/sys/class/infiniband", []
    for device in names(root):
        at = os.path.join(root, device)
        management = None
        try:
            with open(at + "/device/vpd", "rb") as vpd:
                management = b"SW_MNG" in vpd.read(4096)
        except OSError:
            pass
        for port in names(at + "/ports"):
            here = os.path.join(at, "ports", port)
            gids = []
            for index in sorted(names(here + "/gids"), key=lambda text: int(text) if text.isdigit() else 0)[
                :64
            ]:
                gid = peek(here + "/gids/" + index)
                if gid and gid.replace(":", "").strip("0"):
                    gids.append({
                        "index": int(index), "gid": gid, "type": peek(here + "/gid_attrs/types/" + index),
                        "netdev": peek(here + "/gid_attrs/ndevs/" + index),
                    })  # fmt: skip
            found.append({
                "device": device, "port": int(port), "state": peek(here + "/state"),
                "physical_state": peek(here + "/phys_state"), "rate": peek(here + "/rate"),
                "link_layer": peek(here + "/link_layer"), "lid": peek(here + "/lid"), "gids": gids,
                "node_type": peek(at + "/node_type"), "board_id": peek(at + "/board_id"),
                "firmware": peek(at + "/fw_ver"), "hca_type": peek(at + "/hca_type"),
                "pci": link(at + "/device"), "numa_node": number(peek(at + "/device/numa_node")),
                "physical_function": link(at + "/device/physfn"), "netdevs": names(at + "/device/net"),
                "switch_management": management,
            })  # fmt: skip
    return as_json(found)


def net() -> "Dict[str, Any]":
    """What /sys knows of each interface beyond `ip`: speed in Mbit/s, PCI device, driver."""
    found = []
    for name in names("/sys/class/net"):
        at = "/sys/class/net/" + name
        if not os.path.isdir(at):
            continue
        speed = number(peek(at + "/speed"))
        found.append({
            "name": name, "speed": speed if speed and speed > 0 else None, "duplex": peek(at + "/duplex"),
            "operstate": peek(at + "/operstate"), "carrier": peek(at + "/carrier"), "type": peek(at + "/type"),
            "pci": link(at + "/device"), "driver": link(at + "/device/driver"),
            "numa_node": number(peek(at + "/device/numa_node")), "physical_function": link(at + "/device/physfn"),
            "master": link(at + "/master"), "virtual": "/virtual/" in os.path.realpath(at),
        })  # fmt: skip
    return as_json(found)


def _address(text: str) -> "Tuple[str, int]":
    """An address of /proc/net/{tcp,udp}*: 32-bit words in the machine's byte order, then the port."""
    host, port = text.split(":")
    words = [int(host[i : i + 8], 16) for i in range(0, len(host), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, struct.pack("=%dI" % len(words), *words)), int(port, 16)


def sockets() -> "Dict[str, Any]":
    """Listening sockets with their owners. From /proc: `ss` would load the kernel's diag modules."""
    wanted = []
    for protocol, listening in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in (peek("/proc/net/" + protocol) or "").splitlines()[1:]:
            part = line.split()
            if part[3] == listening:
                address, port = _address(part[1])
                wanted.append({
                    "proto": protocol[:3], "family": 6 if protocol.endswith("6") else 4, "address": address, "port": port,
                    "uid": int(part[7]), "inode": part[9], "pid": None, "program": None, "unit": None,
                })  # fmt: skip
    owner: "Dict[str, int]" = {}
    inodes = set(row["inode"] for row in wanted)
    for pid, _, _ in processes():
        folder = "/proc/%d/fd" % pid
        for name in names(folder):
            try:
                target = os.readlink(folder + "/" + name)
            except OSError:
                continue
            if target.startswith("socket:[") and target[8:-1] in inodes:
                # systemd holds the sockets that it hands to services: the service is the owner to name.
                if target[8:-1] not in owner or owner[target[8:-1]] == 1:
                    owner[target[8:-1]] = pid
    for row in wanted:
        holder = owner.get(str(row.pop("inode")))
        if holder is not None:
            row["pid"], row["program"] = holder, peek("/proc/%d/comm" % holder)
            unit = re.search(r"([^/\n]+\.(?:service|socket|scope))", peek("/proc/%d/cgroup" % holder) or "")
            row["unit"] = unit.group(1) if unit else None
    return as_json(wanted)


def firewall() -> "Dict[str, Any]":
    """The rule sets that are loaded. A tool is asked only where its tables are in the kernel already:
    listing would load the modules otherwise, and where they are absent there is no rule."""
    if os.geteuid() != 0:
        return {"denied": True}
    rules: "List[Dict[str, Any]]" = []
    no_tables = "its tables are not in the kernel: there is no rule"

    def tool(argv: "List[str]", here: bool) -> None:
        rules.append(ask(argv, 8.0, 1024 * 1024) if here else {"argv": argv, "not_asked": no_tables})

    tool(["nft", "list", "ruleset"], in_kernel("nf_tables"))
    for suffix, table_list in (("", "/proc/net/ip_tables_names"), ("6", "/proc/net/ip6_tables_names")):
        name = "ip%stables-legacy-save" % suffix
        if program(name) is None and program("ip%stables-save" % suffix):
            real = os.path.basename(os.path.realpath(program("ip%stables-save" % suffix) or ""))
            name = "ip%stables-save" % suffix if "nft" not in real else name
        tool([name], bool(peek(table_list)))
    enabled = re.search(r"(?m)^ENABLED=[\"']?yes", peek("/etc/ufw/ufw.conf") or "")
    if program("ufw"):
        rules.append(
            ask(["ufw", "status", "verbose"], 8.0)
            if enabled and in_kernel("nf_tables", "ip_tables")
            else {"argv": ["ufw", "status", "verbose"], "not_asked": "ufw is not enabled"}
        )
    if any(name == "firewalld" for _, name, _ in processes()):
        rules.append(ask(["firewall-cmd", "--list-all-zones"], 8.0))
    return {"rules": rules}


def in_kernel(*modules: str) -> bool:
    """True where one of the modules is loaded or built in, or the kernel cannot load modules at all."""
    if not os.path.exists("/proc/modules"):
        return True
    if any(os.path.isdir("/sys/module/" + module) for module in modules):
        return True
    built_in = peek("/lib/modules/%s/modules.builtin" % os.uname().release) or ""
    return any("/%s.ko" % module in built_in for module in modules)


# --------------------------------------------------------------------------------------------- ssh


def sshd_arguments() -> "List[str]":
    """-f, -o and -p of the running listener (RHEL hands its crypto policy over that way)."""
    for pid, name, _ in processes():
        if name == "sshd":
            text = command_line(pid)
            if "[listener]" in text or re.match(r"(?:sshd: )?\S*/sshd\b", text):
                words = text.replace("[listener]", " ").split()
                kept: "List[str]" = []
                for index, word in enumerate(words):
                    if word in ("-f", "-o", "-p") and index + 1 < len(words):
                        kept += [word, words[index + 1]]
                    elif re.match(r"-[fop].", word):
                        kept.append(word)
                return kept
    return []


def sshd_files(main: str = "/etc/ssh/sshd_config") -> "Dict[str, Any]":
    """Each file that sshd reads, in the order read: an Include takes effect where it stands (sshd_config(5))."""
    found: "List[Dict[str, Any]]" = []

    def visit(path: str, depth: int) -> None:
        answer = dict(file(path), path=path)
        found.append(answer)
        for line in answer.get("text", "").splitlines():
            include = re.match(r"(?i)\s*include\s*=?\s*(.+)", line)
            if include and depth < 16 and len(found) < 200:
                for pattern in re.findall(r"\"([^\"]*)\"|(\S+)", include.group(1).split(" #")[0]):
                    name = pattern[0] or pattern[1]
                    if not name.startswith("/"):
                        name = os.path.join("/etc/ssh", name)
                    for each in sorted(glob.glob(name)):
                        visit(each, depth + 1)

    arguments = sshd_arguments()
    for index, word in enumerate(arguments):
        if word.startswith("-f"):
            main = word[2:] or (arguments[index + 1 :] or [main])[0]
    visit(main, 0)
    if found[0].get("missing") or found[0].get("denied"):
        return found[0]
    return {"files": found}


def operator_address() -> "Optional[str]":
    """Where the SSH connection that we run over comes from; sudo drops the variable, the parents keep it."""
    pid, hops = os.getpid(), 0
    while pid > 1 and hops < 12:
        found = re.search(r"(?:^|\0)SSH_CONNECTION=(\S+) ", peek("/proc/%d/environ" % pid) or "")
        if found:
            return found.group(1)
        parent = re.search(r"(?m)^PPid:\s*(\d+)", peek("/proc/%d/status" % pid) or "")
        pid, hops = int(parent.group(1)) if parent else 0, hops + 1
    return None


def operator_name() -> str:
    name = os.environ.get("SUDO_USER", "")
    if name and name != "root":
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _representative(pattern: str) -> "Optional[str]":
    """One address or name that a pattern of a Match line covers."""
    if pattern.startswith("!"):
        return None
    if "/" in pattern:
        network, _, bits = pattern.partition("/")
        family = socket.AF_INET6 if ":" in network else socket.AF_INET
        try:
            packed = bytearray(socket.inet_pton(family, network))
        except OSError:
            return None
        if number(bits) != len(packed) * 8:
            packed[-1] |= 1
        return socket.inet_ntop(family, bytes(packed))
    return pattern.replace("*", "1").replace("?", "1")


def _match_criteria(files: "List[Dict[str, Any]]") -> "Dict[str, List[str]]":
    criteria: "Dict[str, List[str]]" = {}
    for entry in files:
        for line in entry.get("text", "").splitlines():
            found = re.match(r"(?i)\s*match\s+(.+)", line)
            words = re.findall(r"\"[^\"]*\"|[^\s=]+", found.group(1)) if found else []
            for key, value in zip(words, words[1:]):
                if key.lower() in (
                    "user",
                    "group",
                    "host",
                    "address",
                    "localaddress",
                    "localport",
                    "rdomain",
                ):
                    criteria.setdefault(key.lower(), []).extend(value.strip('"').split(","))
    return criteria


def _logins() -> "List[Tuple[str, str, int, int, str, str]]":
    """Accounts that a person or a key can log in to."""
    return [
        entry
        for entry in passwd()
        if entry[2] == 0 or not entry[5].endswith(("/nologin", "/false", "/sync", "/halt", "/shutdown"))
    ]


def sshd_cases(files: "List[Dict[str, Any]]") -> "List[Dict[str, str]]":
    """The users and addresses to ask `sshd -T` about: exceptions hide in Match blocks, so each block gets one."""
    here = operator_address() or "127.0.0.1"
    stranger = "gpu-provision-nobody"
    criteria = _match_criteria(files)
    people = [entry[0] for entry in _logins() if entry[0] != "root"]
    users = ["root", operator_name(), *people[:12]]
    users += [name for pattern in criteria.get("user", []) for name in [_representative(pattern)] if name]
    for group in criteria.get("group", []):
        users += _members(group)[:2]
    users.append(stranger)
    outside = ["127.0.0.1", "198.51.100.77", "2001:db8::77"]  # the last two are documentation addresses
    blocks = [a for pattern in criteria.get("address", []) for a in [_representative(pattern)] if a]
    hosts = [name for pattern in criteria.get("host", []) for name in [_representative(pattern)] if name]
    local = [a for pattern in criteria.get("localaddress", []) for a in [_representative(pattern)] if a]
    ports = [text for text in criteria.get("localport", []) if text.isdigit()]
    cases = [{"user": user, "addr": here} for user in users]
    cases += [{"user": user, "addr": addr} for addr in outside for user in ("root", stranger)]
    # Blocks may name a user and an address together.
    some = ["root", operator_name(), stranger] + [
        name for name in users[2:-1] if name in criteria.get("user", [])
    ]
    cases += [{"user": user, "addr": addr} for addr in blocks[:16] for user in some[:8]]
    cases += [{"user": user, "addr": here, "host": name} for name in hosts[:8] for user in ("root", stranger)]
    cases += [{"user": user, "addr": here, "laddr": a} for a in local[:4] for user in ("root", stranger)]
    cases += [
        {"user": user, "addr": here, "lport": port} for port in ports[:4] for user in ("root", stranger)
    ]
    if "rdomain" in criteria:
        cases = [dict(case, rdomain="none") for case in cases]
    unique: "List[Dict[str, str]]" = []
    for case in cases:
        if case not in unique:
            unique.append(case)
    return unique[:120]


def _members(group: str) -> "List[str]":
    pattern = re.compile(re.escape(group).replace(r"\*", ".*").replace(r"\?", ".") + "$")
    found = []
    for line in (peek("/etc/group") or "").splitlines():
        part = line.split(":")
        if len(part) == 4 and pattern.match(part[0]):
            found += [name for name in part[3].split(",") if name]
            found += [entry[0] for entry in passwd() if str(entry[3]) == part[2]]
    return found


def sshd_effective() -> "Dict[str, Any]":
    """`sshd -T` for several users and addresses."""
    if program("sshd") is None:
        return {"missing": True}
    files = sshd_files().get("files", [])
    arguments = sshd_arguments()
    commands = []
    cases = sshd_cases(files)
    for case in cases:
        triple = dict({"host": case["addr"], "laddr": "127.0.0.1", "lport": "22"}, **case)
        commands.append(
            ["sshd", "-T"] + arguments + ["-C", ",".join("%s=%s" % pair for pair in sorted(triple.items()))]
        )
    answers = []
    for case, said in zip(cases, ask_all(commands, 5.0)):
        answer = dict(
            {key: said[key] for key in ("rc", "stdout", "stderr", "timed_out") if key in said},
            user=case["user"],
        )
        answer.update({key: case[key] for key in ("addr", "host", "laddr", "lport") if key in case})
        answers.append(answer)
    document: "Dict[str, Any]" = {
        "cases": answers,
        "arguments": arguments,
        "operator": {"user": operator_name(), "addr": operator_address()},
    }
    if os.geteuid() != 0 and all(answer.get("rc") for answer in answers):
        document["denied"] = True
    return document


_KEY_TYPE = re.compile(
    r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+|sk-\S+@openssh\.com|ssh-\S+-cert-v01@openssh\.com)$"
)


def _keys(path: str) -> "Tuple[int, int, int]":
    """(plain and forced-command keys together, forced-command keys, certificate authorities) of one file."""
    total = forced = authorities = 0
    for line in read(path).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        # Options may hold quoted spaces; the key type ends them.
        bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"", '""', line)
        words = bare.split()
        options = "" if _KEY_TYPE.match(words[0]) else words[0].lower()
        if not any(_KEY_TYPE.match(word) for word in words[:2]) or len(words) < (3 if options else 2):
            continue
        if "cert-authority" in options.split(","):
            authorities += 1
            continue
        total += 1
        forced += "command=" in options
    return total, forced, authorities


def _modes_refused(path: str, home: str, uid: int) -> "Optional[str]":
    """Why sshd's StrictModes would ignore a key file: from the file up to the home directory, each must
    belong to root or the user and be writable by nobody else (auth_secure_path in OpenSSH's misc.c)."""
    current, home = os.path.realpath(path), os.path.realpath(home)
    while True:
        status = os.stat(current)
        if status.st_uid not in (0, uid) or status.st_mode & 0o022:
            return "%s: mode %04o, owner %s" % (
                current,
                stat.S_IMODE(status.st_mode),
                account_name(status.st_uid),
            )
        if current in (home, "/"):
            return None
        current = os.path.dirname(current)


def _sudo(user: str) -> "Dict[str, Any]":
    own = os.geteuid() != 0
    if own and user != operator_name():
        return {"sudo": None}
    said = ask(["sudo", "-n", "-l"] + ([] if own else ["-U", user]), 6.0)
    if said.get("timed_out"):
        return {"sudo": None}
    text = said.get("stdout", "")
    level, commands = "none", 0
    for line in text.splitlines():
        rule = re.match(r"\s+\(([^)]*)\)\s*(.*)", line)
        if rule and re.match(r"\s*(?:root|ALL)\b", rule.group(1)):
            commands += 1
            if re.search(r"(?:^|[\s,:])ALL\s*(?:,|$)", rule.group(2)):
                free = "NOPASSWD:" in rule.group(2) or (level == "nopasswd")
                level = "nopasswd" if free else "passwd"
    if own and said.get("rc") and level == "none":
        # `sudo -n -l` ends with an error for one who has rights but would have to give a password.
        return {"sudo": "passwd" if "password is required" in said.get("stderr", "") else "none"}
    return {"sudo": level, "sudo_rules": commands}


def accounts() -> "Dict[str, Any]":
    """Login accounts. `keys` counts all usable keys, `forced_command_keys` those among them that only run
    one command. `locked_by` tells `!`, which sshd takes for a locked account, from `*`."""
    shadow: "Dict[str, List[str]]" = {}
    readable = True
    try:
        shadow = {
            line.split(":")[0]: line.split(":")
            for line in read("/etc/shadow", 1 << 20).splitlines()
            if ":" in line
        }
    except OSError:
        readable = False
    patterns = _key_files()
    people = _logins()[:64]
    rights = (
        _side_by_side(_sudo, [entry[0] for entry in people])
        if program("sudo")
        else [{"sudo": "none"}] * len(people)
    )
    found = []
    for entry, sudo in zip(people, rights):
        name, _, uid, _, home, shell = entry
        row: "Dict[str, Any]" = {
            "name": name,
            "uid": uid,
            "shell": shell,
            "home": home,
            "password": None,
            "keys": 0,
            "forced_command_keys": 0,
        }
        if readable:
            secret = shadow.get(name, ["", "*"])
            row.update(_password(secret))
        row.update(sudo)
        row["groups"] = _groups(name, entry[3])
        refused, unread = [], False
        row["authorities"] = 0
        for pattern in patterns:
            path = pattern.replace("%%", "%").replace("%h", home).replace("%u", name).replace("%U", str(uid))
            path = path if path.startswith("/") else os.path.join(home, path)
            try:
                total, forced, authorities = _keys(path)
                problem = _modes_refused(path, home, uid)
            except OSError as e:
                unread = unread or e.errno in (errno.EACCES, errno.EPERM)
                continue
            row["key_files"] = [*row.get("key_files", []), path]
            if problem:
                refused.append(problem)
            row["keys"] += total
            row["forced_command_keys"] += forced
            row["authorities"] += authorities
        if unread:
            row["keys"] = row["forced_command_keys"] = None
        if refused:
            row["keys_refused"] = refused
        found.append(row)
    return as_json(found)


def _groups(name: str, gid: int) -> "List[str]":
    """Names of all groups of an account, which AllowGroups goes by."""
    found = []
    for group in os.getgrouplist(name, gid):
        try:
            found.append(grp.getgrgid(group).gr_name)
        except KeyError:
            found.append(str(group))
    return found


def _side_by_side(function: "Callable[[str], Dict[str, Any]]", values: "List[str]") -> "List[Dict[str, Any]]":
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(function, values))


def _password(entry: "List[str]") -> "Dict[str, Any]":
    """passwd -S's three states from shadow(5); expiry in days since 1970."""
    secret = entry[1] if len(entry) > 1 else "*"
    row: "Dict[str, Any]" = {"password": "set"}
    if secret == "":
        row["password"] = "none"
    elif secret[0] in "!*":
        row.update(password="locked", locked_by=secret[0])
    expires = number(entry[7]) if len(entry) > 7 else None
    if expires is not None and expires >= 0:
        row["expired"] = expires * 86400 < time.time()
    if len(entry) > 2 and entry[2] == "0" and row["password"] == "set":
        row["must_change_password"] = True
    return row


def _key_files() -> "List[str]":
    said = ask(
        ["sshd", "-T"]
        + sshd_arguments()
        + ["-C", "user=root,host=127.0.0.1,addr=127.0.0.1,laddr=127.0.0.1,lport=22"]
    )
    found = re.search(r"(?m)^authorizedkeysfile (.+)$", said.get("stdout", ""))
    if found:
        return [] if found.group(1) == "none" else found.group(1).split()
    return [".ssh/authorized_keys", ".ssh/authorized_keys2"]  # sshd's default


# -------------------------------------------------------------------------------- packages and system


def apt_holds() -> "Dict[str, Any]":
    """What `apt-mark showhold` prints; dpkg knows it without building apt's cache."""
    if program("dpkg-query") is None:
        return {"missing": True}
    said = ask(["dpkg-query", "-W", "-f=${db:Status-Want}\t${binary:Package}\n"], 8.0, 4 * 1024 * 1024)
    if said.get("rc") != 0:
        return said
    native = ask(["dpkg", "--print-architecture"]).get("stdout", "").strip()
    held = [line.split("\t")[1] for line in said["stdout"].splitlines() if line.startswith("hold\t")]
    lines = [name[: -len(native) - 1] if native and name.endswith(":" + native) else name for name in held]
    return {
        "argv": ["apt-mark", "showhold"],
        "rc": 0,
        "stdout": "".join(line + "\n" for line in lines),
        "stderr": "",
    }


def installed_matching(pattern: str) -> "List[str]":
    """Names of installed packages, from dpkg's own file."""
    found = []
    name = None
    try:
        with open("/var/lib/dpkg/status", "rb") as status:
            for line in status:
                if line.startswith(b"Package: "):
                    name = line[9:].strip().decode("ascii", "replace")
                elif (
                    line.startswith(b"Status: ")
                    and b" not-installed" not in line
                    and name
                    and re.match(pattern, name)
                ):
                    found.append(name)
    except OSError:
        pass
    return found


def kernel_packages() -> "List[str]":
    """Images and headers of the installed kernels, and the hardware-enablement stack of an Ubuntu release."""
    found = installed_matching(
        r"linux-image-\d|linux-headers-\d|linux-(?:image-|headers-)?generic-hwe-|linux-modules-nvidia-"
    )
    found += ["linux-headers-" + release for release in names("/lib/modules")]
    release = dict(line.split("=", 1) for line in (peek("/etc/os-release") or "").splitlines() if "=" in line)
    if release.get("ID", "").strip('"') == "ubuntu":
        hwe = "generic-hwe-" + release.get("VERSION_ID", "").strip('"')
        found += ["linux-" + hwe, "linux-image-" + hwe, "linux-headers-" + hwe]
    return sorted(set(found))


def apt_lists() -> "Dict[str, Any]":
    """Fetched package lists with the time of each, in seconds since 1970."""
    root, found = "/var/lib/apt/lists", []
    for name in names(root):
        if name.endswith(("_InRelease", "_Release", "_Packages", ".lz4", ".gz", ".xz")):
            status = os.stat(os.path.join(root, name))
            found.append({"name": name, "modified": int(status.st_mtime), "size": status.st_size})
    return as_json(found)


def package_locks() -> "Dict[str, Any]":
    """Who holds dpkg's and apt's locks now, from /proc/locks."""
    found = []
    paths = (
        "/var/lib/dpkg/lock-frontend",
        "/var/lib/dpkg/lock",
        "/var/lib/apt/lists/lock",
        "/var/cache/apt/archives/lock",
    )
    table = (peek("/proc/locks") or "").splitlines()
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        wanted = "%02x:%02x:%d" % (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
        for line in table:
            part = line.split()
            if len(part) >= 6 and part[5] == wanted and part[1] != "->":
                pid = int(part[4])
                found.append({"path": path, "pid": pid, "program": peek("/proc/%d/comm" % pid)})
    return as_json(found)


def sysctl(wanted: "List[str]") -> "Dict[str, Any]":
    lines = []
    for name in wanted:
        value = peek("/proc/sys/" + name.replace(".", "/"))
        if value is not None:
            lines.append("%s = %s\n" % (name, " ".join(value.split())))
    return {"rc": 0, "stdout": "".join(lines), "stderr": ""}


def limits() -> "Dict[str, Any]":
    """Memlock, nofile and stack as [soft, hard] in bytes or files: of this login, of systemd's default, of services."""
    import resource

    def plain(value: int) -> "Any":
        return "unlimited" if value == resource.RLIM_INFINITY else value

    session = {
        name: [plain(value) for value in resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))]
        for name in ("memlock", "nofile", "stack", "nproc")
    }
    services: "Dict[str, Any]" = {}
    rows = {"Max locked memory": "memlock", "Max open files": "nofile", "Max stack size": "stack"}
    for pid, name, _ in processes():
        if name in ("dockerd", "containerd", "sshd", "slurmd") and name not in services:
            for line in (peek("/proc/%d/limits" % pid) or "").splitlines():
                for title, key in rows.items():
                    if line.startswith(title):
                        pair = [int(v) if v.isdigit() else v for v in line[len(title) :].split()[:2]]
                        services.setdefault(name, {})[key] = pair
    manager = {}
    if os.path.isdir("/run/systemd/system"):
        properties = [
            "DefaultLimitMEMLOCK",
            "DefaultLimitMEMLOCKSoft",
            "DefaultLimitNOFILE",
            "DefaultLimitNOFILESoft",
            "DefaultLimitSTACK",
        ]
        for line in (
            ask(["systemctl", "show", "--no-pager", "-p", ",".join(properties)])
            .get("stdout", "")
            .splitlines()
        ):
            key, _, value = line.partition("=")
            manager[key] = value
    return as_json({"session": session, "services": services, "systemd": manager})


_TIME_UNITS = "systemd-timesyncd.service chrony.service chronyd.service ntp.service ntpd.service ntpsec.service openntpd.service"


def clock() -> "Dict[str, Any]":
    """What `timedatectl show` prints, without starting systemd-timedated over the bus, which that does.

    NTPSynchronized is computed the way systemd-timedated does: adjtimex(2) with a largest error below 16 s.
    """
    try:
        zone = os.path.realpath("/etc/localtime").split("/zoneinfo/", 1)[1]
    except IndexError:
        zone = peek("/etc/timezone") or "UTC"
    active = [unit for unit in _TIME_UNITS.split() if _is_running(unit)]
    lines = [
        "Timezone=" + zone,
        "LocalRTC=" + ("yes" if re.search(r"(?m)^LOCAL$", peek("/etc/adjtime") or "") else "no"),
    ]
    lines.append("NTP=" + ("yes" if active else "no"))
    try:
        import ctypes

        buffer = ctypes.create_string_buffer(512)
        if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) >= 0:
            # struct timex: unsigned modes, then long offset, freq, maxerror
            largest_error = struct.unpack_from("@Illl", buffer)[3]
            lines.append("NTPSynchronized=" + ("yes" if largest_error < 16000000 else "no"))
    except (ImportError, AttributeError, OSError):
        pass
    lines.append("TimeUSec=%d" % int(time.time() * 1e6))
    if active:
        lines.append("Unit=" + active[0])
    return {"argv": ["timedatectl", "show"], "rc": 0, "stdout": "\n".join(lines) + "\n", "stderr": ""}


def _is_running(unit: str) -> bool:
    """Whether the unit's control group holds a process; works without asking systemd."""
    for root in ("/sys/fs/cgroup/system.slice/", "/sys/fs/cgroup/systemd/system.slice/"):
        if peek(root + unit + "/cgroup.procs"):
            return True
    return False


def dmi() -> "Dict[str, Any]":
    """Vendor and product of the machine; no serial numbers."""
    keys = (
        "sys_vendor",
        "product_name",
        "product_version",
        "board_vendor",
        "board_name",
        "bios_vendor",
        "bios_version",
        "bios_date",
        "chassis_asset_tag",
    )
    return as_json({key: peek("/sys/class/dmi/id/" + key) for key in keys})


def rights() -> "Dict[str, Any]":
    """Who we are on the host and what the answers were read with."""
    return as_json({
        "user": operator_name(), "uid": os.geteuid(), "root": os.geteuid() == 0,
        "sudo": os.geteuid() == 0 and bool(os.environ.get("SUDO_USER")), "read_only_view": _confined,
        "from": operator_address(),
    })  # fmt: skip


def nvidia_processes() -> "Dict[str, Any]":
    """Processes that have NVIDIA's device nodes open: who uses the GPUs, told without the driver's help."""
    found = []
    for pid, name, state in processes():
        folder = "/proc/%d/fd" % pid
        for entry in names(folder):
            try:
                target = os.readlink(folder + "/" + entry)
            except OSError:
                continue
            if target.startswith("/dev/nvidia"):
                found.append({"pid": pid, "program": name, "state": state})
                break
    return as_json(found)


# ----------------------------------------------------------------------- what must hold before asking


def _driver_loaded() -> "Optional[str]":
    """Asking nvidia-smi would load the module, so it is asked only where it is loaded."""
    if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/sys/module/nvidia"):
        return None
    return "the nvidia module is not loaded (asking would load it)"


def _docker_active() -> "Optional[str]":
    """docker.socket would start the daemon, so a client is used only where dockerd runs already."""
    if any(name == "dockerd" for _, name, _ in processes()):
        return None
    if not os.path.exists("/proc/1/comm"):
        return "it cannot be seen whether docker.service is active (/proc hides other users' processes)"
    return "docker.service is not active"


def _systemd_runs() -> "Optional[str]":
    return None if os.path.isdir("/run/systemd/system") else "systemd does not run on this host"


WHEN = {"driver-loaded": _driver_loaded, "docker-active": _docker_active, "systemd": _systemd_runs}


def hanging(name: str) -> "Optional[Dict[str, Any]]":
    """A process called `name` that sleeps in the kernel and cannot be ended: one with SIGKILL pending,
    or one in state D both now and half a second later that is older than the longest time limit."""

    def stuck() -> "Dict[int, bool]":
        found = {}
        for pid, comm, state in processes():
            if comm == name[:15] and state in "DRSt":
                status = peek("/proc/%d/status" % pid) or ""
                pending = re.findall(r"(?m)^(?:Sig|Shd)Pnd:\s*([0-9a-f]+)", status)
                killed = any(int(mask_, 16) & (1 << (signal.SIGKILL - 1)) for mask_ in pending)
                if killed or (state == "D" and _age(pid) > 30):
                    found[pid] = killed
        return found

    first = stuck()
    if not first:
        return None
    time.sleep(GRACE)
    second = stuck()
    for pid in first:
        if pid in second:
            return {"pid": pid, "command": command_line(pid) or name, "seconds": int(_age(pid))}
    return None


def _age(pid: int) -> float:
    text = peek("/proc/%d/stat" % pid) or ""
    uptime = (peek("/proc/uptime") or "0").split()[0]
    try:
        return float(uptime) - int(text.rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (IndexError, ValueError):
        return 0.0


# --------------------------------------------------------------------------------------- the engine


class Command:
    """One item that is a command, in a session of its own."""

    def __init__(self, item: "Dict[str, Any]", token: str) -> None:
        self.item = item
        self.name: str = item["name"]
        self.token = "%s:%s" % (token, self.name)
        self.limit: int = item.get("limit", 512 * 1024)
        self.out: "Dict[str, bytes]" = {"stdout": b"", "stderr": b""}
        self.cut = False
        self.open: "Set[str]" = set()
        self.killed = 0.0
        self.reason = ""
        self.argv = self._arguments()

    def _arguments(self) -> "List[str]":
        argv = []
        for index, word in enumerate(self.item["argv"]):
            if word == "@kernel-packages":
                argv += kernel_packages()
            elif word.startswith("@installed:"):
                argv += installed_matching(word.split(":", 1)[1])
            else:
                argv.append(word)
            if index == 0 and not _confined:
                argv += self.item.get("unless_read_only", [])
        return argv

    def start(self, poll: "selectors.BaseSelector") -> None:
        """Raises OSError where the program cannot be run."""
        self.began = time.time()
        self.deadline = self.began + self.item["seconds"]
        before: "Optional[Callable[[], None]]" = None
        if _confined and self.item.get("host_mounts"):
            before = _back_to_host_mounts
        elif self.item.get("as_nobody") and os.geteuid() == 0:
            before = _as_nobody
        path = program(self.argv[0])
        if path is None:
            raise OSError(errno.ENOENT, "not found")
        self.process = subprocess.Popen(
            [path, *self.argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(NICE_ENVIRONMENT, **{TOKEN_VARIABLE: self.token}), cwd="/", start_new_session=True, preexec_fn=before,
        )  # fmt: skip
        for stream in ("stdout", "stderr"):
            pipe = getattr(self.process, stream)
            os.set_blocking(pipe.fileno(), False)
            poll.register(pipe, selectors.EVENT_READ, (self, stream))
            self.open.add(stream)

    def read(self, stream: str, poll: "selectors.BaseSelector") -> None:
        pipe = getattr(self.process, stream)
        try:
            data = os.read(pipe.fileno(), 65536)
        except BlockingIOError:
            return
        if not data:
            self._close(stream, poll)
            return
        room = (self.limit if stream == "stdout" else 16384) - len(self.out[stream])
        self.out[stream] += data[:room] if room > 0 else b""
        if len(data) > room:
            self.cut = self.cut or stream == "stdout"
            if stream == "stdout":
                self.kill("endless")  # more than anybody reads: do not let it print for ever

    def _close(self, stream: str, poll: "selectors.BaseSelector") -> None:
        if stream in self.open:
            self.open.discard(stream)
            pipe = getattr(self.process, stream)
            poll.unregister(pipe)
            pipe.close()

    def kill(self, reason: str) -> None:
        if not self.killed:
            self.killed, self.reason = time.time(), reason
        _kill_group(self.process.pid)

    def step(self, poll: "selectors.BaseSelector") -> "Optional[Dict[str, Any]]":
        """The answer, once there is one."""
        now = time.time()
        ended = self.process.poll() is not None
        if ended and self.open and not self.killed:
            # It ended, but a child of its keeps the pipes open: take what is there and go.
            if getattr(self, "lingers", 0.0) == 0.0:
                self.lingers = now
            elif now - self.lingers > GRACE:
                self.kill("lingers")
        if not ended and not self.killed and now > self.deadline:
            self.kill("time")
        if self.killed and (ended or now - self.killed > GRACE):
            return self._finish(poll, ended)
        if ended and not self.open:
            return self._finish(poll, True)
        return None

    def _finish(self, poll: "selectors.BaseSelector", ended: bool) -> "Dict[str, Any]":
        for stream in list(self.open):
            self._close(stream, poll)
        answer: "Dict[str, Any]" = {"argv": self.argv, "seconds": round(time.time() - self.began, 3)}
        if self.reason == "time":
            answer.update(rc=None, timed_out=True, seconds=round(self.deadline - self.began, 3))
            left = survivors(self.process.pid, self.token)
            if left:
                answer["left_behind"] = left
            return answer
        answer.update(rc=self.process.returncode if self.reason != "endless" else None)
        answer.update(stdout=decoded(self.out["stdout"]), stderr=decoded(self.out["stderr"]))
        if self.cut:
            answer["cut"] = True
        if answer["rc"] and denial(answer["stderr"] + answer["stdout"][:4096]):
            answer["denied"] = True
        return answer


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def survivors(session: int, token: str) -> "List[Dict[str, Any]]":
    """Processes of an ended item that are still there: killed again, then named."""

    def ours() -> "List[Tuple[int, str]]":
        found = []
        for pid, _, state in processes():
            fields = (peek("/proc/%d/stat" % pid) or ") ").rsplit(")", 1)[1].split()
            in_session = len(fields) > 3 and fields[3] == str(session)
            if state not in "ZX" and (in_session or _has_token(pid, token)):
                found.append((pid, state))
        return found

    first = ours()
    for pid, _ in first:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    if not first:
        return []
    time.sleep(TICK)
    return [{"pid": pid, "state": state, "command": command_line(pid)} for pid, state in ours()]


def _has_token(pid: int, token: str) -> bool:
    text = peek("/proc/%d/environ" % pid)
    return text is not None and "%s=%s" % (TOKEN_VARIABLE, token) in text.split("\0")


class Builtins:
    """Items that this program answers itself, one after another in a child process that may hang."""

    def __init__(self, units: "List[Dict[str, Any]]", token: str) -> None:
        self.units, self.token = units, "%s:%s" % (token, units[0]["name"])
        self.name = units[0]["name"]
        self.answers: "Dict[str, Dict[str, Any]]" = {}
        self.buffer = b""
        self.pid = -1
        self.fd = -1

    def start(self, poll: "selectors.BaseSelector") -> None:
        inside, outside = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(outside)
        os.close(outside)
        self.fd = inside
        os.set_blocking(inside, False)
        poll.register(inside, selectors.EVENT_READ, (self, ""))
        self.deadline = time.time() + self.units[0]["seconds"]

    def _child(self, outside: int) -> None:
        status = 1
        try:
            os.setsid()
            for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM):
                signal.signal(signum, signal.SIG_DFL)
            signal.alarm(0)
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                # Nothing that hangs in here may keep the SSH channel open.
                os.dup2(nothing, descriptor)
            os.environ[TOKEN_VARIABLE] = self.token
            with os.fdopen(outside, "wb") as pipe:
                for unit in self.units:
                    answer = answer_builtin(unit)
                    pipe.write(json.dumps([unit["name"], answer]).encode() + b"\n")
                    pipe.flush()
            status = 0
        finally:
            os._exit(status)

    def read(self, _: str, poll: "selectors.BaseSelector") -> None:
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return
        if not data:
            self._close(poll)
            return
        self.buffer += data
        while b"\n" in self.buffer:
            line, self.buffer = self.buffer.split(b"\n", 1)
            name, answer = json.loads(line.decode())
            self.answers[name] = answer
            self.units = [unit for unit in self.units if unit["name"] != name]
            if self.units:
                self.deadline = time.time() + self.units[0]["seconds"]

    def _close(self, poll: "selectors.BaseSelector") -> None:
        if self.fd >= 0:
            poll.unregister(self.fd)
            os.close(self.fd)
            self.fd = -1

    def kill(self, _: str) -> None:
        _kill_group(self.pid)

    def step(self, poll: "selectors.BaseSelector") -> "Optional[Dict[str, Any]]":
        """None while it works; an empty answer at the end (the answers lie in `answers`)."""
        if self.fd < 0:
            try:
                ended, _ = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                ended = self.pid
            if not ended:
                return None
            if self.units:
                unit = self.units.pop(0)
                self.answers[unit["name"]] = {"not_asked": "the collector failed at it"}
                return self._again(poll)
            return {}
        if time.time() <= self.deadline:
            return None
        unit = self.units.pop(0)
        _kill_group(self.pid)
        answer: "Dict[str, Any]" = {"rc": None, "timed_out": True, "seconds": unit["seconds"]}
        self._close(poll)
        time.sleep(TICK)
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pass
        left = survivors(self.pid, self.token)
        if left:
            answer["left_behind"] = left
        self.answers[unit["name"]] = answer
        return self._again(poll)

    def _again(self, poll: "selectors.BaseSelector") -> "Optional[Dict[str, Any]]":
        self.buffer = b""
        if not self.units:
            return {}
        self.start(poll)
        return None


BUILTINS: "Dict[str, Callable[..., Dict[str, Any]]]" = {
    "file": file, "tail": tail, "pci": pci, "kernels": kernels, "lsmod": lsmod, "secure_boot": secure_boot, "cpu": cpu,
    "nvidia_devices": nvidia_devices, "nvidia_files": nvidia_files, "nvidia_processes": nvidia_processes,
    "cuda_installed": cuda_installed, "cdi": cdi, "disks_by_id": disks_by_id, "space": space, "nvme_smart": nvme_smart,
    "rdma": rdma, "net": net, "sockets": sockets, "firewall": firewall, "sshd_files": sshd_files,
    "sshd_effective": sshd_effective, "accounts": accounts, "apt_holds": apt_holds, "apt_lists": apt_lists,
    "package_locks": package_locks, "sysctl": sysctl, "limits": limits, "clock": clock, "dmi": dmi, "rights": rights,
}  # fmt: skip


def answer_builtin(unit: "Dict[str, Any]") -> "Dict[str, Any]":
    began = time.time()
    try:
        answer = BUILTINS[unit["builtin"]](*unit.get("args", []))
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EPERM):
            return {"denied": True}
        return {"not_asked": "it could not be read: %s" % e}
    except Exception as e:  # one builtin's defect must not take the others with it, and it must show
        return {"not_asked": "the collector failed at it: %s: %s" % (type(e).__name__, e)}
    if "rc" in answer and "seconds" not in answer:
        answer["seconds"] = round(time.time() - began, 3)
    return answer


def expand(items: "List[Dict[str, Any]]") -> "List[Dict[str, Any]]":
    """Glob items become one item a file, and one that lists the files there are."""
    result = []
    for item in items:
        if "glob" not in item:
            result.append(item)
            continue
        found = sorted(path for path in glob.glob(item["glob"]) if not os.path.isdir(path))[:200]
        folder = os.path.dirname(item["glob"])
        denied = os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK) and "*" not in folder
        result.append(
            {"name": "glob:" + item["glob"], "answer": {"denied": True} if denied else {"paths": found}}
        )
        known = set(each["name"] for each in result)
        for path in found:
            if "file:" + path not in known:
                result.append(
                    {"name": "file:" + path, "builtin": "file", "args": [path], "seconds": item["seconds"]}
                )
    return result


def plan(
    items: "List[Dict[str, Any]]", answers: "Dict[str, Dict[str, Any]]", token: str
) -> "List[List[Any]]":
    """Lanes of jobs, in the order of the items: what stands in one lane runs one after another."""
    lanes: "Dict[str, List[Any]]" = {}
    groups: "Dict[str, List[Dict[str, Any]]]" = {}
    for item in items:
        if "answer" in item:
            answers[item["name"]] = item["answer"]
        elif "argv" in item:
            lanes.setdefault(item.get("lane") or item["name"], []).append(item)
        else:
            lane = item.get("lane") or ("files" if item["builtin"] == "file" else item["name"])
            groups.setdefault(lane, []).append(item)
            lanes.setdefault(lane, [])
    for lane, units in groups.items():
        lanes[lane] = [Builtins(units, token)]
    return list(lanes.values())


def collect(
    items: "List[Dict[str, Any]]", seconds: float, workers: int, token: str
) -> "Dict[str, Dict[str, Any]]":
    """The answers to all items, within `seconds`."""
    answers: "Dict[str, Dict[str, Any]]" = {}
    end = time.time() + seconds
    poll = selectors.DefaultSelector()
    waiting = plan(expand(items), answers, token)
    running: "List[Tuple[Any, List[Any]]]" = []

    def stop(*_: "Any") -> None:
        for job, _ in running:
            job.kill("stopped")
        os._exit(1)

    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM):
        signal.signal(signum, stop)
    signal.alarm(int(seconds) + 15)  # whatever happens, nothing of ours stays on the host
    while waiting or running:
        while waiting and len(running) < workers:
            lane = waiting.pop(0)
            job = _start_next(lane, answers, poll, token)
            if job is not None:
                running.append((job, lane))
        for key, _ in poll.select(TICK):
            job, stream = key.data
            job.read(stream, poll)
        still = []
        for job, lane in running:
            answer = job.step(poll)
            if answer is None:
                still.append((job, lane))
                continue
            if isinstance(job, Builtins):
                answers.update(job.answers)
            else:
                answers[job.name] = answer
                if answer.get("timed_out") and lane:
                    for item in lane:
                        answers[item["name"]] = {"not_asked": "%s did not answer" % job.name}
                    del lane[:]
            following = _start_next(lane, answers, poll, token) if lane else None
            if following is not None:
                still.append((following, lane))
        running = still
        if time.time() > end:
            _give_up(waiting, running, answers, poll, seconds)
            break
    signal.alarm(0)
    return answers


def _start_next(
    lane: "List[Any]", answers: "Dict[str, Dict[str, Any]]", poll: "selectors.BaseSelector", token: str
) -> "Any":
    """Start the next job of a lane; items that need not or must not be asked are answered on the way."""
    while lane:
        job = lane.pop(0)
        if isinstance(job, Builtins):
            job.start(poll)
            return job
        name, argv = job["name"], job["argv"]
        if program(argv[0]) is None:
            answers[name] = {"argv": argv, "missing": True}
            continue
        reason = WHEN[job["when"]]() if job.get("when") else None
        if reason is not None:
            answers[name] = {"not_asked": reason}
            continue
        if job.get("root") and os.geteuid() != 0:
            answers[name] = {"argv": argv, "denied": True}
            continue
        stuck = hanging(argv[0]) if job.get("never_twice") else None
        if stuck is not None:
            says = "an earlier %s still hangs in the kernel (pid %d, for %d s)" % (
                argv[0],
                stuck["pid"],
                stuck["seconds"],
            )
            for item in [job, *lane]:
                answers[item["name"]] = {"not_asked": says, "left_behind": [stuck]}
            del lane[:]
            return None
        command = Command(job, token)
        try:
            command.start(poll)
        except OSError as e:
            answers[name] = (
                {"denied": True}
                if e.errno in (errno.EACCES, errno.EPERM)
                else {"not_asked": "it could not be run: %s" % e}
            )
            continue
        return command
    return None


def _give_up(
    waiting: "List[List[Any]]",
    running: "List[Tuple[Any, List[Any]]]",
    answers: "Dict[str, Dict[str, Any]]",
    poll: "selectors.BaseSelector",
    seconds: float,
) -> None:
    """The time for the whole is over: end what runs, say of the rest that it was not asked."""
    late = {"not_asked": "the time limit for the whole recording (%d s) was reached" % seconds}
    for job, lane in running:
        job.kill("time")
        if isinstance(job, Builtins):
            answers.update(job.answers)
            for unit in job.units:
                answers[unit["name"]] = dict(late)
        else:
            answers[job.name] = {
                "argv": job.argv,
                "rc": None,
                "timed_out": True,
                "seconds": round(time.time() - job.began, 3),
            }
            left = survivors(job.process.pid, job.token)
            if left:
                answers[job.name]["left_behind"] = left
        for item in lane:
            answers[item["name"]] = dict(late)
    for lane in waiting:
        for job in lane:
            for unit in job.units if isinstance(job, Builtins) else [job]:
                answers[unit["name"]] = dict(late)


def main(questions: "Dict[str, Any]", token: str) -> None:
    """Answer `questions` ({"items", "seconds", "workers"}) and print the framed document."""
    began = time.time()
    os.umask(0o077)
    try:
        os.chdir("/")
    except OSError:
        pass
    confine()
    workers = questions.get("workers") or max(4, min(12, 2 * (os.cpu_count() or 2)))
    answers = collect(questions["items"], questions["seconds"], workers, token)
    version = "Python %d.%d.%d\n" % sys.version_info[:3]
    answers["python"] = {"argv": [sys.executable, "-V"], "rc": 0, "stdout": version, "stderr": ""}
    document = {"as_root": os.geteuid() == 0, "seconds": round(time.time() - began, 3), "items": answers}
    text = base64.b64encode(zlib.compress(json.dumps(document).encode(), 3)).decode()
    # A banner before us may have left its last line open, so the frame starts with a newline of its own.
    frame = "\n%s %s %d\n%s\n%s %s end\n" % (MARK, token, len(text), text, MARK, token)
    data = frame.encode()
    sys.stdout.flush()
    flags = fcntl.fcntl(1, fcntl.F_GETFL)
    fcntl.fcntl(1, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    while data:
        data = data[os.write(1, data) :]
    # A child that cannot be ended must not make the interpreter wait for it.
    os._exit(0)
