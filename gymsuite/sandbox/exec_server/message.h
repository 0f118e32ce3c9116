/* What the keeper is asked and answers: datagrams of words, with descriptors beside them. */
#ifndef GYMSUITE_MESSAGE_H
#define GYMSUITE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

enum { MESSAGE_BYTES = 128 << 10, MESSAGE_WORDS = 4096, MESSAGE_FDS = 2 };

struct message {
    char text[MESSAGE_BYTES];
    size_t size;
    char *words[MESSAGE_WORDS + 1]; /* ends with NULL */
    int count, at;
    int fds[MESSAGE_FDS], fd_count;
};

enum received { GONE, NOTHING, MESSAGE };

/* The words end with a zero byte each. What is no message of that form is as good as a peer that is gone. */
enum received message_receive(int socket, struct message *message);
bool message_forward(int socket, const struct message *message);
const char *message_next(struct message *message); /* the next word, or NULL */
void message_close(struct message *message);

/* An answer is "ID TEXT", with a descriptor unless it is -1. A peer that does not listen misses it. */
void answer(int socket, const char *id, const char *text, int fd);

#endif
