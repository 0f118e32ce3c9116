#define _GNU_SOURCE
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers.h"
#include "become.h"
#include "privileges.h"
#include "streams.h"
#include "tree.h"

enum {
    OWN_TREE = 3000000, /* to end a command's own tree, before all others have to go with it */
    GIVE_UP = 6000000,
    DRAIN = 50000,      /* for output still on its way when the command ends */
    KILL_EVERY = 2000,  /* between two rounds at a tree that will not die */
    NUDGE = 20000,      /* a supervisor that has not begun by then was perhaps stopped while it waited */
    REST = 2 << 20,     /* more than pipes hold when a command ends */
};

static struct job *find(const struct server *server, uint32_t id) {
    for (struct job *job = server->jobs; job; job = job->next)
        if (job->id == id) return job;
    return NULL;
}

struct job *job_of(const struct server *server, const struct frame *frame) {
    struct job *job = find(server, frame->id);
    if (!job) die("malformed frame: no such job");
    return job;
}

static struct job *job_new(struct server *server, const struct frame *frame) {
    if (find(server, frame->id)) die("malformed frame: the id is in use");
    struct job *job = calloc(1, sizeof *job);
    if (!job) die("out of memory");
    *job = (struct job){.next = server->jobs, .id = frame->id, .in = -1, .started = now_us()};
    job->outputs[0].fd = job->outputs[1].fd = -1;
    server->jobs = job;
    return job;
}

static void take_window(struct frame *frame, struct job *job) {
    job->window = take_u32(frame);
    if (job->window > MAX_WINDOW) die("malformed frame: the window is too large");
    job->outputs[0].credit = job->outputs[1].credit = job->window;
}

static void job_ended(struct job *job, int status, uint64_t cpu_us) {
    if (job->ended) return;
    job->ended = now_us();
    job->status = status;
    job->cpu_us = cpu_us;
}

/* What is left in its pipes is not worth waiting for a reader. */
static void over(struct job *job) {
    if (job->spawned || !job->window || job->over) return;
    job->over = true;
    job->outputs[0].credit = job->outputs[1].credit = REST;
}

static void refuse(struct server *server, struct job *job, const char *what, const char *why) {
    if (!job->spawned || !job->refusal) {
        output_add(server, job, STDERR, what, strlen(what));
        output_add(server, job, STDERR, why, strlen(why));
    }
    job_ended(job, NOT_RUNNABLE << 8, 0);
    job->tree_gone = true;
}

static const char *identify(const char *user, struct identity *identity) {
    if (!*user) return NULL;
    const char *wrong = account_find(user, identity);
    if (wrong || privileges_can_change_user()) return wrong;
    identity->changes = false;
    bool same = identity->uid == geteuid() && identity->gid == getegid();
    return same ? NULL : "this sandbox cannot change users, so all commands run as its root";
}

/* The command has the reading end of its stdin, and the writing ends of the others. */
static bool open_pipes(int pairs[3][2], bool with_input) {
    for (int i = with_input ? 0 : 1; i < 3; i++)
        if (pipe2(pairs[i], O_CLOEXEC)) {
            while (i--)
                if (pairs[i][0] >= 0) close(pairs[i][0]), close(pairs[i][1]);
            return false;
        }
    return true;
}

static void start(struct server *server, struct job *job, const struct command *command, bool with_input) {
    int pairs[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    if (!open_pipes(pairs, with_input)) {
        refuse(server, job, "cannot start a process: ", strerror(errno));
        return;
    }
    /* What reads nothing has /dev/null, as the server does. */
    struct ends ends = {with_input ? pairs[0][0] : STDIN_FILENO, pairs[1][1], pairs[2][1]};
    job->in = pairs[0][1];
    job->outputs[0].fd = pairs[1][0];
    job->outputs[1].fd = pairs[2][0];
    if (with_input) fcntl(job->in, F_SETFL, O_NONBLOCK);
    fcntl(job->outputs[0].fd, F_SETFL, O_NONBLOCK);
    fcntl(job->outputs[1].fd, F_SETFL, O_NONBLOCK);
    job->supervisor = supervisor_start(&server->supervisors, command, ends);
    if (!job->supervisor) {
        job->no_process = errno == EAGAIN;
        refuse(server, job, "cannot start a process: ", strerror(errno));
    }
    /* Not before: it would only keep the command waiting. */
    job->before = limits_events(&server->limits);
    if (with_input) close(ends.in);
    close(ends.out);
    close(ends.err);
}

static void begin(struct server *server, struct job *job, struct frame *frame, struct command *command) {
    const char *user = command_take(frame, command);
    command->processes = server->processes;
    job->cwd = strdup(command_cwd(command));
    if (!job->cwd) die("out of memory");
    job->refusal = identify(user, &command->identity);
}

static void start_or_refuse(struct server *server, struct job *job, const struct command *command, bool with_input) {
    if (job->refusal) refuse(server, job, job->refusal, "\n");
    else start(server, job, command, with_input);
}

void job_exec(struct server *server, struct frame *frame) {
    struct job *job = job_new(server, frame);
    struct command command = {0};
    job->deadline = job->started + (int64_t)take_u32(frame) * 1000;
    uint32_t limit = take_u32(frame);
    if (limit > MAX_FRAME / 4) die("malformed frame: the output limit is too large");
    job->outputs[0].capture.limit = job->outputs[1].capture.limit = limit;
    take_window(frame, job);
    begin(server, job, frame, &command);
    job->input = (struct buffer){frame->body, frame->size, frame->size};
    job->input_at = frame->at;
    job->input_ends = true;
    start_or_refuse(server, job, &command, frame->at < frame->size);
    if (job->in >= 0) job_pump(server, job);
}

void job_spawn(struct server *server, struct frame *frame) {
    struct job *job = job_new(server, frame);
    struct command command = {.announced = true};
    job->spawned = true;
    job->deadline = INT64_MAX;
    take_window(frame, job);
    if (!job->window) die("malformed frame: no window");
    begin(server, job, frame, &command);
    take_end(frame);
    start_or_refuse(server, job, &command, true);
    free(frame->body);
}

static void job_stop(struct job *job, enum stop why) {
    if (job->stop || (job->ended && !job->spawned)) return;
    job->stop = why;
    job->stopped = now_us();
}

void job_cancel(struct server *server, uint32_t id) {
    struct job *job = find(server, id);
    if (job) job_stop(job, CANCELLED);
}

void job_kill(struct server *server, struct frame *frame) {
    struct job *job = find(server, take_u32(frame));
    take_end(frame);
    if (!job || !job->spawned || job->kill_id || !frame->id) die("malformed frame: nothing to kill");
    job->kill_id = frame->id;
    job_stop(job, CANCELLED);
}

void job_release(struct server *server, struct frame *frame) {
    struct job *job = job_of(server, frame);
    take_end(frame);
    if (job->spawned ? !job->gone_told : !job->end_told) die("malformed frame: the job is not over");
    job->released = true;
}

static void take_report(struct server *server, struct job *job, const struct report *report) {
    if (report->peak_bytes > server->peak_bytes) server->peak_bytes = report->peak_bytes;
    if (report->kind == REPORT_STARTED) job->command = report->value;
    job->no_process |= report->no_process;
    if (report->kind == REPORT_ENDED) job_ended(job, report->value, report->cpu_us);
    if (report->kind == REPORT_REFUSED) {
        job->refusal = report->value == EINVAL ? "this sandbox has no such id" : strerror(report->value);
        refuse(server, job, job->refusal, "\n");
    }
    if (!report->idle) return;
    if (job->stop) job->cpu_us = report->cpu_us;
    server->spent_us += report->cpu_us;
    job->tree_gone = true;
    supervisor_release(&server->supervisors, job->supervisor, true);
    job->supervisor = NULL;
}

void job_report(struct server *server, struct job *job) {
    struct report report;
    while (job->supervisor && recv(job->supervisor->control, &report, sizeof report, MSG_DONTWAIT) == sizeof report)
        take_report(server, job, &report);
}

/* A command may kill its supervisor. It is PID 1's child then, if it still lives. */
static void supervisor_reaped(struct job *job, int status, uint64_t cpu_us) {
    siginfo_t info;
    job->command = *job->supervisor->running;
    supervisor_forget(job->supervisor);
    job->supervisor = NULL;
    job->supervisor_gone = true;
    bool lives = job->command && !waitid(P_PID, (id_t)job->command, &info, WEXITED | WNOHANG | WNOWAIT);
    if (!lives) job_ended(job, SIGKILL, cpu_us);
    if (WIFEXITED(status)) job->tree_gone = true;
}

void job_reaped(struct server *server, pid_t pid, int status, uint64_t cpu_us) {
    for (struct job *job = server->jobs; job; job = job->next) {
        if (job->supervisor && pid == job->supervisor->pid) supervisor_reaped(job, status, cpu_us);
        else if (job->supervisor_gone && pid == job->command) job_ended(job, status, cpu_us);
    }
    supervisors_reaped(&server->supervisors, pid);
}

/* When the supervisor is gone, or its tree will not die, nobody can tell whose the processes are:
   all of them go. */
static void enforce_stop(struct job *job) {
    int64_t since = now_us() - job->stopped;
    if (job->tree_gone) return;
    if (job->supervisor && since < OWN_TREE) {
        kill(job->supervisor->pid, SIGCONT);
        tree_kill(job->supervisor->pid);
        return;
    }
    kill(-1, SIGKILL);
    job->tree_gone = !tree_population() || since > GIVE_UP;
}

static bool exec_done(const struct job *job) {
    if (job->end_told) return false;
    if (job->stop) return job->tree_gone;
    if (!job->ended) return false;
    return (job->outputs[0].fd < 0 && job->outputs[1].fd < 0) || now_us() >= job->ended + DRAIN;
}

/* All that it held goes, but not its place: whoever was told may still be giving credit. */
static void job_empty(struct server *server, struct job *job) {
    close_end(&job->in);
    for (int i = 0; i < 2; i++) {
        if (job->outputs[i].fd >= 0) leftover_add(server, job->outputs[i].fd);
        job->outputs[i].fd = -1;
        buffer_free(&job->outputs[i].capture.kept);
    }
    buffer_free(&job->input);
    if (job->supervisor) supervisor_release(&server->supervisors, job->supervisor, false);
    job->supervisor = NULL;
}

static bool begun(const struct job *job) { return !job->supervisor || *job->supervisor->running || job->nudged; }

static void nudge(struct job *job) {
    if (begun(job) || now_us() < job->started + NUDGE) return;
    kill(job->supervisor->pid, SIGCONT);
    job->nudged = true;
}

static void settle_exec(struct server *server, struct job *job) {
    if (!job->ended && now_us() >= job->deadline) job_stop(job, TIMED_OUT);
    if (job->stop) enforce_stop(job);
    if (job->ended || job->tree_gone) {
        over(job);
        job_pump(server, job);
    }
    if (!exec_done(job)) return;
    answer_exec(server, job);
    job_empty(server, job);
    job->released |= !job->window;
}

static void settle_spawned(struct server *server, struct job *job) {
    if (job->stop) enforce_stop(job);
    /* Without its supervisor, what is left of the tree cannot be told from others. */
    if (job->supervisor_gone && job->ended) job->tree_gone = true;
    if (job->tree_gone) job_ended(job, SIGKILL, 0);
    if (!job->start_told && (job->command || job->ended)) tell_start(server, job);
    if (job->refusal) job->released = true;
    if (!job->start_told || job->refusal) return;
    if (job->ended) job_pump(server, job);
    if (job->ended && !job->end_told) tell_exit(server, job);
    if (job->kill_id && job->tree_gone) tell_killed(server, job);
    bool silent = job->outputs[0].end_told && job->outputs[1].end_told;
    if (job->tree_gone && silent && !job->kill_id && !job->gone_told) tell_gone(server, job);
}

void jobs_settle(struct server *server) {
    for (struct job **link = &server->jobs, *job; (job = *link);) {
        nudge(job);
        if (job->spawned) settle_spawned(server, job);
        else settle_exec(server, job);
        if (!job->released) {
            link = &job->next;
            continue;
        }
        *link = job->next;
        job_empty(server, job);
        free(job->cwd);
        free(job);
    }
}

static int64_t job_wake(const struct job *job) {
    if (!begun(job)) return job->started + NUDGE;
    if (job->stop && !job->tree_gone) return now_us() + KILL_EVERY;
    if (job->spawned || job->end_told) return INT64_MAX;
    return job->ended ? job->ended + DRAIN : job->deadline;
}

int64_t jobs_wake(const struct server *server) {
    int64_t wake = INT64_MAX;
    for (const struct job *job = server->jobs; job; job = job->next)
        if (job_wake(job) < wake) wake = job_wake(job);
    return wake;
}
