#define _GNU_SOURCE
#include "boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "kin.h"
#include "mounts.h"
#include "spare.h"
#include "upper.h"

enum { AGAIN_US = 20000, BY_FORCE_US = 1000000 };

static struct message message;

static const char *kept(const char *key, const char *below) {
    static char path[KEY + 32];
    snprintf(path, sizeof path, STAGE "/%.60s%.20s", key, below);
    return path;
}

static void complain(const struct box *box, const char *id, const char *what) {
    char text[400];
    snprintf(text, sizeof text, "error %.200s: %s", what, strerror(errno));
    answer(box->control, id, text, -1);
}

void kept_release(const char *key) {
    if (!*key || strchr(key, '/') || *key == '.') return;
    umount2(kept(key, ""), MNT_DETACH);
    rmdir(kept(key, ""));
}

/* Its cgroups are its own from its first process to its end, however often that starts anew. */
static const char *get_ready(struct keeper *keeper, struct box *box, struct spare *spare) {
    if (box->number >= 0) return spare_fork(keeper, spare, box->number) ? NULL : "cannot start a process";
    spare_prepare(keeper);
    if (!keeper->spare.pid) return "cannot make a cgroup or a process";
    *spare = keeper->spare;
    keeper->spare.pid = 0;
    box->number = spare->number;
    return NULL;
}

/* The keeper's part of the words, up to "--". */
static const char *prepare(struct keeper *keeper, struct box *box) {
    for (const char *word; (word = message_next(&message)) && strcmp(word, "--");) {
        const char *first = message_next(&message), *second = message_next(&message), *third = message_next(&message);
        errno = EINVAL;
        if (!third) return "a message that ends early";
        if (strcmp(word, "set")) return "an unknown word";
        if (!groups_set(&keeper->groups, box->number, atoi(first), second, third)) return second;
    }
    return NULL;
}

static void start(struct keeper *keeper, struct box *box, const char *id) {
    struct spare spare = {0};
    errno = EBUSY;
    const char *problem = box->pid ? "it runs already" : get_ready(keeper, box, &spare);
    if (!problem) {
        box->pid = spare.pid;
        *box->key = 0;
        problem = prepare(keeper, box);
        if (!problem && !message_forward(spare.socket, &message)) problem = "its process is gone";
        close(spare.socket);
    }
    message_close(&message);
    if (problem) {
        complain(box, id, problem);
        return;
    }
    char text[64];
    snprintf(text, sizeof text, "ok %d %d", (int)box->pid, box->number);
    answer(box->control, id, text, -1);
}

static void show(const struct box *box, const char *id, const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    answer(box->control, id, fd < 0 ? "error it has no upper directory" : "ok", fd);
    if (fd >= 0) close(fd);
}

/* What a live sandbox writes is seen through its process, which goes last. */
static void show_upper(const struct box *box, const char *id) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root" UPPER "/upper", (int)box->pid);
    show(box, id, box->pid ? path : "");
}

static int upper_of(const struct keeper *keeper, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    int theirs = open(path, O_RDONLY | O_CLOEXEC), tree = -1;
    if (theirs < 0) return -1;
    if (!setns(theirs, CLONE_NEWNS)) tree = mounts_copy(UPPER, false);
    int error = errno;
    close(theirs);
    if (setns(keeper->spaces.own, CLONE_NEWNS)) die("cannot return to its mount namespace");
    errno = error;
    return tree;
}

/* Keeps what it writes by a name, or its end would take it away. Until it starts again, it is the box's to release. */
static bool take(const struct keeper *keeper, struct box *box, const char *key) {
    errno = EINVAL;
    int tree = key && box->pid && !*box->key ? upper_of(keeper, box->pid) : -1;
    if (tree < 0) return false;
    bool taken = !mkdir(kept(key, ""), 0755) && mounts_attach(tree, kept(key, ""));
    close(tree);
    if (taken) snprintf(box->key, sizeof box->key, "%.60s", key);
    return taken;
}

static void freeze(const struct keeper *keeper, struct box *box, const char *id) {
    if (take(keeper, box, message_next(&message))) show(box, id, kept(box->key, "/upper"));
    else complain(box, id, "cannot keep what it wrote");
}

/* A place for what is made of what was frozen; it is released by its key. */
static void make_room(const struct keeper *keeper, const struct box *box, const char *id) {
    const char *key = message_next(&message), *bytes = message_next(&message), *inodes = message_next(&message);
    errno = EINVAL;
    if (!inodes || mkdir(kept(key, ""), 0755) || !upper_mount(kept(key, ""), bytes, inodes, keeper->uid, keeper->gid)) {
        complain(box, id, "cannot make room");
        return;
    }
    show(box, id, kept(key, "/upper"));
}

static void box_kill(struct box *box) {
    if (now_us() < box->killed + AGAIN_US) return;
    box->killed = now_us();
    kin_kill(box->pid, box->killed > box->since + BY_FORCE_US);
}

static void wait_for(struct box *box, enum purpose purpose, const char *id) {
    if (box->purpose == END) return;
    box->purpose = purpose;
    snprintf(box->request, sizeof box->request, "%.20s", id);
    box->since = now_us();
    box->killed = 0;
    if (box->pid && purpose != WAIT) box_kill(box);
}

void box_open(struct keeper *keeper, int control) {
    struct box *box = calloc(1, sizeof *box);
    if (!box) die("out of memory");
    *box = (struct box){.next = keeper->boxes, .control = control, .number = -1};
    keeper->boxes = box;
    fcntl(control, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = box};
    if (epoll_ctl(keeper->poll, EPOLL_CTL_ADD, control, &event)) die("cannot watch a socket");
}

void box_serve(struct keeper *keeper, struct box *box) {
    enum received received = message_receive(box->control, &message);
    if (received == NOTHING) return;
    if (received == GONE) {
        box->hung_up = true;
        epoll_ctl(keeper->poll, EPOLL_CTL_DEL, box->control, NULL);
        wait_for(box, END, "0");
        return;
    }
    char id[IDENTITY];
    snprintf(id, sizeof id, "%.20s", message_next(&message));
    const char *verb = message_next(&message);
    errno = EINVAL;
    if (!verb) complain(box, id, "no verb");
    else if (!strcmp(verb, "start") && message.fd_count == 2) start(keeper, box, id);
    else if (!strcmp(verb, "upper")) show_upper(box, id);
    else if (!strcmp(verb, "room")) make_room(keeper, box, id);
    else if (!strcmp(verb, "wait")) wait_for(box, WAIT, id);
    else if (!strcmp(verb, "stop")) wait_for(box, STOP, id);
    else if (!strcmp(verb, "freeze")) freeze(keeper, box, id);
    else if (!strcmp(verb, "end")) wait_for(box, END, id);
    else complain(box, id, "an unknown verb");
    message_close(&message);
}

void boxes_reap(struct keeper *keeper) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == keeper->spare.pid) {
            close(keeper->spare.socket);
            groups_remove(&keeper->groups, keeper->spare.number);
            keeper->spare.pid = 0;
        }
        for (struct box *box = keeper->boxes; box; box = box->next) {
            if (box->pid != pid) continue;
            box->pid = 0;
            box->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            keeper->stray |= WIFSIGNALED(status);
        }
    }
}

static bool is_known(pid_t pid, void *data) {
    const struct keeper *keeper = data;
    if (pid == keeper->spare.pid) return true;
    for (const struct box *box = keeper->boxes; box; box = box->next)
        if (box->pid == pid) return true;
    return false;
}

static void box_close(struct keeper *keeper, struct box *box) {
    kept_release(box->key);
    if (box->number >= 0) groups_remove(&keeper->groups, box->number);
    if (!box->hung_up) {
        answer(box->control, box->request, "ok", -1);
        /* To close it is not enough: a child that has just been forked off has it for a moment more. */
        epoll_ctl(keeper->poll, EPOLL_CTL_DEL, box->control, NULL);
    }
    close(box->control);
    free(box);
}

static void settle(struct box *box) {
    char text[32];
    snprintf(text, sizeof text, "ok %d", box->status);
    answer(box->control, box->request, text, -1);
    box->purpose = NONE;
}

/* What was killed is not gone before it is reaped, and all of its kin with it. */
void boxes_settle(struct keeper *keeper) {
    if (keeper->stray) keeper->stray = kin_kill_strays(is_known, keeper);
    if (keeper->stray) return;
    for (struct box **link = &keeper->boxes, *box; (box = *link);) {
        if (box->purpose != NONE && box->purpose != WAIT && box->pid) box_kill(box);
        if (box->purpose == NONE || box->pid) {
            link = &box->next;
        } else if (box->purpose == END) {
            *link = box->next;
            box_close(keeper, box);
        } else settle(box);
    }
}

bool boxes_waiting(const struct keeper *keeper) {
    if (keeper->stray) return true;
    for (const struct box *box = keeper->boxes; box; box = box->next)
        if (box->purpose != NONE) return true;
    return false;
}

void boxes_end(struct keeper *keeper) {
    for (struct box *box = keeper->boxes; box; box = box->next) wait_for(box, END, "0");
    if (keeper->spare.pid) kill(keeper->spare.pid, SIGKILL);
}
