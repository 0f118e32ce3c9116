/* The commands that run now: their pipes, their deadlines, and how each of them ends. */
#ifndef GYMSUITE_JOBS_H
#define GYMSUITE_JOBS_H

#include <sys/types.h>

#include "capture.h"
#include "channel.h"

enum stop { NOT_STOPPED, TIMED_OUT, CANCELLED };

struct job {
    struct job *next;
    uint32_t id;
    pid_t supervisor, command;
    int report, in, out, err; /* -1 once closed */
    uint8_t *body;            /* the request, which holds the command's stdin */
    const uint8_t *input;
    size_t input_left;
    struct capture captures[2];
    int64_t started, deadline, stopped, ended;
    enum stop stop;
    bool supervisor_gone; /* killed by what it supervised */
    bool tree_gone;       /* all below the supervisor is dead */
    int status;
    uint64_t cpu_us;
};

/* An output pipe that a background process still holds. It is read on, so that whoever writes to
   it neither blocks nor dies. */
struct leftover {
    struct leftover *next;
    int fd;
};

struct server {
    struct channel channel;
    struct job *jobs;
    struct leftover *leftovers;
    struct archive *archives;
    size_t leftover_count;
    uint32_t processes;
};

/* Starts the command of an EXEC frame, whose body the job takes over. */
void job_start(struct server *server, struct frame *frame);
void job_cancel(struct server *server, uint32_t id);

/* A child of PID 1 was reaped. */
void job_reaped(struct server *server, pid_t pid, int status, uint64_t cpu_us);
void job_reports(struct server *server);

/* Moves what the pipes hold, enforces deadlines, and answers for what is done. */
void job_pump(struct job *job);
void jobs_settle(struct server *server);
int64_t jobs_wake(const struct server *server);

void leftover_add(struct server *server, int fd);
void leftovers_pump(struct server *server);

#endif
