#define _GNU_SOURCE
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "mounts.h"
#include "privileges.h"
#include "upper.h"
#include "users.h"

enum { HIGH = 64, /* above what is an exec server's */ MOST_IMPORTANT = -20 };

static int copy(const char *path, bool with_those_below) {
    int tree = mounts_copy(path, with_those_below);
    if (tree < 0) give_up("cannot bind", path);
    return tree;
}

static void copy_kept(struct scene *scene, struct pieces *pieces) {
    pieces->program = copy(STAGE "/" PROGRAM, false);
    if (chdir(STAGE)) give_up("cannot enter", STAGE);
    for (int i = 0; i < scene->piece_count; i++)
        if (scene->pieces[i].kind == KEPT) scene->pieces[i].tree = copy(scene->pieces[i].source, false);
}

static void copy_machines(struct scene *scene, struct pieces *pieces) {
    for (int i = 0; i < scene->piece_count; i++)
        if (scene->pieces[i].kind != KEPT) scene->pieces[i].tree = copy(scene->pieces[i].source, true);
    for (int i = 0; i < DEVICES; i++) pieces->devices[i] = copy(device_path(i), false);
    if (scene->scratch) pieces->scratch = copy(scene->scratch, true);
}

/* Some machines let nobody set this; there, it is the sandbox's own memory that is used up. */
static void set(const char *path, const char *value) {
    if (!write_text(path, value)) errno = 0;
}

/* What outlives its process would be memory that no kill brings back. */
static void own_ipc(void) {
    if (unshare(CLONE_NEWIPC)) give_up("cannot have", "an ipc namespace");
    set("/proc/sys/kernel/shm_rmid_forced", "1");
    set("/proc/sys/kernel/msgmni", "16");
    set("/proc/sys/kernel/sem", "250 32000 100 128");
}

static void make(const char *path) {
    if (mkdir(path, 0755)) give_up("cannot make", path);
}

/* An overlay takes paths. Short ones, as its options, with all layers, fit in a page of memory. */
static void show_layers(const struct scene *scene) {
    for (int i = 0; i < scene->piece_count; i++) {
        const struct piece *piece = &scene->pieces[i];
        char name[16];
        if (piece->kind == BIND) continue;
        snprintf(name, sizeof name, "%d", i);
        make(name);
        if (!mounts_attach(piece->tree, name)) give_up("cannot show", piece->source);
        close(piece->tree);
    }
}

static void show_upper(const struct scene *scene, const struct actor *actor, const struct pieces *pieces) {
    make(UPPER);
    bool done = scene->scratch ? mounts_attach(pieces->scratch, UPPER)
                               : upper_mount(UPPER, scene->upper_bytes, scene->upper_inodes, actor->uid, actor->gid);
    if (!done) give_up("cannot mount on", UPPER);
}

static void show_shared_memory(const struct scene *scene, const struct actor *actor, struct pieces *pieces) {
    char options[128];
    snprintf(options, sizeof options, "mode=1777,uid=%u,gid=%u,size=%.20s,nr_inodes=%.20s", actor->uid, actor->gid,
        scene->shared_bytes, scene->shared_inodes);
    make("shm");
    if (mount("tmpfs", "shm", "tmpfs", MS_NOSUID | MS_NODEV, options)) give_up("cannot mount on", "shm");
    pieces->shared = copy("shm", false);
}

static void set_stage(struct scene *scene, const struct actor *actor, struct pieces *pieces) {
    copy_kept(scene, pieces);
    if (setns(actor->spaces.outside, CLONE_NEWNS)) give_up("cannot leave", "the keeper's mount namespace");
    copy_machines(scene, pieces);
    if (setns(actor->spaces.bare, CLONE_NEWNS)) give_up("cannot enter", "the bare mount namespace");
    if (unshare(CLONE_NEWNS)) give_up("cannot have", "a mount namespace");
    own_ipc();
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) give_up("cannot make private", "/");
    if (mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")) give_up("cannot mount on", STAGE);
    if (chdir(STAGE)) give_up("cannot enter", STAGE);
    make(ROOT);
    show_layers(scene);
    show_upper(scene, actor, pieces);
    show_shared_memory(scene, actor, pieces);
    for (int i = 0; i < scene->mask_count; i++)
        if (!scene->masks[i].closed) pieces->empty[i] = copy(UPPER "/empty", false);
}

/* The kernel counts these for a user of the machine, as whom all sandboxes run: none may have all of them. After the
   user namespace is made, since its limits are for all of them together. */
static void leave_some(int resource, rlim_t parts) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_max == RLIM_INFINITY) return;
    limit.rlim_cur = limit.rlim_max = limit.rlim_max / parts;
    if (setrlimit((__rlimit_resource_t)resource, &limit)) give_up("cannot set", "a resource limit");
}

/* However many processes its commands have, the exec server answers in time. Weights count within a cgroup; where there
   are none, other programs of the machine would pay for it. Commands do not keep it. */
static void prefer_server(const struct groups *groups) {
    if (groups->count && setpriority(PRIO_PROCESS, 0, MOST_IMPORTANT)) errno = 0;
}

static void drop_privileges(uid_t uid, gid_t gid) {
    /* To map the root of a user's own namespace takes a capability there, which is given up here. */
    for (unsigned long capability = 0; uid && prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) give_up("cannot drop", "the bounding set");
    if (getuid() != uid && setgroups(0, NULL)) give_up("cannot leave", "its groups");
    if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) give_up("cannot become", "an unprivileged user");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) give_up("cannot set", "no_new_privs");
}

/* Changing the user cleared it. */
static void end_with(pid_t keeper) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != keeper) _exit(70);
}

static void open_events(struct scene *scene, const struct actor *actor) {
    for (int i = 0; i < scene->event_count; i++) {
        struct event *event = &scene->events[i];
        int fd = groups_open(actor->groups, actor->number, event->hierarchy, event->file);
        event->opened = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
        if (event->opened < 0) give_up("cannot read", event->file);
        close(fd);
    }
}

/* A keeper sees what the sandbox writes through this process, and by its end that of all in it. */
static _Noreturn void attend(pid_t first) {
    int status;
    prctl(PR_SET_NAME, "gymsuite-stage");
    if (!privileges_keep(false)) _exit(70);
    if (syscall(SYS_close_range, 0, ~0U, 0))
        for (int fd = 0; fd < 65536; fd++) close(fd);
    while (waitpid(first, &status, 0) < 0)
        if (errno != EINTR) _exit(70);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

_Noreturn void stage_act(struct actor actor) {
    static struct message message;
    static struct scene scene;
    static struct pieces pieces;
    pid_t keeper = getppid();
    int error = groups_join(actor.groups, actor.number) ? 0 : errno;
    /* Its keeper may have died before the signal for that was asked for; then this socket is closed. */
    if (message_receive(actor.socket, &message) != MESSAGE || message.fd_count != 2) _exit(70);
    prctl(PR_SET_NAME, "gymsuite-start");
    if (dup2(message.fds[0], 0) < 0 || dup2(message.fds[0], 1) < 0 || dup2(message.fds[1], 2) < 0) _exit(70);
    errno = error;
    if (error) give_up("cannot join", "a cgroup");
    scene_read(&scene, &message);
    open_events(&scene, &actor);
    bool own = getuid() == actor.uid;
    int users = own ? -1 : users_make(actor.uid, actor.gid, scene.first, scene.count);
    if (!own && users < 0) give_up("cannot have", "a user namespace");
    set_stage(&scene, &actor, &pieces);
    prefer_server(actor.groups);
    leave_some(RLIMIT_SIGPENDING, 16);
    leave_some(RLIMIT_MSGQUEUE, 4);
    drop_privileges(actor.uid, actor.gid);
    users_enter(users, scene.uid || scene.gid);
    end_with(keeper);
    pieces.starter = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (pieces.starter < 0) give_up("cannot watch", "itself");
    pid_t first = inside_clone(&scene);
    if (first) attend(first);
    inside_run(&scene, &pieces);
}
