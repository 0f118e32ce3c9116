#define _GNU_SOURCE
#include "privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

#define BIT(capability) (1ULL << (capability))
#define NEEDED (BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL))

/* One that no account has, and that a user namespace of the usual size has. */
#define SERVER_USER 65533

static uint64_t held;
static bool apart;

static int set_capabilities(uint64_t set) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    for (int i = 0; i < 2; i++) data[i].effective = data[i].permitted = (uint32_t)(set >> (32 * i));
    return (int)syscall(SYS_capset, &header, data);
}

static uint64_t permitted_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data)) return 0;
    return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

bool privileges_suffice(void) {
    uint64_t wanted = BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_PTRACE) | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_CHOWN);
    return (permitted_capabilities() & wanted) == wanted;
}

bool privileges_become(uid_t uid, gid_t gid) {
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) return false;
    return !set_capabilities(BIT(CAP_SYS_ADMIN));
}

static void bound_to(uint64_t set) {
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (!(set & BIT(capability))) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

bool privileges_keep(bool several_users) {
    uint64_t kept = several_users ? NEEDED | BIT(CAP_SETPCAP) : 0;
    bound_to(kept);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return !set_capabilities(kept);
}

void privileges_reduce(void) {
    uint64_t permitted = permitted_capabilities();
    if (permitted & BIT(CAP_SETPCAP)) bound_to(0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    held = permitted & NEEDED;
    if (permitted && set_capabilities(held)) die("cannot give up capabilities");
}

bool privileges_can_change_user(void) {
    uint64_t wanted = BIT(CAP_SETUID) | BIT(CAP_SETGID);
    return (held & wanted) == wanted;
}

bool privileges_stand_apart(void) {
    int end = 0;
    if (!privileges_can_change_user() || geteuid()) return false;
    prctl(PR_GET_PDEATHSIG, &end, 0, 0, 0);
    /* Its real user stays, for that of its parent to be allowed to end it. */
    apart = !setresuid(0, SERVER_USER, 0);
    if (!apart) return false;
    if (set_capabilities(held)) die("cannot keep capabilities");
    setfsuid(0);
    /* Each change of a user undoes that it ends with its parent. */
    prctl(PR_SET_PDEATHSIG, end, 0, 0, 0);
    return true;
}

void privileges_use_own_files(void) {
    if (!apart) return;
    setfsuid(geteuid());
    prctl(PR_SET_DUMPABLE, 1); /* each change of a user undoes it */
}

int privileges_drop(const struct identity *identity) {
    if (identity->changes) {
        if (setgroups(identity->group_count, identity->groups)) return -1;
        if (setresgid(identity->gid, identity->gid, identity->gid)) return -1;
        if (setresuid(identity->uid, identity->uid, identity->uid)) return -1;
    } else if (apart && setresuid(0, 0, 0)) return -1;
    return held ? set_capabilities(0) : 0;
}
