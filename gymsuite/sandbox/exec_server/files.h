/* File requests, answered inside the sandbox, so that a link leads nowhere else. */
#ifndef GYMSUITE_FILES_H
#define GYMSUITE_FILES_H

#include "channel.h"

enum read_status { READ_OK = 0, READ_ABSENT = 1, READ_TOO_LARGE = 2, READ_FAILED = 3 };

/* Writes all of it, or returns -1. */
int file_write(int fd, const uint8_t *data, size_t size);
/* An error that would tell of a sick machine is a command's doing where a command chose
   the place: it is answered as one that a path can have. */
int file_blame(int fd, int error);

void serve_read(struct channel *channel, struct frame *frame);
/* As READ, but with the mode, and of a link its target; only for a place without other processes. */
void serve_state(struct channel *channel, struct frame *frame);
void serve_write(struct channel *channel, struct frame *frame);

#endif
