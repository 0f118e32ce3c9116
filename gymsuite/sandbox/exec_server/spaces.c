#define _GNU_SOURCE
#include "spaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "privileges.h"
#include "scene.h"
#include "users.h"

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

/* What it takes to make sandboxes in: no more, as each starts with a copy of it. */
static void strip(void) {
    mount_stage("mode=755,size=1m");
    if (mkdir(STAGE STAGE, 0755) || mkdir(STAGE "/proc", 0755)) give_up("cannot make", STAGE STAGE);
    if (mount("/proc", STAGE "/proc", NULL, MS_BIND | MS_REC, NULL)) give_up("cannot bind", "/proc");
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
    if (!privileges_suffice()) users_enter_own();
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
