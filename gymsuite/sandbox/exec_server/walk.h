/* Goes through a directory, piece by piece, and never through a link. */
#ifndef GYMSUITE_WALK_H
#define GYMSUITE_WALK_H

#include <stdbool.h>

#include "base.h"

/* A walk goes on for as long as its state is WALK_MORE. */
enum walk_state { WALK_MORE = 0, WALK_DONE = 1, WALK_TOO_MANY = 2, WALK_TOO_LARGE = 3, WALK_FAILED = 4 };
enum record { RECORD_ENTRY = 1, RECORD_DATA = 2, RECORD_SKIPPED = 3 };

struct walk_wish {
    bool contents; /* of files and links too */
    uint32_t entries;
    uint64_t bytes;
};

struct walk;

/* NULL, with errno, where there is no directory. */
struct walk *walk_open(char *path, struct walk_wish wish);
/* Adds records to a reply: a bounded number, in bounded time. */
enum walk_state walk_piece(struct walk *walk, struct buffer *reply);
void walk_free(struct walk *walk);

#endif
