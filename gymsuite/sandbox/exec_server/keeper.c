#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "boxes.h"
#include "scene.h"
#include "spaces.h"
#include "spare.h"

enum { POLL_MS = 20, FAREWELL_US = 8000000, MOMENT_MS = 2 };

static void watch(const struct keeper *keeper, int *fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};
    if (epoll_ctl(keeper->poll, EPOLL_CTL_ADD, *fd, &event)) give_up("cannot watch", "a descriptor");
}

static void watch_all(struct keeper *keeper, pid_t owner) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    keeper->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->poll = epoll_create1(EPOLL_CLOEXEC);
    /* Copies of the owner's descriptors may outlive it, in whatever it forked, so its socket's end is not enough. */
    keeper->owner = (int)syscall(SYS_pidfd_open, owner, 0);
    if (keeper->owner < 0 || getppid() != owner) give_up("cannot watch", "its owner");
    watch(keeper, &keeper->owner);
    watch(keeper, &keeper->main);
    watch(keeper, &keeper->signals);
}

static void take_main(struct keeper *keeper) {
    keeper->main = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (keeper->main < 0 || null < 0) give_up("cannot take", "its socket");
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    fcntl(keeper->main, F_SETFL, O_NONBLOCK);
}

static void raise_limits(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files)) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

static void make_groups(struct keeper *keeper, int count, char **paths) {
    for (int i = 0; i < count && i < MAX_HIERARCHIES; i++) {
        if (mkdir(paths[i], 0755)) give_up("cannot make", paths[i]);
        groups_divide(paths[i]);
        keeper->groups.bases[keeper->groups.count++] = paths[i];
    }
}

static _Noreturn void leave(const struct keeper *keeper) {
    for (int i = 0; i < keeper->groups.count; i++) rmdir(keeper->groups.bases[i]);
    _exit(0);
}

static bool serve_owner(struct keeper *keeper) {
    static struct message message;
    enum received received = message_receive(keeper->main, &message);
    if (received == GONE) return false;
    if (received == NOTHING) return true;
    const char *verb = message_next(&message), *key = message_next(&message);
    if (!strcmp(verb, "box") && message.fd_count == 1) {
        box_open(keeper, message.fds[0]);
        message.fd_count = 0;
    } else if (!strcmp(verb, "release") && key) kept_release(key);
    message_close(&message);
    return true;
}

/* One event at a time, as serving one may free what another is about. */
static bool turn(struct keeper *keeper, int timeout) {
    struct epoll_event event;
    if (epoll_wait(keeper->poll, &event, 1, timeout) < 1) return true;
    if (event.data.ptr == &keeper->owner) return false;
    if (event.data.ptr == &keeper->main) return serve_owner(keeper);
    if (event.data.ptr == &keeper->signals) {
        struct signalfd_siginfo info;
        while (read(keeper->signals, &info, sizeof info) > 0) continue;
        boxes_reap(keeper);
    } else box_serve(keeper, event.data.ptr);
    return true;
}

static _Noreturn void loop(struct keeper *keeper) {
    while (turn(keeper, boxes_waiting(keeper) ? POLL_MS : -1)) {
        boxes_settle(keeper);
        spare_prepare(keeper);
    }
    int64_t until = now_us() + FAREWELL_US;
    epoll_ctl(keeper->poll, EPOLL_CTL_DEL, keeper->owner, NULL);
    epoll_ctl(keeper->poll, EPOLL_CTL_DEL, keeper->main, NULL);
    for (boxes_end(keeper); (keeper->boxes || keeper->spare.pid || keeper->stray) && now_us() < until; boxes_settle(keeper))
        turn(keeper, MOMENT_MS);
    leave(keeper);
}

_Noreturn void keep(int argc, char **argv) {
    static struct keeper keeper;
    if (argc < 3) die("usage: exec-server keeper OWNER UID GID [CGROUP]...");
    keeper.uid = (uid_t)strtoul(argv[1], NULL, 10);
    keeper.gid = (gid_t)strtoul(argv[2], NULL, 10);
    take_main(&keeper);
    raise_limits();
    umask(022);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "gymsuite-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    watch_all(&keeper, (pid_t)strtoul(argv[0], NULL, 10));
    keeper.spaces = spaces_make();
    make_groups(&keeper, argc - 3, argv + 3);
    spare_prepare(&keeper);
    answer(keeper.main, "0", "ok", -1);
    loop(&keeper);
}
