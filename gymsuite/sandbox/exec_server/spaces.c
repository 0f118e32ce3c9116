#define _GNU_SOURCE
#include "spaces.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what, const char *name) {
    dprintf(STDERR_FILENO, "keeper: %s %s: %s\n", what, name, strerror(errno));
    _exit(70);
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) give_up("cannot write", path);
    close(fd);
}

/* An ordinary user may mount only in a user namespace of its own. */
static void enter_user_namespace(void) {
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (unshare(CLONE_NEWUSER)) give_up("cannot have", "a user namespace");
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    put("/proc/self/gid_map", map);
}

static void enter_another(void) {
    if (unshare(CLONE_NEWNS)) give_up("cannot have", "a mount namespace");
}

static int current(void) {
    int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (fd < 0) give_up("cannot see", "/proc/self/ns/mnt");
    return fd;
}

static void mount_stage(const char *options) {
    if (mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, options)) give_up("cannot mount on", STAGE);
}

static void take_along(const char *name) {
    char from[32], to[64], target[PATH_MAX] = "";
    struct stat status;
    snprintf(from, sizeof from, "/%s", name);
    snprintf(to, sizeof to, STAGE "/%s", name);
    if (lstat(from, &status)) return;
    if (S_ISLNK(status.st_mode)) {
        if (readlink(from, target, sizeof target - 1) < 0 || symlink(target, to)) give_up("cannot link", to);
        return;
    }
    if (mkdir(to, 0755)) give_up("cannot make", to);
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL)) give_up("cannot bind", from);
}

/* Each mount costs, for each mount that bubblewrap makes. Where they cannot be told apart, they stay. */
static void leave_out(const char *path) {
    while (!umount2(path, MNT_DETACH)) continue;
}

/* Where a program's loader, its libraries and its settings are, and the devices and processes. */
static void strip(void) {
    const char *const needed[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "nix", "gnu", "dev", "proc"};
    mount_stage("mode=755,size=1m");
    if (mkdir(STAGE STAGE, 0755)) give_up("cannot make", STAGE STAGE);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) take_along(needed[i]);
    leave_out(STAGE "/dev/shm");
    leave_out(STAGE "/dev/pts");
    leave_out(STAGE "/dev/mqueue");
    leave_out(STAGE "/dev/hugepages");
    if (chdir(STAGE) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
        give_up("cannot leave", "the root directory");
}

/* Its file may be replaced by another version's while this process runs, or be gone. */
static void keep_program(void) {
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(STAGE "/" PROGRAM, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ssize_t sent;
    if (from < 0 || to < 0) give_up("cannot keep", "its program");
    while ((sent = sendfile(to, from, NULL, 1 << 20)) > 0) continue;
    if (sent || fchmod(to, 0555)) give_up("cannot keep", "its program");
    close(from);
    close(to);
}

struct spaces spaces_make(void) {
    struct spaces spaces;
    if (getuid()) enter_user_namespace();
    enter_another();
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) give_up("cannot separate", "/");
    spaces.outside = current();
    enter_another();
    strip();
    spaces.bare = current();
    if (setns(spaces.outside, CLONE_NEWNS)) give_up("cannot return to", "a mount namespace");
    enter_another();
    mount_stage("mode=700");
    keep_program();
    spaces.own = current();
    return spaces;
}
