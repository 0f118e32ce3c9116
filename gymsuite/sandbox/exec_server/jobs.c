#define _GNU_SOURCE
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise.h"
#include "tree.h"

enum {
    OWN_TREE = 3000000, /* to end a command's own tree, before all others have to go with it */
    GIVE_UP = 6000000,
    DRAIN = 50000,      /* for output still on its way when the command ends */
    KILL_EVERY = 2000,  /* between two rounds at a tree that will not die */
    LEFTOVERS = 64,
    CHUNK = 64 << 10,
    CHUNKS = 16,        /* of one pipe at a time, so that no command starves its neighbours */
};

static void close_end(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static char **take_strings(struct frame *frame, uint32_t count) {
    /* Each string takes five bytes at least, so a count cannot ask for more memory than the frame has. */
    if (count > frame->size / 5) die("malformed frame: too many strings");
    char **strings = calloc(count + 1, sizeof *strings);
    if (!strings) die("out of memory");
    for (uint32_t i = 0; i < count; i++) strings[i] = take_string(frame);
    return strings;
}

static struct job *job_new(struct server *server, struct frame *frame) {
    for (const struct job *other = server->jobs; other; other = other->next)
        if (other->id == frame->id) die("malformed frame: the id is in use");
    struct job *job = calloc(1, sizeof *job);
    if (!job) die("out of memory");
    *job = (struct job){.next = server->jobs, .id = frame->id, .report = -1, .in = -1, .out = -1, .err = -1};
    job->body = frame->body;
    job->started = now_us();
    server->jobs = job;
    return job;
}

static void refuse(struct job *job, const char *what, int error) {
    const char *reason = strerror(error);
    capture_add(&job->captures[1], (const uint8_t *)what, strlen(what));
    capture_add(&job->captures[1], (const uint8_t *)reason, strlen(reason));
    job->status = 126 << 8;
    job->ended = now_us();
    job->tree_gone = true;
}

/* pairs: stdin, stdout, stderr, report. The command has the reading end of the first only. */
static bool open_pipes(int pairs[4][2]) {
    for (int i = 0; i < 4; i++)
        if (pipe2(pairs[i], O_CLOEXEC)) {
            while (i--) close(pairs[i][0]), close(pairs[i][1]);
            return false;
        }
    return true;
}

static void job_spawn(struct job *job, const struct command *command) {
    int pairs[4][2];
    if (!open_pipes(pairs)) {
        refuse(job, "cannot start a process: ", errno);
        return;
    }
    struct ends ends = {pairs[0][0], pairs[1][1], pairs[2][1], pairs[3][1]};
    job->in = pairs[0][1];
    job->out = pairs[1][0];
    job->err = pairs[2][0];
    job->report = pairs[3][0];
    fcntl(job->in, F_SETFL, O_NONBLOCK);
    fcntl(job->out, F_SETFL, O_NONBLOCK);
    fcntl(job->err, F_SETFL, O_NONBLOCK);
    fcntl(job->report, F_SETFL, O_NONBLOCK);
    job->supervisor = supervise(command, ends);
    if (job->supervisor < 0) refuse(job, "cannot start a process: ", errno);
    close(ends.in);
    close(ends.out);
    close(ends.err);
    close(ends.report);
    if (!job->input_left) close_end(&job->in);
}

void job_start(struct server *server, struct frame *frame) {
    struct job *job = job_new(server, frame);
    job->deadline = job->started + (int64_t)take_u32(frame) * 1000;
    uint32_t limit = take_u32(frame);
    if (limit > MAX_FRAME / 4) die("malformed frame: the output limit is too large");
    job->captures[0].limit = job->captures[1].limit = limit;
    struct command command = {.cwd = take_string(frame), .processes = server->processes};
    command.argv = take_strings(frame, take_u32(frame));
    if (!command.argv[0]) die("malformed frame: no command");
    command.env = take_strings(frame, take_u32(frame));
    job->input = take_rest(frame, &job->input_left);
    job_spawn(job, &command);
    free(command.argv);
    free(command.env);
    if (!job->input_left) {
        free(job->body);
        job->body = NULL;
    }
}

static void job_stop(struct job *job, enum stop why) {
    if (job->stop || job->ended) return;
    job->stop = why;
    job->stopped = now_us();
}

void job_cancel(struct server *server, uint32_t id) {
    for (struct job *job = server->jobs; job; job = job->next)
        if (job->id == id) job_stop(job, CANCELLED);
}

static void job_ended(struct job *job, int status, uint64_t cpu_us) {
    if (job->ended) return;
    job->ended = now_us();
    job->status = status;
    job->cpu_us = cpu_us;
}

void job_reports(struct server *server) {
    struct report report;
    for (struct job *job = server->jobs; job; job = job->next)
        while (job->report >= 0) {
            ssize_t got = read(job->report, &report, sizeof report);
            if (got < 0) break;
            if (got != sizeof report) close_end(&job->report);
            else if (report.kind == REPORT_STARTED) job->command = report.value;
            else job_ended(job, report.value, report.cpu_us);
        }
}

/* A command may kill its supervisor. It is PID 1's child then, if it still lives. */
static void supervisor_reaped(struct job *job, int status, uint64_t cpu_us) {
    siginfo_t info;
    job->supervisor = 0;
    if (WIFEXITED(status)) {
        job->tree_gone = true;
        if (job->stop) job->cpu_us = cpu_us;
        return;
    }
    job->supervisor_gone = true;
    if (!job->command || waitid(P_PID, (id_t)job->command, &info, WEXITED | WNOHANG | WNOWAIT))
        job_ended(job, SIGKILL, cpu_us);
}

void job_reaped(struct server *server, pid_t pid, int status, uint64_t cpu_us) {
    for (struct job *job = server->jobs; job; job = job->next) {
        if (pid == job->supervisor) supervisor_reaped(job, status, cpu_us);
        else if (pid == job->command) job_ended(job, status, cpu_us);
    }
}

static void pump_input(struct job *job) {
    while (job->in >= 0) {
        ssize_t sent = write(job->in, job->input, job->input_left);
        if (sent < 0 && errno == EAGAIN) return;
        if (sent > 0) {
            job->input += sent;
            job->input_left -= (size_t)sent;
        }
        /* A command may leave its input unread; that is its own affair. */
        if (sent < 0 || !job->input_left) close_end(&job->in);
    }
}

static void pump_output(int *fd, struct capture *capture) {
    static uint8_t chunk[CHUNK];
    for (int i = 0; i < CHUNKS && *fd >= 0; i++) {
        ssize_t got = read(*fd, chunk, sizeof chunk);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) close_end(fd);
        else if (capture) capture_add(capture, chunk, (size_t)got);
    }
}

void job_pump(struct job *job) {
    pump_input(job);
    pump_output(&job->out, &job->captures[0]);
    pump_output(&job->err, &job->captures[1]);
}

/* When the supervisor is gone, or its tree will not die, nobody can tell whose the processes are:
   all of them go. */
static void enforce_stop(struct job *job) {
    int64_t since = now_us() - job->stopped;
    if (job->tree_gone) return;
    if (!job->supervisor_gone && since < OWN_TREE) {
        kill(job->supervisor, SIGCONT);
        tree_kill(job->supervisor);
        return;
    }
    kill(-1, SIGKILL);
    job->tree_gone = !tree_population() || since > GIVE_UP;
}

static bool job_done(const struct job *job) {
    if (job->stop) return job->tree_gone;
    if (!job->ended) return false;
    return (job->out < 0 && job->err < 0) || now_us() >= job->ended + DRAIN;
}

enum { FLAG_TIMED_OUT = 1, FLAG_TRUNCATED = 2, FLAG_CANCELLED = 4 };

static uint8_t flags(const struct job *job) {
    uint8_t flags = job->stop == TIMED_OUT ? FLAG_TIMED_OUT : job->stop == CANCELLED ? FLAG_CANCELLED : 0;
    if (capture_truncated(&job->captures[0]) || capture_truncated(&job->captures[1])) flags |= FLAG_TRUNCATED;
    return flags;
}

static void answer(struct server *server, const struct job *job) {
    const struct capture *out = &job->captures[0], *err = &job->captures[1];
    struct buffer reply = reply_begin(job->id, HELLO | EXEC);
    buffer_reserve(&reply, 64 + capture_size(out) + capture_size(err));
    buffer_u32(&reply, (uint32_t)exit_code(job->ended ? job->status : SIGKILL));
    buffer_u8(&reply, flags(job));
    buffer_u64(&reply, (uint64_t)(now_us() - job->started));
    buffer_u64(&reply, job->cpu_us);
    buffer_u32(&reply, (uint32_t)capture_size(out));
    capture_copy(out, &reply);
    capture_copy(err, &reply);
    reply_end(&server->channel, &reply);
}

static void job_free(struct server *server, struct job *job) {
    close_end(&job->in);
    close_end(&job->report);
    if (job->out >= 0) leftover_add(server, job->out);
    if (job->err >= 0) leftover_add(server, job->err);
    buffer_free(&job->captures[0].kept);
    buffer_free(&job->captures[1].kept);
    free(job->body);
    free(job);
}

void jobs_settle(struct server *server) {
    for (struct job **link = &server->jobs, *job; (job = *link);) {
        if (!job->ended && now_us() >= job->deadline) job_stop(job, TIMED_OUT);
        if (job->stop) enforce_stop(job);
        if (!job_done(job)) {
            link = &job->next;
            continue;
        }
        *link = job->next;
        answer(server, job);
        job_free(server, job);
    }
}

static int64_t job_wake(const struct job *job) {
    if (job->stop) return now_us() + KILL_EVERY;
    return job->ended ? job->ended + DRAIN : job->deadline;
}

int64_t jobs_wake(const struct server *server) {
    int64_t wake = INT64_MAX;
    for (const struct job *job = server->jobs; job; job = job->next)
        if (job_wake(job) < wake) wake = job_wake(job);
    return wake;
}

void leftover_add(struct server *server, int fd) {
    struct leftover *leftover = server->leftover_count < LEFTOVERS ? calloc(1, sizeof *leftover) : NULL;
    if (!leftover) {
        close(fd);
        return;
    }
    *leftover = (struct leftover){server->leftovers, fd};
    server->leftovers = leftover;
    server->leftover_count++;
}

void leftovers_pump(struct server *server) {
    for (struct leftover **link = &server->leftovers, *leftover; (leftover = *link);) {
        pump_output(&leftover->fd, NULL);
        if (leftover->fd >= 0) {
            link = &leftover->next;
            continue;
        }
        *link = leftover->next;
        free(leftover);
        server->leftover_count--;
    }
}
