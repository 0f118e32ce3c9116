#define _GNU_SOURCE
#include "users.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privileges.h"
#include "scene.h"

/* The namespace belongs to whoever makes it, and stays for as long as this process, or a descriptor. */
static _Noreturn void hold(uid_t uid, gid_t gid, int ready, int over) {
    char byte = 0;
    bool made = privileges_become(uid, gid) && !unshare(CLONE_NEWUSER);
    /* Its starter may have no rights to a process of the whole machine's root. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (!made) _exit(errno);
    if (write(ready, &byte, 1) < 0 || read(over, &byte, 1) < 0) _exit(1);
    _exit(0);
}

static bool map(pid_t pid, const char *file, unsigned root, unsigned first, unsigned count) {
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int size = snprintf(text, sizeof text, "0 %u 1\n", root);
    if (count) snprintf(text + size, sizeof text - (size_t)size, "1 %u %u\n", first, count);
    return write_text(path, text);
}

static int enter_by(pid_t pid, uid_t uid, gid_t gid, unsigned first, unsigned count) {
    char path[64];
    if (!map(pid, "uid_map", uid, first, count) || !map(pid, "gid_map", gid, first, count)) return -1;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int users_make(uid_t uid, gid_t gid, unsigned first, unsigned count) {
    int ready[2], over[2], fd = -1;
    char byte;
    if (pipe2(ready, O_CLOEXEC) || pipe2(over, O_CLOEXEC)) return -1;
    pid_t pid = fork();
    if (!pid) {
        close(ready[0]);
        close(over[1]);
        hold(uid, gid, ready[1], over[0]);
    }
    close(ready[1]);
    close(over[0]);
    if (pid > 0 && read(ready[0], &byte, 1) == 1) fd = enter_by(pid, uid, gid, first, count);
    int error = errno, status;
    close(ready[0]);
    close(over[1]);
    /* Where there was none to open, its process says why. */
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status)) error = WEXITSTATUS(status);
    errno = error;
    return fd;
}

static void put_or_give_up(const char *path, const char *text) {
    if (!write_text(path, text)) give_up("cannot write", path);
}

/* One user has one number in it, another outside. */
static void make_with_one(unsigned uid, unsigned gid, unsigned outer_uid, unsigned outer_gid) {
    char text[64];
    if (unshare(CLONE_NEWUSER)) give_up("cannot have", "a user namespace");
    /* Whoever gains capabilities loses sight of its own files in /proc. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    put_or_give_up("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1", uid, outer_uid);
    put_or_give_up("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1", gid, outer_gid);
    put_or_give_up("/proc/self/gid_map", text);
}

/* What the kernel counts for a user of the machine, all sandboxes share: 128 watches on most. Where /proc/sys is
   read-only, one of them may take all of them; and only the system call filter refuses user namespaces. */
static void limit_below(bool another) {
    if (!write_text("/proc/sys/user/max_inotify_instances", "16")) errno = 0;
    if (!write_text("/proc/sys/user/max_user_namespaces", another ? "1" : "0")) errno = 0;
}

void users_enter(int users, bool another) {
    if (users < 0) make_with_one(0, 0, getuid(), getgid());
    else if (setns(users, CLONE_NEWUSER)) give_up("cannot enter", "a user namespace");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    limit_below(another);
}

void users_become(unsigned uid, unsigned gid) { make_with_one(uid, gid, 0, 0); }

/* The users that there are here, for the namespace of another process. */
static bool keep_numbers(pid_t pid, const char *file) {
    char path[64], text[1024];
    unsigned first, outside, count;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/self/%s", file);
    FILE *own = fopen(path, "re");
    if (!own) return false;
    while (size < sizeof text && fscanf(own, "%u %u %u", &first, &outside, &count) == 3)
        size += (size_t)snprintf(text + size, sizeof text - size, "%u %u %u\n", first, first, count);
    fclose(own);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return size < sizeof text && write_text(path, text);
}

/* Only from outside can it have more users than one. */
static void make_with_all(void) {
    int left[2], status;
    char byte = 0;
    pid_t inside = getpid();
    if (pipe2(left, O_CLOEXEC)) give_up("cannot make", "a pipe");
    pid_t outside = fork();
    if (!outside) {
        close(left[1]);
        if (read(left[0], &byte, 1) != 1) _exit(EPERM);
        _exit(keep_numbers(inside, "uid_map") && keep_numbers(inside, "gid_map") ? 0 : errno);
    }
    if (outside < 0 || unshare(CLONE_NEWUSER)) give_up("cannot have", "a user namespace");
    if (write(left[1], &byte, 1) != 1 || waitpid(outside, &status, 0) < 0) give_up("cannot have", "users");
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
    if (errno) give_up("cannot have", "the users of its own user namespace");
    close(left[0]);
    close(left[1]);
}

void users_enter_own(void) {
    if (getuid()) make_with_one(getuid(), getgid(), getuid(), getgid());
    else make_with_all();
}
