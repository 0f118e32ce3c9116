/* A sandbox's process before it is one: it joins its cgroups, waits to be told what to become, and becomes it. */
#ifndef GYMSUITE_STAGE_H
#define GYMSUITE_STAGE_H

#include <sys/types.h>

#include "groups.h"
#include "spaces.h"

struct actor {
    int socket; /* where it is told */
    struct spaces spaces;
    int number; /* of its cgroups */
    uid_t uid;
    gid_t gid;
    const struct groups *groups;
};

_Noreturn void stage_act(struct actor actor);

#endif
