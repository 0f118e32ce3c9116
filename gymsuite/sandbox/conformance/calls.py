"""System calls that no command of a sandbox needs, and that reach the kernel's deep parts."""

from collections.abc import Mapping

CLONE3 = 435
"""Its flags lie in memory, where no filter can read them: it has to be unknown (ENOSYS)."""

EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 467)
"""The newer ones, with the same number on every machine: io_uring, the new mounts, pidfd_getfd."""

BY_MACHINE: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "mount": 165, "umount2": 166, "pivot_root": 155, "setns": 308, "ptrace": 101,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "keyctl": 250,
        "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298,
        "userfaultfd": 323, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
        "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304,
        "name_to_handle_at": 303, "syslog": 103, "reboot": 169, "swapon": 167, "swapoff": 168,
        "acct": 163, "quotactl": 179, "settimeofday": 164, "clock_settime": 227,
        "lookup_dcookie": 212, "nfsservctl": 180, "iopl": 172, "ioperm": 173, "chroot": 161,
    },
    "aarch64": {
        "mount": 40, "umount2": 39, "pivot_root": 41, "setns": 268, "ptrace": 117,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "keyctl": 219,
        "add_key": 217, "request_key": 218, "bpf": 280, "perf_event_open": 241,
        "userfaultfd": 282, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105,
        "finit_module": 273, "delete_module": 106, "open_by_handle_at": 265,
        "name_to_handle_at": 264, "syslog": 116, "reboot": 142, "swapon": 224, "swapoff": 225,
        "acct": 89, "quotactl": 60, "settimeofday": 170, "clock_settime": 112,
        "lookup_dcookie": 18, "nfsservctl": 42, "chroot": 51,
    },
}  # fmt: skip
