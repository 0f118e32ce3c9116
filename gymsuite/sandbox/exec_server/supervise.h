/* The small process between the server and one command: it adopts the command's orphans, so that
   whatever the command started stays below it, and reports how the command ended. */
#ifndef GYMSUITE_SUPERVISE_H
#define GYMSUITE_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command {
    char **argv;
    char **env;
    const char *cwd;
    uint32_t processes; /* RLIMIT_NPROC of the command; 0 leaves it alone */
};

enum report_kind { REPORT_STARTED = 1, REPORT_ENDED = 2 };

/* Small enough that a pipe never splits it. */
struct report {
    uint32_t kind;
    int32_t value; /* the command's pid, or its wait status */
    uint64_t cpu_us;
};

struct ends {
    int in, out, err, report;
};

/* Returns the supervisor's pid, or -1. `ends` are the command's ends of its pipes. */
pid_t supervise(const struct command *command, struct ends ends);

uint64_t children_cpu_us(void);
int exit_code(int status);

#endif
