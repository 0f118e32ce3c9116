/* The supervisors that there are: each command gets one that waits already, or a new one. */
#ifndef GYMSUITE_SUPERVISORS_H
#define GYMSUITE_SUPERVISORS_H

#include "supervise.h"

struct supervisor {
    struct supervisor *next;
    pid_t pid;
    int control;
    struct progress *progress; /* of its command */
};

struct supervisors {
    struct supervisor *waiting;
    size_t count;
};

/* Starts a command. NULL with an errno when no process can be started. */
struct supervisor *supervisor_start(struct supervisors *all, const struct command *command, struct ends ends);

/* Its command is over. One that is idle waits for another; one that is not ends with what is below it. */
void supervisor_release(struct supervisors *all, struct supervisor *supervisor, bool idle);

void supervisor_forget(struct supervisor *supervisor);

/* Of those that wait: a child of PID 1 was reaped. */
void supervisors_reaped(struct supervisors *all, pid_t pid);

#endif
