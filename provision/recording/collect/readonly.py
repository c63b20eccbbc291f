"""Keeps the host as it is, by the kernel's own means where it has them."""

import os
import struct

confined = False
host_mounts = -1  # descriptor of the mount namespace that we came from


def confine() -> bool:
    """Make every file system read-only for this process and its children; True where that worked.

    mount_setattr(2) is in Linux since 5.12. Children of root also lose CAP_SYS_MODULE and CAP_MKNOD,
    so that nvidia-smi's helper can neither load the module nor make device nodes (capabilities(7)).
    """
    global confined, host_mounts
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
        # access(2) says no to a writer on a read-only mount, and tools ask it about their device files.
        attributes = struct.pack("QQQQ", 0, read_only, 0, 0)
        libc.syscall(442, -100, b"/dev", 0, attributes, len(attributes))
        # Scratch space that vanishes with us, for tools that want a temporary file.
        libc.mount(b"none", b"/tmp", b"tmpfs", 2 | 4, b"size=16m,mode=1777")
        for capability in (16, 27):  # CAP_SYS_MODULE, CAP_MKNOD
            libc.prctl(24, capability, 0, 0, 0)
        confined, host_mounts = True, here
        return True
    except (ImportError, OSError, AttributeError):
        return False


def back_to_host_mounts() -> None:
    """For the few questions about mounts, whose answer the read-only view would change."""
    if not confined:
        return
    import ctypes

    ctypes.CDLL(None).setns(host_mounts, 0x00020000)


def as_nobody() -> None:
    """For tools that write caches as a matter of course: an account that cannot."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
