/* The pipes of commands: what is moved between them and the channel, in bounded memory. */
#ifndef GYMSUITE_STREAMS_H
#define GYMSUITE_STREAMS_H

#include "jobs.h"

enum { MAX_WINDOW = 16 << 20, INPUT_WINDOW = 256 << 10 };

/* Moves what the pipes hold, as far as the other end has room. */
void job_pump(struct server *server, struct job *job);

/* Whether it would be read from now on. */
bool output_open(const struct job *job, const struct output *output);

void serve_input(struct server *server, struct frame *frame);
void serve_window(struct server *server, struct frame *frame);

/* Tells who reads a stream of a job, also where it comes from no pipe. */
void output_add(struct server *server, struct job *job, enum stream stream, const void *data, size_t size);

void close_end(int *fd);

void leftover_add(struct server *server, int fd);
void leftovers_pump(struct server *server);

#endif
