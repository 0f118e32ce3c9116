#define _GNU_SOURCE
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive.h"
#include "files.h"
#include "filter.h"
#include "jobs.h"
#include "netlink.h"
#include "privileges.h"
#include "starting.h"
#include "streams.h"
#include "supervise.h"
#include "tree.h"

enum { FIXED = 3, PATIENCE_US = 8000000, TICK_US = 2000, MOST_KEPT = 256 << 20, KEPT_PART = 8 };

/* Every KILL_ALL is answered when PID 1 is alone, or when patience runs out. */
struct clearing {
    struct buffer ids;
    int64_t until;
};

static void answer_stats(struct server *server, uint32_t id) {
    struct usage used = children_usage();
    uint64_t spent = used.cpu_us + tree_cpu_us();
    struct buffer reply = reply_begin(id, HELLO | STATS);
    /* The kernel tells of live processes in ticks, which is less exact. */
    buffer_u64(&reply, spent > server->spent_us ? spent : server->spent_us);
    buffer_u64(&reply, used.peak_bytes > server->peak_bytes ? used.peak_bytes : server->peak_bytes);
    buffer_u64(&reply, limits_memory_files());
    buffer_u64(&reply, limits_root_files());
    buffer_u8(&reply, server->limits.memory_events >= 0);
    buffer_u64(&reply, limits_events(&server->limits).oom_kills);
    reply_end(&server->channel, &reply);
}

static void answer_ping(struct server *server, uint32_t id) {
    struct buffer reply = reply_begin(id, HELLO | PING);
    reply_end(&server->channel, &reply);
}

static void clear_all(struct server *server, struct clearing *clearing) {
    if (!clearing->ids.size) return;
    kill(-1, SIGKILL);
    bool alone = !tree_population();
    if (!alone && now_us() < clearing->until) return;
    for (size_t at = 0; at < clearing->ids.size; at += sizeof(uint32_t)) {
        uint32_t id;
        memcpy(&id, clearing->ids.data + at, sizeof id);
        struct buffer reply = reply_begin(id, HELLO | KILL_ALL);
        buffer_u8(&reply, alone ? 0 : 1);
        reply_end(&server->channel, &reply);
    }
    buffer_free(&clearing->ids);
}

static void cancel(struct server *server, uint32_t id) {
    job_cancel(server, id);
    archive_cancel(&server->archives, id);
}

static void dispatch(struct server *server, struct clearing *clearing, struct frame *frame) {
    switch (frame->type) {
        case EXEC: job_exec(server, frame); return;
        case SPAWN: job_spawn(server, frame); return;
        case CANCEL:
            cancel(server, take_u32(frame));
            take_end(frame);
            break;
        case READ: serve_read(&server->channel, frame); break;
        case STATE: serve_state(&server->channel, frame); break;
        case WRITE: serve_write(&server->channel, frame); break;
        case WALK:
        case PACK: archive_start(&server->archives, &server->channel, frame); break;
        case NEXT: archive_next(&server->archives, &server->channel, frame); break;
        case UNPACK: serve_unpack(&server->channel, frame); break;
        case STATS:
            take_end(frame);
            answer_stats(server, frame->id);
            break;
        case INPUT: serve_input(server, frame); break;
        case WINDOW: serve_window(server, frame); break;
        case KILL: job_kill(server, frame); break;
        case GONE: job_release(server, frame); break;
        case PING:
            take_end(frame);
            answer_ping(server, frame->id);
            break;
        case KILL_ALL:
            take_end(frame);
            if (!clearing->ids.size) clearing->until = now_us() + PATIENCE_US;
            buffer_u32(&clearing->ids, frame->id);
            break;
        default: die("malformed frame: unknown type");
    }
    free(frame->body);
}

static void take_reports(struct server *server) {
    for (struct job *job = server->jobs; job; job = job->next) job_report(server, job);
}

/* Continuously, whoever they belonged to: PID 1 inherits every orphan. */
static void reap(struct server *server) {
    int status;
    pid_t pid;
    struct rusage used;
    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        /* What it reported before it ended has to be known first. */
        take_reports(server);
        uint64_t cpu = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        job_reaped(server, pid, status, cpu);
    }
}

struct polled {
    struct pollfd *fds;
    size_t count, room;
};

static void watch(struct polled *polled, int fd, short events) {
    if (polled->count == polled->room) {
        polled->room = polled->room ? polled->room * 2 : 64;
        polled->fds = realloc(polled->fds, polled->room * sizeof *polled->fds);
        if (!polled->fds) die("out of memory");
    }
    polled->fds[polled->count++] = (struct pollfd){.fd = fd, .events = events};
}

/* Whoever does not take what it asked for gets no more of it made. */
static bool crowded(const struct server *server) { return server->channel.queued > server->most_kept; }

enum { CHANNEL_IN, SIGNALS, CHANNEL_OUT, LISTENER };

static void watch_all(struct server *server, struct polled *polled, int signals) {
    polled->count = 0;
    watch(polled, crowded(server) ? -1 : server->channel.in, POLLIN);
    watch(polled, signals, POLLIN);
    watch(polled, channel_has_output(&server->channel) ? server->channel.out : -1, POLLOUT);
    watch(polled, server->listener, POLLIN);
    for (struct job *job = server->jobs; job; job = job->next) {
        job->polled = polled->count;
        if (job->supervisor) watch(polled, job->supervisor->control, POLLIN);
        if (output_open(job, &job->outputs[0])) watch(polled, job->outputs[0].fd, POLLIN);
        if (output_open(job, &job->outputs[1])) watch(polled, job->outputs[1].fd, POLLIN);
        if (job->in >= 0 && job->input.size) watch(polled, job->in, POLLOUT);
        job->polled_end = polled->count;
    }
    for (const struct leftover *leftover = server->leftovers; leftover; leftover = leftover->next)
        watch(polled, leftover->fd, POLLIN);
}

static void sleep_until_ready(struct polled *polled, int64_t wake) {
    int64_t left = wake - now_us();
    struct timespec timeout = {left / 1000000, left % 1000000 * 1000};
    if (left < 0) timeout = (struct timespec){0};
    if (ppoll(polled->fds, polled->count, wake == INT64_MAX ? NULL : &timeout, NULL) < 0 && errno != EINTR)
        die("cannot poll");
}

static void take_signals(struct server *server, const struct polled *polled, int signals) {
    struct signalfd_siginfo info;
    if (!polled->fds[SIGNALS].revents) return;
    while (read(signals, &info, sizeof info) > 0) continue;
    reap(server);
}

static void take_requests(struct server *server, const struct polled *polled, struct clearing *clearing) {
    struct frame frame;
    if (polled->fds[CHANNEL_IN].revents) server->channel.drained = false;
    while (!crowded(server) && channel_receive(&server->channel, &frame)) dispatch(server, clearing, &frame);
}

static bool ready(const struct job *job, const struct polled *polled) {
    for (size_t i = job->polled; i < job->polled_end; i++)
        if (polled->fds[i].revents) return true;
    return false;
}

static void serve_jobs(struct server *server, const struct polled *polled) {
    for (struct job *job = server->jobs; job; job = job->next) {
        if (!ready(job, polled)) continue;
        job_report(server, job);
        job_pump(server, job);
    }
}

static _Noreturn void loop(struct server *server, int signals) {
    struct polled polled = {0};
    struct clearing clearing = {0};
    for (;;) {
        int64_t wake = jobs_wake(server);
        if (clearing.ids.size && now_us() + TICK_US < wake) wake = now_us() + TICK_US;
        if (channel_has_input(&server->channel) && !crowded(server)) wake = now_us();
        watch_all(server, &polled, signals);
        sleep_until_ready(&polled, wake);
        take_requests(server, &polled, &clearing);
        take_signals(server, &polled, signals);
        if (polled.fds[LISTENER].revents) netlink_serve(server->listener);
        serve_jobs(server, &polled);
        leftovers_pump(server);
        jobs_settle(server);
        clear_all(server, &clearing);
        channel_flush(&server->channel);
    }
}

/* The channel moves away from 0 and 1, where commands could expect streams of their own. */
static void take_channel(struct channel *channel) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    channel->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIXED);
    channel->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, FIXED);
    if (null < 0 || channel->in < 0 || channel->out < 0) die("cannot set up the channel");
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    fcntl(channel->in, F_SETFL, O_NONBLOCK);
    fcntl(channel->out, F_SETFL, O_NONBLOCK);
}

static int watch_children(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) die("cannot watch children");
    return fd;
}

static void raise_limits(void) {
    struct rlimit files, none = {1, 1};
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    setrlimit(RLIMIT_CORE, &none);
}

static void say_hello(struct channel *channel) {
    struct buffer hello = reply_begin(0, HELLO);
    buffer_u32(&hello, PROTOCOL_VERSION);
    reply_end(channel, &hello);
}

/* Without the counters' descriptors, the usual places are looked into. */
static void configure(struct server *server, int argc, char **argv) {
    int memory = -1, pids = -1;
    server->most_kept = MOST_KEPT;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && !strcmp(argv[i], "--memory-events")) memory = atoi(argv[i + 1]);
        else if (i + 1 < argc && !strcmp(argv[i], "--pids-events")) pids = atoi(argv[i + 1]);
        else if (i + 1 < argc && !strcmp(argv[i], "--owners")) filter_owners();
        else if (i + 1 < argc && !strcmp(argv[i], "--memory")) server->most_kept = strtoull(argv[i + 1], NULL, 10) / KEPT_PART;
        else die("serve PROCESSES [--memory-events FD] [--pids-events FD] [--memory BYTES] [--owners 1]");
    }
    server->limits = limits_open(memory, pids);
}

_Noreturn void serve(int argc, char **argv) {
    struct server server = {.processes = (uint32_t)strtoul(argv[0], NULL, 10)};
    /* A timeout may have to kill all that this process can see. */
    if (getpid() != 1) die("it must be PID 1 of a sandbox");
    take_channel(&server.channel);
    int signals = watch_children();
    raise_limits();
    umask(022);
    privileges_reduce();
    configure(&server, argc, argv);
    /* What is in /proc of a process that is not dumpable is root's, and that are the commands, unless it stands apart. */
    prctl(PR_SET_DUMPABLE, privileges_stand_apart());
    server.listener = filter_install();
    say_hello(&server.channel);
    loop(&server, signals);
}
