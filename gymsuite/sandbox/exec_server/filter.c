#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

#if defined(__x86_64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_X86_64
#define HIGHEST_CALL 0x3fffffffu /* above it lies x32 */
#elif defined(__aarch64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_AARCH64
#define HIGHEST_CALL 0xffffffffu
#else
#error "the exec server knows x86_64 and aarch64"
#endif

/* Newer than some C libraries' headers, and the same number on every architecture. */
enum {
    CALL_IO_URING_SETUP = 425,
    CALL_IO_URING_ENTER = 426,
    CALL_IO_URING_REGISTER = 427,
    CALL_OPEN_TREE = 428,
    CALL_MOVE_MOUNT = 429,
    CALL_FSOPEN = 430,
    CALL_FSCONFIG = 431,
    CALL_FSMOUNT = 432,
    CALL_FSPICK = 433,
    CALL_CLONE3 = 435,
    CALL_PIDFD_GETFD = 438,
    CALL_PROCESS_MADVISE = 440,
    CALL_MOUNT_SETATTR = 442,
    CALL_QUOTACTL_FD = 443,
    CALL_OPEN_TREE_ATTR = 467,
};

/* Personalities in which addresses are not random, or what can be read can be run. */
#define WEAK_PERSONALITIES (0x0040000 | 0x0400000)
#define ASK_PERSONALITY 0xffffffffu

#define ALL_OF_USER 3     /* for ioprio_set */
#define MULTIPATH_TCP 262 /* what Go's listeners ask for first */

/* The lowest byte of clone's flags is a signal; there, a new time namespace cannot be asked for. */
#define NAMESPACES                                                                                      \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define TIME_NAMESPACE 0x80

#define LOAD(field) LOAD_AT(offsetof(struct seccomp_data, field))
#define LOAD_AT(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSE(error) ANSWER(SECCOMP_RET_ERRNO | (error))
#define DENY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), REFUSE(EPERM)
/* Refuse a call only when an argument has one of these bits; both architectures are little-endian. */
#define REFUSE_FLAGS(call, argument, flags, error)                                                      \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), LOAD(args[argument]),                            \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (flags), 0, 1), REFUSE(error), ANSWER(SECCOMP_RET_ALLOW)
#define DENY_FLAGS(call, flags) REFUSE_FLAGS(call, 0, flags, EPERM)
/* As where a machine has none: what it set aside is in no limit of memory. */
#define NO_HUGE_PAGES(call, argument, flag) REFUSE_FLAGS(call, argument, flag, ENOMEM)
/* Does nothing, and says that all is well. */
#define SKIP(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), REFUSE(0)
/* Other families, as AF_VSOCK, reach past the network namespace, or into rarely used parts of the kernel. */
#define PERSONALITIES                                                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 5), LOAD(args[0]),                          \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ASK_PERSONALITY, 2, 0),                                     \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WEAK_PERSONALITIES, 0, 1), REFUSE(EPERM), ANSWER(SECCOMP_RET_ALLOW)
/* Within a family, other protocols do so too, or would have the kernel load a module. */
#define SOCKETS(netlink)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 15), LOAD(args[0]),                              \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 11, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 3, 0), \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 2, 0),                                            \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 5, 0), REFUSE(EAFNOSUPPORT), LOAD(args[2]),     \
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, IPPROTO_UDP, 0, 5),                                         \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 4, 0),                                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MULTIPATH_TCP, 3, 2), LOAD(args[2]),                        \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 2, 0), REFUSE(EPROTONOSUPPORT),              \
        ANSWER(SECCOMP_RET_ALLOW), ANSWER(netlink)
/* A program for a socket, or for a filter of system calls, takes part of what the whole machine may have of
   compiled ones. Without any left, no sandbox could start. */
#define SOCKET_PROGRAMS                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 7), LOAD(args[1]),                           \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 4), LOAD(args[2]),                           \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_ATTACH_FILTER, 1, 0),                                    \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_ATTACH_REUSEPORT_CBPF, 0, 1), REFUSE(EPERM), ANSWER(SECCOMP_RET_ALLOW)
/* Where there is but one user, whoever runs a command is the equal of the first process, and could starve it or see
   it killed. */
#define SPARE_FIRST(call)                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), LOAD(args[0]),                                   \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), REFUSE(EPERM), ANSWER(SECCOMP_RET_ALLOW)
/* The same for a call whose first argument says of what kind the second is: `all` are all of a user. */
#define SPARE_FIRST_AND(all, call)                                                                      \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 6), LOAD(args[0]),                                   \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (all), 2, 0), LOAD(args[1]),                                \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), REFUSE(EPERM), ANSWER(SECCOMP_RET_ALLOW)
/* As where a kernel has no filters. */
#define FILTERS                                                                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1), REFUSE(EINVAL),                             \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4), LOAD(args[0]),                            \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1), REFUSE(EINVAL), ANSWER(SECCOMP_RET_ALLOW)

static int install(struct sock_filter *rules, size_t count, unsigned flags) {
    struct sock_fprog program = {(unsigned short)count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("cannot set no_new_privs");
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

void filter_owners(void) {
    struct sock_filter rules[] = {
        LOAD(nr),
#ifdef SYS_chown
        SKIP(SYS_chown),
        SKIP(SYS_lchown),
#endif
        SKIP(SYS_fchown),
        SKIP(SYS_fchownat),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    if (install(rules, sizeof rules / sizeof *rules, 0)) die("cannot install the filter for owners");
}

static int install_all(uint32_t netlink, unsigned flags) {
    struct sock_filter rules[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCHITECTURE, 1, 0),
        REFUSE(ENOSYS),
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, HIGHEST_CALL, 0, 1),
        REFUSE(ENOSYS),
        /* Its flags lie behind a pointer, where a filter cannot look; libraries fall back to clone. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_CLONE3, 0, 1),
        REFUSE(ENOSYS),
        DENY(SYS_mount),
        DENY(SYS_umount2),
        DENY(SYS_pivot_root),
        DENY(CALL_OPEN_TREE),
        DENY(CALL_MOVE_MOUNT),
        DENY(CALL_FSOPEN),
        DENY(CALL_FSCONFIG),
        DENY(CALL_FSMOUNT),
        DENY(CALL_FSPICK),
        DENY(CALL_MOUNT_SETATTR),
        DENY(CALL_OPEN_TREE_ATTR),
        DENY(SYS_setns),
        DENY(SYS_ptrace),
        DENY(SYS_process_vm_readv),
        DENY(SYS_process_vm_writev),
        DENY(SYS_keyctl),
        DENY(SYS_add_key),
        DENY(SYS_request_key),
        DENY(SYS_bpf),
        DENY(SYS_perf_event_open),
        DENY(SYS_userfaultfd),
        DENY(CALL_IO_URING_SETUP),
        DENY(CALL_IO_URING_ENTER),
        DENY(CALL_IO_URING_REGISTER),
        /* All processes of the machine share what there is of them; libraries do without, where a kernel has none. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 0, 1),
        REFUSE(ENOSYS),
        DENY(SYS_fanotify_init),
        DENY(SYS_kexec_load),
        DENY(SYS_kexec_file_load),
        DENY(SYS_init_module),
        DENY(SYS_finit_module),
        DENY(SYS_delete_module),
        DENY(SYS_open_by_handle_at),
        DENY(SYS_name_to_handle_at),
        DENY(SYS_syslog),
        DENY(CALL_PIDFD_GETFD),
        DENY(CALL_PROCESS_MADVISE),
        DENY(SYS_kcmp),
        DENY(SYS_reboot),
        DENY(SYS_swapon),
        DENY(SYS_swapoff),
        DENY(SYS_acct),
        DENY(SYS_quotactl),
        DENY(CALL_QUOTACTL_FD),
        DENY(SYS_settimeofday),
        DENY(SYS_clock_settime),
        DENY(SYS_clock_adjtime),
        DENY(SYS_vhangup),
        DENY(SYS_chroot),
#ifdef SYS_lookup_dcookie
        DENY(SYS_lookup_dcookie),
#endif
#ifdef SYS_nfsservctl
        DENY(SYS_nfsservctl),
#endif
#if defined(__x86_64__)
        DENY(SYS_iopl),
        DENY(SYS_ioperm),
        DENY(SYS_uselib),
        DENY(SYS_sysfs),
        DENY(SYS_modify_ldt),
#endif
        PERSONALITIES,
        SOCKETS(netlink),
        SOCKET_PROGRAMS,
        FILTERS,
        SPARE_FIRST(SYS_prlimit64),
        SPARE_FIRST(SYS_sched_setaffinity),
        SPARE_FIRST(SYS_sched_setattr),
        SPARE_FIRST(SYS_sched_setparam),
        SPARE_FIRST(SYS_sched_setscheduler),
        SPARE_FIRST_AND(PRIO_USER, SYS_setpriority),
        SPARE_FIRST_AND(ALL_OF_USER, SYS_ioprio_set),
        DENY_FLAGS(SYS_unshare, NAMESPACES | TIME_NAMESPACE),
        DENY_FLAGS(SYS_clone, NAMESPACES),
        NO_HUGE_PAGES(SYS_mmap, 3, MAP_HUGETLB),
        NO_HUGE_PAGES(SYS_memfd_create, 1, MFD_HUGETLB),
        NO_HUGE_PAGES(SYS_shmget, 2, SHM_HUGETLB),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    return install(rules, sizeof rules / sizeof *rules, flags);
}

int filter_install(void) {
    /* Some runtimes have kernels of their own, which know of no listeners, and count what they keep. */
    int listener = install_all(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (listener < 0 && install_all(SECCOMP_RET_ALLOW, 0)) die("cannot install the system call filter");
    return listener;
}
