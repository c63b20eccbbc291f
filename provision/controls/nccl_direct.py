"""Control of the way between GPUs and RDMA ports: without it each byte goes through the host's memory."""

from __future__ import annotations

import re

from ..catalog.numbers import below
from ..facts.known import Absent, Unknown
from ..planners.nccl_names import unread
from ..planners.nccl_ports import rdma_ports
from ..planners.nccl_release import nccl_release
from .model import Judged, Severity, Verdict, control, passed, skipped, unknown, warned
from .reading import shared_kernel

# NVIDIA's own module and the one that came before it.
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-dmabuf-enable
_DMABUF_KERNEL = "5.12"


@control(
    "nccl.gpu-direct",
    "RDMA ports read and write GPU memory directly",
    severity=Severity.MEDIUM,
    needs=("driver.loaded-matches-installed",),
)
def gpu_direct(host: Judged) -> Verdict:
    if not host.profile["firewall_cluster_peers"]:
        return skipped("the profile names no hosts to compute with (firewall_cluster_peers)")
    if (why := shared_kernel(host)) is not None:
        return why
    if isinstance(host.facts.rdma, Unknown):
        return unknown(host.facts.rdma)
    if "NCCL_IB_HCA" not in rdma_ports(host.facts).values:
        return skipped("NCCL uses no RDMA port here")
    modules, driver = host.facts.modules_loaded, host.facts.loaded_driver
    if isinstance(modules, Unknown):
        return unknown(modules)
    if isinstance(driver, Unknown):
        return unknown(driver)
    if isinstance(driver, Absent):
        return unknown("no driver is loaded")
    smi = host.facts.smi
    names = () if isinstance(smi, Unknown) else tuple(str(gpu.name) for gpu in smi.gpus)
    if names and all("GeForce" in name for name in names):
        return skipped("GeForce cards have no GPUDirect RDMA")
    loaded = next((name for name in _PEER_MODULES if name in modules), None)
    if loaded is not None:
        return passed(f"over {loaded}")
    lacking = _no_dmabuf(host, driver.open)
    if isinstance(lacking, Unknown):
        return unknown(lacking)
    if lacking is None:
        return passed("over DMA-BUF")
    return warned(
        "nvidia_peermem loaded, or DMA-BUF",
        lacking,
        advice="Load nvidia_peermem at boot, with its maker's RDMA stack; or take the open modules.",
    )


def _no_dmabuf(host: Judged, open_modules: bool | Unknown) -> str | Unknown | None:
    """Why memory is not shared as DMA-BUF; None where it is."""
    kernel = host.facts.running_kernel
    if isinstance(open_modules, Unknown):
        return open_modules
    if isinstance(kernel, Unknown):
        return kernel
    if not open_modules:
        return "nvidia_peermem is not loaded, and the proprietary modules share nothing as DMA-BUF"
    number = re.match(r"\d+\.\d+", kernel)
    if number is None:
        return Unknown(f"the running kernel has no number: {kernel}")
    if below(number[0], _DMABUF_KERNEL):
        return f"nvidia_peermem is not loaded, and Linux {number[0]} is older than {_DMABUF_KERNEL}"
    release = nccl_release(host.facts)
    if release is not None and (why := unread("NCCL_DMABUF_ENABLE", release)) is not None:
        return f"nvidia_peermem is not loaded, and {why}"
    return None
