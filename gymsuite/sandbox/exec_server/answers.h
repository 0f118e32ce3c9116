/* What the owner of the sandbox is told of a command: that it started, how it ended, that all of it is gone. */
#ifndef GYMSUITE_ANSWERS_H
#define GYMSUITE_ANSWERS_H

#include "jobs.h"

void answer_exec(struct server *server, struct job *job);

void tell_start(struct server *server, struct job *job);
void tell_exit(struct server *server, struct job *job);
void tell_killed(struct server *server, struct job *job);
void tell_gone(struct server *server, struct job *job);

#endif
