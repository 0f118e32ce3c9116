/* Directories as a whole: WALK and PACK are answered piece by piece, each asked for by a NEXT, so that a
   large tree neither fills memory nor keeps anybody waiting; UNPACK makes many entries at once. */
#ifndef GYMSUITE_ARCHIVE_H
#define GYMSUITE_ARCHIVE_H

#include "channel.h"

struct archive;

enum made { MADE_DIRECTORY = 1, MADE_FILE = 2, MADE_MORE = 3, MADE_LINK = 4, MADE_MODE = 5 };

/* A WALK or a PACK. Each reply is a state, an errno, the first frame's id and records: see walk.h. */
void archive_start(struct archive **archives, struct channel *channel, struct frame *frame);
void archive_next(struct archive **archives, struct channel *channel, struct frame *frame);
void archive_cancel(struct archive **archives, uint32_t id);

void serve_unpack(struct channel *channel, struct frame *frame);

#endif
