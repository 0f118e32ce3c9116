#define _GNU_SOURCE
#include "users.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All sandboxes of one user share what the kernel lets a user have, which is 128 on most machines. Where this cannot be
   set, one of them may take all. */
static void leave_some_watches(void) {
    int fd = open("/proc/sys/user/max_inotify_instances", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "16", 2) < 0) errno = 0;
    close(fd);
}

/* The namespace belongs to whoever makes it, and stays for as long as this process, or a descriptor. */
static _Noreturn void hold(uid_t uid, gid_t gid, int ready, int over) {
    char byte = 0;
    bool made = !setgroups(0, NULL) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid) && !unshare(CLONE_NEWUSER);
    if (made) leave_some_watches();
    if (!made || write(ready, &byte, 1) < 0 || read(over, &byte, 1) < 0) _exit(1);
    _exit(0);
}

static bool map(pid_t pid, const char *file, unsigned root, unsigned first, unsigned count) {
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    int size = snprintf(text, sizeof text, "0 %u 1\n1 %u %u\n", root, first, count);
    bool done = write(fd, text, (size_t)size) == size;
    close(fd);
    return done;
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
    int error = errno;
    close(ready[0]);
    close(over[1]);
    if (pid > 0) waitpid(pid, NULL, 0);
    errno = error;
    return fd;
}
