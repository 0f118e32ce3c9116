#define _GNU_SOURCE
#include "jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "answers.h"
#include "become.h"
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

struct job *job_new(struct server *server, const struct frame *frame) {
    if (find(server, frame->id)) die("malformed frame: the id is in use");
    struct job *job = calloc(1, sizeof *job);
    if (!job) die("out of memory");
    *job = (struct job){.next = server->jobs, .id = frame->id, .in = -1, .started = now_us()};
    job->outputs[0].fd = job->outputs[1].fd = -1;
    server->jobs = job;
    return job;
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

void job_refuse(struct server *server, struct job *job, const char *what, const char *why) {
    if (!job->spawned || !job->refusal) {
        output_add(server, job, STDERR, what, strlen(what));
        output_add(server, job, STDERR, why, strlen(why));
    }
    job_ended(job, NOT_RUNNABLE << 8, 0);
    job->tree_gone = true;
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
        job_refuse(server, job, job->refusal, "\n");
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
    job->command = job->supervisor->progress->running;
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

/* It, and the process of its that waits for a command. */
static void go_on(pid_t supervisor) {
    kill(supervisor, SIGCONT);
    kill(-supervisor, SIGCONT);
}

/* When the supervisor is gone, or its tree will not die, nobody can tell whose the processes are:
   all of them go. */
static void enforce_stop(const struct server *server, struct job *job) {
    int64_t since = now_us() - job->stopped;
    if (job->tree_gone) return;
    if (job->supervisor && since < OWN_TREE) {
        go_on(job->supervisor->pid);
        tree_kill(job->supervisor->pid, server->jobs == job && !job->next);
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
        server->kept -= capture_size(&job->outputs[i].capture);
        buffer_free(&job->outputs[i].capture.kept);
    }
    buffer_free(&job->input);
    if (job->supervisor) supervisor_release(&server->supervisors, job->supervisor, false);
    job->supervisor = NULL;
}

static bool begun(const struct job *job) { return !job->supervisor || job->supervisor->progress->running || job->nudged; }

static void nudge(struct job *job) {
    if (begun(job) || now_us() < job->started + NUDGE) return;
    go_on(job->supervisor->pid);
    job->nudged = true;
}

static void settle_exec(struct server *server, struct job *job) {
    if (!job->ended && now_us() >= job->deadline) job_stop(job, TIMED_OUT);
    if (job->stop) enforce_stop(server, job);
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
    if (job->stop) enforce_stop(server, job);
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
