/* A sandbox's process before it is one: it joins its cgroups, waits to be told what to become, and becomes it. */
#ifndef GYMSUITE_STAGE_H
#define GYMSUITE_STAGE_H

#include <sys/types.h>

#include "groups.h"

#define STAGE "/tmp" /* what the keeper keeps is mounted there, and what a sandbox is made of is shown there */

struct actor {
    int socket, outside; /* where it is told; the mount namespace in which the machine's own paths are seen */
    int number;          /* of its cgroups */
    uid_t uid;
    gid_t gid;
    const struct groups *groups;
};

_Noreturn void stage_act(struct actor actor);

#endif
