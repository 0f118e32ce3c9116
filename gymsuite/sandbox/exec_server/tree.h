/* Process trees as /proc shows them: who descends from whom, and ending them for good. */
#ifndef GYMSUITE_TREE_H
#define GYMSUITE_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Freeze, then kill, all that descends from `root`, but not `root` itself. With `alone` no other
   command runs, so that all others may be stopped for a moment. */
void tree_kill(pid_t root, bool alone);

/* How many processes there are besides PID 1. */
size_t tree_population(void);

/* CPU time of all live processes but PID 1, with that of the children they waited for. */
uint64_t tree_cpu_us(void);

#endif
