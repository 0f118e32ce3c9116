/* The sandboxes that a keeper holds: each is a control socket, a process, cgroups and a file system for what it writes. */
#ifndef GYMSUITE_BOXES_H
#define GYMSUITE_BOXES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "groups.h"
#include "message.h"
#include "spaces.h"

enum { KEY = 64, IDENTITY = 24 };

/* Why the end of a sandbox's process is waited for; all but WAIT bring it about. */
enum purpose { NONE, WAIT, STOP, END };

/* `request` is answered when its process has ended. */
struct box {
    struct box *next;
    int control, number;
    pid_t pid;
    int status;
    char key[KEY]; /* of what it had written when it was frozen, until it starts again */
    enum purpose purpose;
    char request[IDENTITY];
    int64_t since, killed;
    bool hung_up;
};

/* A child that waits to become a sandbox's process; `pid` is 0 where there is none. */
struct spare {
    pid_t pid;
    int socket, number;
};

struct keeper {
    int owner, main, signals, poll;
    struct spaces spaces;
    uid_t uid;
    gid_t gid;
    struct groups groups;
    struct box *boxes;
    struct spare spare;
    int numbers;
    bool stray; /* a process of a sandbox may be left whose parent is gone */
};

void box_open(struct keeper *keeper, int control);
void box_serve(struct keeper *keeper, struct box *box);
void boxes_reap(struct keeper *keeper);
void boxes_settle(struct keeper *keeper);
bool boxes_waiting(const struct keeper *keeper);
void boxes_end(struct keeper *keeper);
void kept_release(const char *key);

#endif
