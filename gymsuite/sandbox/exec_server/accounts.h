/* The sandbox's own users, from its /etc/passwd and /etc/group, which may hold anything. */
#ifndef GYMSUITE_ACCOUNTS_H
#define GYMSUITE_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAX_GROUPS = 64 };

/* Who a command is; without `changes`, whoever the server is. */
struct identity {
    bool changes;
    uid_t uid;
    gid_t gid;
    uint32_t group_count;
    gid_t groups[MAX_GROUPS];
};

/* Resolves NAME, ID, NAME:GROUP or ID:GROUP. Returns NULL, or what is wrong, to be read by a person. */
const char *account_find(const char *user, struct identity *identity);

#endif
