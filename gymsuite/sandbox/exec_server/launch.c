#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STAGE "/tmp"

enum {
    CALL_OPEN_TREE = 428,
    CALL_MOVE_MOUNT = 429,
    TREE_CLONE = 1,
    FROM_FD = 0x4,
    MAX_BINDS = 256,
};

struct bind {
    const char *source, *name;
    int tree;
};

static _Noreturn void give_up(const char *what, const char *name) {
    dprintf(STDERR_FILENO, "launch: %s %s: %s\n", what, name, strerror(errno));
    _exit(70);
}

/* A detached copy: the source need not be reachable, nor even visible, any more when it is shown. */
static int copy_tree(const char *source) {
    long tree = syscall(CALL_OPEN_TREE, AT_FDCWD, source, TREE_CLONE | O_CLOEXEC | AT_RECURSIVE);
    if (tree < 0) give_up("cannot bind", source);
    return (int)tree;
}

static void show(const struct bind *bind) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, STAGE "/%.40s", bind->name);
    if (fstat(bind->tree, &status)) give_up("cannot look at", bind->source);
    int made = S_ISDIR(status.st_mode) ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0);
    if (made) give_up("cannot make", path);
    if (syscall(CALL_MOVE_MOUNT, bind->tree, "", AT_FDCWD, path, FROM_FD)) give_up("cannot show", path);
    close(bind->tree);
}

static void stage(struct bind *binds, int count) {
    if (unshare(CLONE_NEWNS)) give_up("cannot have", "a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) give_up("cannot make private", "/");
    for (int i = 0; i < count; i++) binds[i].tree = copy_tree(binds[i].source);
    if (mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")) give_up("cannot mount on", STAGE);
    for (int i = 0; i < count; i++) show(&binds[i]);
}

static void drop_privileges(uid_t uid, gid_t gid) {
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) give_up("cannot drop", "the bounding set");
    if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
        give_up("cannot become", "an unprivileged user");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) give_up("cannot set", "no_new_privs");
    /* Changing the user cleared it, so it is set last. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static unsigned number(const char *text) {
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (!value || *end || value > 0x7fffffff) {
        errno = EINVAL;
        give_up("not an unprivileged id:", text ? text : "(none)");
    }
    return (unsigned)value;
}

_Noreturn void launch(int argc, char **argv) {
    static struct bind binds[MAX_BINDS];
    const char *uid = NULL, *gid = NULL;
    int count = 0, at = 0;
    for (; at < argc && strcmp(argv[at], "--"); at++) {
        if (!strcmp(argv[at], "--uid") && at + 1 < argc) uid = argv[++at];
        else if (!strcmp(argv[at], "--gid") && at + 1 < argc) gid = argv[++at];
        else if (!strcmp(argv[at], "--bind") && at + 2 < argc && count < MAX_BINDS) {
            binds[count++] = (struct bind){argv[at + 1], argv[at + 2], -1};
            at += 2;
        } else {
            errno = EINVAL;
            give_up("cannot use", argv[at]);
        }
    }
    if (at + 1 >= argc) {
        errno = EINVAL;
        give_up("no", "program");
    }
    stage(binds, count);
    drop_privileges(number(uid), number(gid));
    if (chdir("/")) give_up("cannot enter", "/");
    execv(argv[at + 1], argv + at + 1);
    give_up("cannot run", argv[at + 1]);
}
