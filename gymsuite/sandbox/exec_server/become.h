/* The last steps of a process before it is the command. */
#ifndef GYMSUITE_BECOME_H
#define GYMSUITE_BECOME_H

#include "command.h"

enum { NOT_RUNNABLE = 126, NOT_FOUND = 127 };

/* Runs in a child that shares its parent's memory: `running` gets the pid, and `refused` the errno when
   the command cannot be the user that it should be. */
_Noreturn void become(const struct command *command, const struct words *words, volatile pid_t *running, int *refused);

#endif
