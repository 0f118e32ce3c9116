#define _GNU_SOURCE
#include "stage.h"

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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "message.h"
#include "mounts.h"
#include "upper.h"
#include "users.h"

enum {
    MAX_SHOWN = 512,
    MAX_EVENTS = 4,
    HIGH = 600, /* above all that may be shown */
    MOST_IMPORTANT = -20,
};

/* A piece of the file system. What is `kept` is the keeper's, and seen in its mount namespace only. */
struct piece {
    const char *source, *name;
    int tree;
    bool kept;
};

/* Paths on the stage: an empty directory, and what is to be seen no more. */
struct cover {
    const char *empty, *place;
};

struct event {
    int fd, hierarchy;
    const char *file;
};

struct scene {
    int users; /* where to put the descriptor of the user namespace, or 0 */
    unsigned first, count;
    struct piece pieces[MAX_SHOWN];
    struct cover covers[MAX_SHOWN];
    struct event events[MAX_EVENTS];
    const char *upper_bytes, *upper_inodes;   /* of what it writes, unless that is on a disk */
    const char *shared_bytes, *shared_inodes; /* of its /dev/shm */
    int piece_count, cover_count, event_count;
    char **run;
};

static _Noreturn void give_up(const char *what, const char *name) {
    dprintf(STDERR_FILENO, "keeper: %s %s: %s\n", what, name, strerror(errno));
    _exit(70);
}

static _Noreturn void misuse(const char *word) {
    errno = EINVAL;
    give_up("cannot use", word);
}

/* A detached copy: the source need not be reachable, nor even visible, any more when it is shown. */
static void copy_pieces(struct scene *scene, bool kept) {
    for (int i = 0; i < scene->piece_count; i++) {
        struct piece *piece = &scene->pieces[i];
        if (piece->kept != kept) continue;
        unsigned flags = TREE_CLONE | O_CLOEXEC | (kept ? 0 : AT_RECURSIVE);
        piece->tree = (int)syscall(CALL_OPEN_TREE, AT_FDCWD, piece->source, flags);
        if (piece->tree < 0) give_up("cannot bind", piece->source);
    }
}

static void show(const struct piece *piece) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, STAGE "/%.40s", piece->name);
    if (fstat(piece->tree, &status)) give_up("cannot look at", piece->source);
    int made = S_ISDIR(status.st_mode) ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0);
    if (made) give_up("cannot make", path);
    if (syscall(CALL_MOVE_MOUNT, piece->tree, "", AT_FDCWD, path, FROM_FD)) give_up("cannot show", piece->source);
    close(piece->tree);
}

/* bubblewrap shows what lies on a piece together with it, at the price of one. */
static void cover(const struct cover *cover) {
    int tree = (int)syscall(CALL_OPEN_TREE, AT_FDCWD, cover->empty, TREE_CLONE | O_CLOEXEC);
    if (tree < 0) give_up("cannot bind", cover->empty);
    if (syscall(CALL_MOVE_MOUNT, tree, "", AT_FDCWD, cover->place, FROM_FD)) give_up("cannot cover", cover->place);
    close(tree);
}

/* Some machines let nobody set this; there, it is the sandbox's own memory that is used up. */
static void set(const char *path, const char *value) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, value, strlen(value)) < 0) errno = 0;
    close(fd);
}

/* What outlives its process would be memory that no kill brings back. */
static void own_ipc(void) {
    if (unshare(CLONE_NEWIPC)) give_up("cannot have", "an ipc namespace");
    set("/proc/sys/kernel/shm_rmid_forced", "1");
    set("/proc/sys/kernel/msgmni", "16");
    set("/proc/sys/kernel/sem", "250 32000 100 128");
}

/* bubblewrap's own tmpfs would have as many inodes as the kernel cares to give. */
static void show_shared_memory(const struct scene *scene, const struct actor *actor) {
    char options[128];
    if (!scene->shared_bytes) return;
    snprintf(options, sizeof options, "mode=1777,uid=%u,gid=%u,size=%.20s,nr_inodes=%.20s", actor->uid, actor->gid,
        scene->shared_bytes, scene->shared_inodes);
    if (mkdir(STAGE "/shm", 0755)) give_up("cannot make", STAGE "/shm");
    if (mount("tmpfs", STAGE "/shm", "tmpfs", MS_NOSUID | MS_NODEV, options)) give_up("cannot mount on", STAGE "/shm");
}

static void show_upper(const struct scene *scene, const struct actor *actor) {
    if (!scene->upper_bytes) return;
    if (mkdir(UPPER, 0755)) give_up("cannot make", UPPER);
    if (!upper_mount(UPPER, scene->upper_bytes, scene->upper_inodes, actor->uid, actor->gid))
        give_up("cannot mount on", UPPER);
}

static void set_stage(struct scene *scene, struct spaces spaces) {
    if (chdir(STAGE)) give_up("cannot enter", STAGE);
    copy_pieces(scene, true);
    if (setns(spaces.outside, CLONE_NEWNS)) give_up("cannot leave", "the keeper's mount namespace");
    copy_pieces(scene, false);
    if (setns(spaces.bare, CLONE_NEWNS)) give_up("cannot enter", "the bare mount namespace");
    if (unshare(CLONE_NEWNS)) give_up("cannot have", "a mount namespace");
    own_ipc();
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) give_up("cannot make private", "/");
    if (mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")) give_up("cannot mount on", STAGE);
    for (int i = 0; i < scene->piece_count; i++) show(&scene->pieces[i]);
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
    /* To map the root of a user's own namespace takes a capability there, which bubblewrap gives up. */
    for (unsigned long capability = 0; uid && prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)) give_up("cannot drop", "the bounding set");
    if (getuid() != uid && setgroups(0, NULL)) give_up("cannot leave", "its groups");
    if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) give_up("cannot become", "an unprivileged user");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) give_up("cannot set", "no_new_privs");
    /* Changing the user cleared it, so it is set last. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static const char *argument(struct message *message) {
    const char *word = message_next(message);
    if (!word) misuse("a message that ends early");
    return word;
}

static void add_piece(struct scene *scene, struct message *message, bool kept) {
    if (scene->piece_count == MAX_SHOWN) misuse("so many binds");
    const char *name = argument(message);
    scene->pieces[scene->piece_count++] = (struct piece){argument(message), name, -1, kept};
}

static void add_cover(struct scene *scene, struct message *message) {
    if (scene->cover_count == MAX_SHOWN) misuse("so many covers");
    const char *empty = argument(message);
    scene->covers[scene->cover_count++] = (struct cover){empty, argument(message)};
}

static void add_event(struct scene *scene, struct message *message) {
    if (scene->event_count == MAX_EVENTS) misuse("so many events");
    int fd = atoi(argument(message)), hierarchy = atoi(argument(message));
    scene->events[scene->event_count++] = (struct event){fd, hierarchy, argument(message)};
}

static void add_users(struct scene *scene, struct message *message) {
    scene->users = atoi(argument(message));
    scene->first = (unsigned)strtoul(argument(message), NULL, 10);
    scene->count = (unsigned)strtoul(argument(message), NULL, 10);
}

static void add_upper(struct scene *scene, struct message *message) {
    scene->upper_bytes = argument(message);
    scene->upper_inodes = argument(message);
}

static void add_shared_memory(struct scene *scene, struct message *message) {
    scene->shared_bytes = argument(message);
    scene->shared_inodes = argument(message);
}

static void limit(struct message *message) {
    int resource = atoi(argument(message));
    rlim_t value = strtoull(argument(message), NULL, 10);
    struct rlimit limit = {value, value};
    if (setrlimit((__rlimit_resource_t)resource, &limit)) give_up("cannot set", "a resource limit");
}

/* The words up to "--" were the keeper's. */
static void read_scene(struct scene *scene, struct message *message) {
    while (strcmp(argument(message), "--")) continue;
    for (const char *word; !scene->run && (word = message_next(message));) {
        if (!strcmp(word, "bind")) add_piece(scene, message, false);
        else if (!strcmp(word, "kept")) add_piece(scene, message, true);
        else if (!strcmp(word, "cover")) add_cover(scene, message);
        else if (!strcmp(word, "event")) add_event(scene, message);
        else if (!strcmp(word, "limit")) limit(message);
        else if (!strcmp(word, "users")) add_users(scene, message);
        else if (!strcmp(word, "upper")) add_upper(scene, message);
        else if (!strcmp(word, "shm")) add_shared_memory(scene, message);
        else if (!strcmp(word, "run")) scene->run = message->words + message->at;
        else misuse(word);
    }
    if (!scene->run || !*scene->run) misuse("a message without a program");
}

static void open_events(const struct scene *scene, const struct actor *actor, int *opened) {
    for (int i = 0; i < scene->event_count; i++) {
        int fd = groups_open(actor->groups, actor->number, scene->events[i].hierarchy, scene->events[i].file);
        opened[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
        if (opened[i] < 0) give_up("cannot read", scene->events[i].file);
    }
}

_Noreturn void stage_act(struct actor actor) {
    static struct message message;
    static struct scene scene;
    int opened[MAX_EVENTS];
    int error = groups_join(actor.groups, actor.number) ? 0 : errno;
    /* Its keeper may have died before the signal for that was asked for; then this socket is closed. */
    if (message_receive(actor.socket, &message) != MESSAGE || message.fd_count != 2) _exit(70);
    prctl(PR_SET_NAME, "gymsuite-start");
    if (dup2(message.fds[0], 0) < 0 || dup2(message.fds[0], 1) < 0 || dup2(message.fds[1], 2) < 0) _exit(70);
    errno = error;
    if (error) give_up("cannot join", "a cgroup");
    read_scene(&scene, &message);
    open_events(&scene, &actor, opened);
    int users = scene.users ? users_make(actor.uid, actor.gid, scene.first, scene.count) : -1;
    if (scene.users && (users < 0 || (users = fcntl(users, F_DUPFD_CLOEXEC, HIGH)) < 0)) give_up("cannot have", "more users");
    set_stage(&scene, actor.spaces);
    show_upper(&scene, &actor);
    for (int i = 0; i < scene.cover_count; i++) cover(&scene.covers[i]);
    show_shared_memory(&scene, &actor);
    prefer_server(actor.groups);
    leave_some(RLIMIT_SIGPENDING, 16);
    leave_some(RLIMIT_MSGQUEUE, 4);
    drop_privileges(actor.uid, actor.gid);
    if (chdir("/")) give_up("cannot enter", "/");
    for (int i = 0; i < scene.event_count; i++) dup2(opened[i], scene.events[i].fd);
    if (users >= 0) dup2(users, scene.users);
    execv(*scene.run, scene.run);
    give_up("cannot run", *scene.run);
}
