/* A command as a frame carries it: its user, its directory, its arguments and its environment. */
#ifndef GYMSUITE_COMMAND_H
#define GYMSUITE_COMMAND_H

#include <stdbool.h>

#include "accounts.h"
#include "channel.h"

struct command {
    uint32_t processes; /* RLIMIT_NPROC of the command; 0 leaves it alone */
    bool announced;     /* whether its start is reported */
    struct identity identity;
    /* The frame's part with the directory, the arguments and the environment. */
    uint8_t *text;
    size_t size;
};

/* The strings of a command's text, where they lie. */
struct words {
    const char *cwd;
    char **argv, **env;
};

/* Reads over a command in a frame, and returns its user; ends the server where it is malformed. */
const char *command_take(struct frame *frame, struct command *command);

struct words command_words(const struct command *command);
const char *command_cwd(const struct command *command);

#endif
