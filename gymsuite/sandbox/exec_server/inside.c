#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts.h"
#include "privileges.h"
#include "users.h"

enum { OPTIONS = 4000, HARMLESS = NO_SUID | NO_DEVICES };

static const char *const names[DEVICES] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};

const char *device_path(int number) { return names[number]; }

pid_t inside_clone(const struct scene *scene) {
    unsigned long spaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (!scene->network) spaces |= CLONE_NEWNET;
    pid_t pid = (pid_t)syscall(SYS_clone, spaces | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0) give_up("cannot have", "namespaces");
    return pid;
}

static void start_loopback(void) {
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback)) give_up("cannot start", "the loopback network");
    close(fd);
}

/* The layers that were shown, the topmost first. */
static void lay_root(const struct scene *scene) {
    char options[OPTIONS];
    size_t size = (size_t)snprintf(options, sizeof options, "userxattr,upperdir=upper/upper,workdir=upper/work,lowerdir=");
    const char *before = "";
    for (int i = scene->piece_count - 1; i >= 0; i--) {
        if (scene->pieces[i].kind == BIND) continue;
        if (size < sizeof options) size += (size_t)snprintf(options + size, sizeof options - size, "%s%d", before, i);
        before = ":";
    }
    if (size >= sizeof options) errno = E2BIG;
    if (size >= sizeof options || mount("overlay", ROOT, "overlay", MS_NOSUID | MS_NODEV, options))
        give_up("cannot lay an image's layers on", "each other");
}

/* From here on a path leads where it does for commands, whatever links an image has. */
static void enter_root(void) {
    if (chdir(ROOT) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
        give_up("cannot enter", "the sandbox's root directory");
}

static void make_directories(const char *path, bool with_the_last) {
    char name[PATH_MAX];
    for (const char *end = path; *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        if (!*end && !with_the_last) return;
        snprintf(name, sizeof name, "%.*s", (int)(end - path), path);
        if (mkdir(name, 0755) && errno != EEXIST) give_up("cannot make", name);
    }
}

static void put(int tree, const char *place) {
    struct stat status;
    if (fstat(tree, &status)) give_up("cannot look at what is for", place);
    bool directory = S_ISDIR(status.st_mode);
    make_directories(place, directory);
    if (!directory && mknod(place, S_IFREG | 0444, 0) && errno != EEXIST) give_up("cannot make", place);
    /* The link that systemd's resolver is known by leads nowhere in an image. */
    bool done = directory ? mounts_attach(tree, place) : mounts_cover(tree, place);
    if (!done) give_up("cannot mount on", place);
    close(tree);
}

static void put_read_only(int tree, const char *place) {
    if (!mounts_restrict(tree, READ_ONLY | HARMLESS)) give_up("cannot make read-only", place);
    put(tree, place);
}

static void put_binds(const struct scene *scene, bool devices) {
    for (int i = 0; i < scene->piece_count; i++) {
        const struct piece *piece = &scene->pieces[i];
        if (piece->kind == BIND && devices == !strncmp(piece->target, "/dev/", 5)) put_read_only(piece->tree, piece->target);
    }
}

static void link_to(const char *target, const char *path) {
    if (symlink(target, path)) give_up("cannot link", path);
}

/* Not where a link of an image leads: a command could make it lead elsewhere, and what is to hide a part may miss it. */
static void own_directory(const char *path) {
    struct stat status;
    if (mkdir(path, 0755) && errno != EEXIST) give_up("cannot make", path);
    if (lstat(path, &status)) give_up("cannot look at", path);
    errno = ENOTDIR;
    if (!S_ISDIR(status.st_mode)) give_up("cannot mount on", path);
}

static void put_devices(const struct scene *scene, const struct pieces *pieces) {
    own_directory("/dev");
    if (mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755,size=64k")) give_up("cannot mount on", "/dev");
    for (int i = 0; i < DEVICES; i++) put(pieces->devices[i], names[i]);
    if (mkdir("/dev/pts", 0755) || mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"))
        give_up("cannot mount on", "/dev/pts");
    link_to("pts/ptmx", "/dev/ptmx");
    link_to("/proc/self/fd", "/dev/fd");
    link_to("/proc/self/fd/0", "/dev/stdin");
    link_to("/proc/self/fd/1", "/dev/stdout");
    link_to("/proc/self/fd/2", "/dev/stderr");
    link_to("/proc/kcore", "/dev/core");
    put(pieces->shared, "/dev/shm");
    put_read_only(pieces->program, SERVER);
    put_binds(scene, true);
    /* It has no limit of inodes worth the name, so nothing may be put there. */
    if (!mounts_restrict_at("/dev", READ_ONLY)) give_up("cannot make read-only", "/dev");
}

/* Not even of its own namespaces can a command change a setting. */
static void protect_settings(void) {
    int tree = mounts_copy("/proc/sys", true);
    if (tree < 0) give_up("cannot bind", "/proc/sys");
    put_read_only(tree, "/proc/sys");
}

/* Where this process cannot look, with all its capabilities, no command can. */
static bool out_of_reach(const char *place) {
    struct stat status;
    return lstat(place, &status) && errno == EACCES;
}

static void put_masks(const struct scene *scene, const struct pieces *pieces) {
    for (int i = 0; i < scene->mask_count; i++) {
        const struct mask *mask = &scene->masks[i];
        if (out_of_reach(mask->place)) continue;
        int tree = mask->closed ? mounts_copy("/dev/null", false) : pieces->empty[i];
        if (tree < 0) give_up("cannot hide", mask->place);
        put_read_only(tree, mask->place);
    }
}

static void make_root(const struct scene *scene, const struct pieces *pieces) {
    /* While the machine's is still in sight, without which the kernel lets nobody have one. */
    int processes = mounts_new("proc", HARMLESS | NO_EXEC);
    if (processes < 0) give_up("cannot make a file system", "proc");
    lay_root(scene);
    enter_root();
    if (scene->workdir) make_directories(scene->workdir, true);
    put_binds(scene, false);
    own_directory("/proc");
    put(processes, "/proc");
    put_devices(scene, pieces);
    protect_settings();
    put_masks(scene, pieces);
}

/* The starter may have ended before that is asked for; in here, the number of every parent outside is 0. */
static void end_with(int starter) {
    struct pollfd ended = {.fd = starter, .events = POLLIN};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (poll(&ended, 1, 0)) _exit(70);
}

_Noreturn void inside_run(const struct scene *scene, const struct pieces *pieces) {
    char *const nothing[] = {NULL};
    end_with(pieces->starter); /* before anything that takes time */
    if (!scene->network) start_loopback();
    if (sethostname("sandbox", 7)) give_up("cannot set", "the host name");
    make_root(scene, pieces);
    if (scene->uid || scene->gid) users_become(scene->uid, scene->gid);
    if (!privileges_keep(scene->count > 0)) give_up("cannot give up", "capabilities");
    end_with(pieces->starter); /* to become another user undid it */
    for (int i = 0; i < scene->event_count; i++) dup2(scene->events[i].opened, scene->events[i].fd);
    execve(SERVER, scene->serve, nothing);
    give_up("cannot run", SERVER);
}
