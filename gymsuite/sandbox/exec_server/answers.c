#include "answers.h"

#include <signal.h>
#include <string.h>

enum {
    FLAG_TIMED_OUT = 1,
    FLAG_TRUNCATED = 2,
    FLAG_CANCELLED = 4,
    FLAG_OOM = 8,
    FLAG_DISK_FULL = 16,
    FLAG_PIDS = 32,
    FLAG_REFUSED = 64, /* stderr says why */
};

static uint8_t limit_flags(const struct server *server, const struct job *job) {
    struct events now = limits_events(&server->limits);
    uint8_t flags = 0;
    if (now.oom_kills > job->before.oom_kills) flags |= FLAG_OOM;
    if (job->no_process || now.pids_refused > job->before.pids_refused) flags |= FLAG_PIDS;
    if (limits_disk_full(&server->limits, job->cwd)) flags |= FLAG_DISK_FULL;
    return flags;
}

static uint8_t all_flags(const struct server *server, const struct job *job) {
    uint8_t flags = limit_flags(server, job);
    if (job->stop == TIMED_OUT) flags |= FLAG_TIMED_OUT;
    if (job->stop == CANCELLED) flags |= FLAG_CANCELLED;
    if (job->refusal) flags |= FLAG_REFUSED;
    for (int i = 0; i < 2; i++)
        if (capture_truncated(&job->outputs[i].capture)) flags |= FLAG_TRUNCATED;
    return flags;
}

static struct buffer begin_end(const struct server *server, const struct job *job, uint8_t type) {
    const struct capture *out = &job->outputs[0].capture, *err = &job->outputs[1].capture;
    struct buffer reply = reply_begin(job->id, HELLO | type);
    buffer_reserve(&reply, 64 + capture_size(out) + capture_size(err));
    buffer_u32(&reply, (uint32_t)exit_code(job->ended ? job->status : SIGKILL));
    buffer_u8(&reply, all_flags(server, job));
    buffer_u64(&reply, (uint64_t)(now_us() - job->started));
    buffer_u64(&reply, job->cpu_us);
    buffer_u32(&reply, (uint32_t)capture_size(out));
    capture_copy(out, &reply);
    capture_copy(err, &reply);
    return reply;
}

void answer_exec(struct server *server, struct job *job) {
    struct buffer reply = begin_end(server, job, EXEC);
    reply_end(&server->channel, &reply);
    job->end_told = true;
}

void tell_exit(struct server *server, struct job *job) {
    struct buffer reply = begin_end(server, job, EXIT);
    reply_end(&server->channel, &reply);
    job->end_told = true;
}

void tell_start(struct server *server, struct job *job) {
    struct buffer reply = reply_begin(job->id, HELLO | SPAWN);
    buffer_u8(&reply, job->refusal ? 1 : 0);
    buffer_u32(&reply, (uint32_t)job->command);
    if (job->refusal) buffer_append(&reply, job->refusal, strlen(job->refusal));
    reply_end(&server->channel, &reply);
    job->start_told = true;
}

void tell_killed(struct server *server, struct job *job) {
    struct buffer reply = reply_begin(job->kill_id, HELLO | KILL);
    reply_end(&server->channel, &reply);
    job->kill_id = 0;
}

void tell_gone(struct server *server, struct job *job) {
    struct buffer reply = reply_begin(job->id, HELLO | GONE);
    reply_end(&server->channel, &reply);
    job->gone_told = true;
}
