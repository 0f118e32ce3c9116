/* What the sandbox's limits have done: counters of its cgroups, and the room on its disk. */
#ifndef GYMSUITE_LIMITS_H
#define GYMSUITE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Descriptors of the cgroup's event files, and of where most is written; -1 where there is none. */
struct limits {
    int memory_events, pids_events;
    int root, tmp;
};

struct events {
    uint64_t oom_kills, pids_refused;
};

/* `memory` and `pids` were opened by whoever started the server, or are -1. */
struct limits limits_open(int memory, int pids);
struct events limits_events(const struct limits *limits);

/* Whether a file system that a command in `cwd` writes to has no room for one more byte or file. */
bool limits_disk_full(const struct limits *limits, const char *cwd);

/* What files take in the file systems that live in memory, and in the one of "/". */
uint64_t limits_memory_files(void);
uint64_t limits_root_files(void);

#endif
