/* Directories as a whole: WALK and PACK are answered piece by piece, each asked for by a NEXT, so that a
   large tree neither fills memory nor keeps anybody waiting; UNPACK makes many entries at once. */
#ifndef GYMSUITE_ARCHIVE_H
#define GYMSUITE_ARCHIVE_H

#include "channel.h"

struct walk;

/* Each reply is a state, an errno, the walk's id and records; it goes on while its state is WALK_MORE. */
enum walk_state { WALK_MORE = 0, WALK_DONE = 1, WALK_TOO_MANY = 2, WALK_TOO_LARGE = 3, WALK_FAILED = 4 };
enum record { RECORD_ENTRY = 1, RECORD_DATA = 2, RECORD_SKIPPED = 3 };
enum made { MADE_DIRECTORY = 1, MADE_FILE = 2, MADE_MORE = 3, MADE_LINK = 4, MADE_MODE = 5 };

/* A WALK or a PACK; what goes on is kept in `walks`, by the id of its first frame. */
void walk_start(struct walk **walks, struct channel *channel, struct frame *frame);
void walk_next(struct walk **walks, struct channel *channel, struct frame *frame);
void walk_cancel(struct walk **walks, uint32_t id);

void serve_unpack(struct channel *channel, struct frame *frame);

#endif
