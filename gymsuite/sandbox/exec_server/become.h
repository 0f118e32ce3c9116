/* The last steps of a process before it is the command. */
#ifndef GYMSUITE_BECOME_H
#define GYMSUITE_BECOME_H

#include "supervise.h"

enum { NOT_RUNNABLE = 126, NOT_FOUND = 127 };

/* Runs in a child that shares its parent's memory, and says in `progress` how far it came. */
_Noreturn void become(const struct command *command, const struct words *words, struct progress *progress);

#endif
