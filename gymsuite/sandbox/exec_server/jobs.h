/* The commands that run now, how each of them ends, and what is answered for it. */
#ifndef GYMSUITE_JOBS_H
#define GYMSUITE_JOBS_H

#include <sys/types.h>

#include "capture.h"
#include "channel.h"
#include "limits.h"
#include "supervisors.h"

enum stop { NOT_STOPPED, TIMED_OUT, CANCELLED };

enum stream { STDIN = 0, STDOUT = 1, STDERR = 2 };

/* One output of a command. `credit` is how much more of it may be sent while it runs. */
struct output {
    int fd; /* -1 once closed */
    uint32_t credit;
    struct capture capture;
    bool end_told;
};

struct job {
    struct job *next;
    uint32_t id;
    bool spawned;    /* by SPAWN: without a deadline, and its output is not kept */
    uint32_t window; /* of each stream that is sent while it runs; 0 for none */
    struct supervisor *supervisor; /* NULL once it is gone */
    pid_t command;                 /* 0 before it starts */
    int in;
    struct buffer input; /* of EXEC, the whole request */
    size_t input_at;
    bool input_ends; /* no more will come */
    struct output outputs[2];
    int64_t started, deadline, stopped, ended;
    enum stop stop;
    bool supervisor_gone; /* killed by what it supervised */
    bool tree_gone;       /* all below the supervisor is dead */
    bool nudged;          /* by a signal to go on */
    bool over;            /* what is left in its pipes is sent without credit */
    bool start_told, end_told, gone_told, released;
    uint32_t kill_id; /* of the KILL that waits for an answer */
    int status;
    bool no_process; /* there could be no more */
    const char *refusal; /* why it cannot run as the user that it should */
    uint64_t cpu_us;
    struct events before;
    char *cwd;
    size_t polled, polled_end; /* where its descriptors are among those that are polled */
};

/* An output pipe that a background process still holds. It is read on, so that whoever writes to
   it neither blocks nor dies. */
struct leftover {
    struct leftover *next;
    int fd;
};

struct server {
    struct channel channel;
    struct supervisors supervisors;
    struct limits limits;
    struct job *jobs;
    struct leftover *leftovers;
    struct archive *archives;
    size_t leftover_count;
    uint32_t processes;
    int listener;     /* of the filter of system calls, or -1 */
    size_t most_kept; /* of outputs and replies together, as they are part of the sandbox's memory */
    size_t kept;      /* of outputs, now */
    uint64_t spent_us;   /* CPU time of all whose end was told by a supervisor */
    uint64_t peak_bytes; /* of the largest process that a supervisor told of */
};

struct job *job_new(struct server *server, const struct frame *frame);
/* It ends before it began, with these words on its stderr. */
void job_refuse(struct server *server, struct job *job, const char *what, const char *why);

void job_cancel(struct server *server, uint32_t id);
void job_kill(struct server *server, struct frame *frame);
void job_release(struct server *server, struct frame *frame);

/* The job of a frame; ends the server where there is none. */
struct job *job_of(const struct server *server, const struct frame *frame);

/* A child of PID 1 was reaped. */
void job_reaped(struct server *server, pid_t pid, int status, uint64_t cpu_us);
void job_report(struct server *server, struct job *job);

/* Enforces deadlines, and answers for what is done. */
void jobs_settle(struct server *server);
int64_t jobs_wake(const struct server *server);

#endif
