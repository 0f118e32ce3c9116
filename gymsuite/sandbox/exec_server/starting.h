/* From a request to a command that runs: its user, its pipes, and a supervisor for it. */
#ifndef GYMSUITE_STARTING_H
#define GYMSUITE_STARTING_H

#include "jobs.h"

/* EXEC and SPAWN; the job takes over the frame's body. */
void job_exec(struct server *server, struct frame *frame);
void job_spawn(struct server *server, struct frame *frame);

#endif
