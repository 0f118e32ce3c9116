/* What a sandbox is to be, as its keeper is told. */
#ifndef GYMSUITE_SCENE_H
#define GYMSUITE_SCENE_H

#include <stdbool.h>

#include "base.h"
#include "message.h"

#define SERVER "/dev/.exec" /* the exec server's name, inside */

enum { MAX_PIECES = 512, MAX_EVENTS = 4 };

/* A LAYER is a directory of this machine, a KEPT one the keeper's, and seen in its mount namespace only. What is a BIND
   appears read-only at `target`, inside. */
enum kind { LAYER, KEPT, BIND };

struct piece {
    enum kind kind;
    const char *source, *target;
    int tree; /* a descriptor, once it was copied */
};

/* A place inside that shows nothing: as an empty directory, or, when it is `closed`, as a file that cannot be opened. */
struct mask {
    bool closed;
    const char *place;
};

/* A counter of its cgroups, which its exec server has as the descriptor `fd`. */
struct event {
    int fd, hierarchy;
    const char *file;
    int opened; /* until then */
};

struct scene {
    bool network;                             /* it shares its starter's */
    unsigned first, count;                    /* users beside root, if any */
    unsigned uid, gid;                        /* whom it runs as, inside */
    const char *scratch;                      /* a directory for what it writes; else that is in memory: */
    const char *upper_bytes, *upper_inodes;   /* its limits there */
    const char *shared_bytes, *shared_inodes; /* of its /dev/shm */
    const char *workdir;                      /* is made, unless it is NULL */
    struct piece pieces[MAX_PIECES];          /* layers are lowest first */
    struct mask masks[MAX_PIECES];
    struct event events[MAX_EVENTS];
    int piece_count, mask_count, event_count;
    char **serve; /* the exec server, and its arguments */
};

/* Reads what follows the keeper's part of a message, and sets the resource limits in it. Ends the process when it is
   malformed. */
void scene_read(struct scene *scene, struct message *message);

#endif
