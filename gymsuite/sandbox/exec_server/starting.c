#define _GNU_SOURCE
#include "starting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privileges.h"
#include "streams.h"

static void take_window(struct frame *frame, struct job *job) {
    job->window = take_u32(frame);
    if (job->window > MAX_WINDOW) die("malformed frame: the window is too large");
    job->outputs[0].credit = job->outputs[1].credit = job->window;
}

static const char *identify(const char *user, struct identity *identity) {
    if (!*user) return NULL;
    const char *wrong = account_find(user, identity);
    if (wrong || privileges_can_change_user()) return wrong;
    identity->changes = false;
    bool same = identity->uid == geteuid() && identity->gid == getegid();
    return same ? NULL : "this sandbox cannot change users: all commands run as the one it has";
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
        job_refuse(server, job, "cannot start a process: ", strerror(errno));
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
        job_refuse(server, job, "cannot start a process: ", strerror(errno));
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
    if (job->refusal) job_refuse(server, job, job->refusal, "\n");
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
