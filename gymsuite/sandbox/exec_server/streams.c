#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LEFTOVERS = 64,
    LEAST_KEPT = 64 << 10, /* of each output */
    CHUNK = 64 << 10,
    CHUNKS = 16, /* of one pipe at a time, so that no command starves its neighbours */
};

void close_end(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void grant_input(struct server *server, const struct job *job, size_t size) {
    /* Whoever was told that the job is gone may not be told anything of it any more. */
    if (!job->spawned || job->gone_told || !size) return;
    struct buffer frame = reply_begin(job->id, HELLO | WINDOW);
    buffer_u8(&frame, STDIN);
    buffer_u32(&frame, (uint32_t)size);
    reply_end(&server->channel, &frame);
}

/* A command may leave its input unread; that is its own affair. */
static void drop_input(struct server *server, struct job *job) {
    grant_input(server, job, job->input.size - job->input_at);
    buffer_free(&job->input);
    job->input_at = 0;
}

static void pump_input(struct server *server, struct job *job) {
    size_t start = job->input_at;
    while (job->in >= 0 && job->input_at < job->input.size) {
        ssize_t sent = write(job->in, job->input.data + job->input_at, job->input.size - job->input_at);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (sent < 0) close_end(&job->in);
        else job->input_at += (size_t)sent;
    }
    grant_input(server, job, job->input_at - start);
    if (job->in < 0 || job->input_at == job->input.size) drop_input(server, job);
    if (!job->input.size && job->input_ends) close_end(&job->in);
}

void serve_input(struct server *server, struct frame *frame) {
    struct job *job = job_of(server, frame);
    size_t size;
    const uint8_t *data = take_rest(frame, &size);
    if (!job->spawned || job->input_ends) die("malformed frame: input for a command that takes none");
    if (job->input.size - job->input_at + size > INPUT_WINDOW) die("malformed frame: more input than there is room for");
    if (job->input_at) {
        struct buffer rest = {0};
        buffer_append(&rest, job->input.data + job->input_at, job->input.size - job->input_at);
        buffer_free(&job->input);
        job->input = rest;
        job->input_at = 0;
    }
    buffer_append(&job->input, data, size);
    job->input_ends = !size;
    pump_input(server, job);
}

static void tell_output(struct server *server, const struct job *job, enum stream stream, const void *data, size_t size) {
    struct buffer frame = reply_begin(job->id, HELLO | OUTPUT);
    buffer_reserve(&frame, frame.size + 1 + size);
    buffer_u8(&frame, (uint8_t)stream);
    buffer_append(&frame, data, size);
    reply_end(&server->channel, &frame);
}

/* However little room there is, what somebody else wrote leaves some for this. */
static void keep(struct server *server, struct capture *capture, const void *data, size_t size) {
    size_t before = capture_size(capture), held = server->kept + server->channel.queued;
    size_t room = held < server->most_kept ? server->most_kept - held : 0;
    if (before + room < LEAST_KEPT) room = LEAST_KEPT - before;
    if (size > room) capture_limit(capture, before + room);
    capture_add(capture, data, size);
    server->kept += capture_size(capture) - before;
}

void output_add(struct server *server, struct job *job, enum stream stream, const void *data, size_t size) {
    struct output *output = &job->outputs[stream - STDOUT];
    if (!job->spawned) keep(server, &output->capture, data, size);
    if (!job->window || !size) return;
    tell_output(server, job, stream, data, size);
    output->credit = output->credit > size ? output->credit - (uint32_t)size : 0;
}

bool output_open(const struct job *job, const struct output *output) {
    return output->fd >= 0 && (!job->window || output->credit);
}

static void pump_output(struct server *server, struct job *job, enum stream stream) {
    static uint8_t chunk[CHUNK];
    struct output *output = &job->outputs[stream - STDOUT];
    for (int i = 0; i < CHUNKS && output_open(job, output); i++) {
        size_t room = job->window && output->credit < sizeof chunk ? output->credit : sizeof chunk;
        ssize_t got = read(output->fd, chunk, room);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) close_end(&output->fd);
        else output_add(server, job, stream, chunk, (size_t)got);
    }
}

static void tell_end(struct server *server, struct job *job, enum stream stream) {
    struct output *output = &job->outputs[stream - STDOUT];
    if (!job->spawned || output->fd >= 0 || output->end_told) return;
    tell_output(server, job, stream, NULL, 0);
    output->end_told = true;
}

void job_pump(struct server *server, struct job *job) {
    if (job->in >= 0) pump_input(server, job);
    pump_output(server, job, STDOUT);
    pump_output(server, job, STDERR);
    tell_end(server, job, STDOUT);
    tell_end(server, job, STDERR);
}

void serve_window(struct server *server, struct frame *frame) {
    struct job *job = job_of(server, frame);
    uint8_t stream = take_u8(frame);
    uint32_t size = take_u32(frame);
    take_end(frame);
    if (!job->window || (stream != STDOUT && stream != STDERR)) die("malformed frame: credit for no stream");
    struct output *output = &job->outputs[stream - STDOUT];
    /* Credit may still be on its way when none is needed any more. */
    if (!job->over && size > job->window - output->credit) die("malformed frame: more credit than there is to give");
    if (!job->over) output->credit += size;
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

static bool drained(int fd) {
    static uint8_t chunk[CHUNK];
    for (int i = 0; i < CHUNKS; i++) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (got <= 0) return true;
    }
    return false;
}

void leftovers_pump(struct server *server) {
    for (struct leftover **link = &server->leftovers, *leftover; (leftover = *link);) {
        if (!drained(leftover->fd)) {
            link = &leftover->next;
            continue;
        }
        *link = leftover->next;
        close(leftover->fd);
        free(leftover);
        server->leftover_count--;
    }
}
