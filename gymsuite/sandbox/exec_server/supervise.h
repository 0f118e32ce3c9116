/* The small process between the server and one command: it adopts the command's orphans, so that
   whatever the command started stays below it, and reports how the command ended. When nothing is
   left below it, it takes the next command. */
#ifndef GYMSUITE_SUPERVISE_H
#define GYMSUITE_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "command.h"

enum report_kind { REPORT_STARTED = 1, REPORT_ENDED = 2, REPORT_REFUSED = 3 };

struct report {
    uint32_t kind;
    int32_t value; /* the command's pid, its wait status, or the errno of a refused user */
    bool no_process; /* it could not be started at all */
    bool idle;     /* nothing is left below the supervisor; alone, as a report without a kind, also */
    uint64_t cpu_us;
    uint64_t peak_bytes; /* of the largest process that was below it, in all its time */
};

/* The command's ends of its pipes. */
struct ends {
    int in, out, err;
};

/* How far a command came; the server, the supervisor and the command's process share it. */
struct progress {
    volatile pid_t running; /* its pid, 0 before it starts */
    volatile bool taken;    /* its process knows what to be */
    volatile int refused;   /* the errno when it cannot be the user that it should be */
};

/* Becomes a supervisor whose first command is this one. `control` is its socket to the server, and
   `progress` memory that both share. `ends` are above 3. */
_Noreturn void supervise(int control, struct progress *progress, const struct command *command, struct ends ends);

/* Of all children that were waited for: their CPU time, and the largest of them. */
struct usage {
    uint64_t cpu_us, peak_bytes;
};

struct usage children_usage(void);
int exit_code(int status);

#endif
