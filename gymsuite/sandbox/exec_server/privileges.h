/* Capabilities: the server keeps what it needs to be another user and to kill, and its commands keep none. */
#ifndef GYMSUITE_PRIVILEGES_H
#define GYMSUITE_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

#include "accounts.h"

/* Another user, who may still make namespaces, also where a hardened machine lets no ordinary user do so. */
bool privileges_become(uid_t uid, gid_t gid);

/* Whether this process may make sandboxes where it is. */
bool privileges_suffice(void);

/* Before there is a server: leaves it what it takes to change users, or nothing. */
bool privileges_keep(bool several_users);

/* Gives up all others for good; called once. */
void privileges_reduce(void);
bool privileges_can_change_user(void);

/* Makes the server another user than its commands, as whose equal it could be limited or given up to them by the kernel.
   It goes on using files as it did. False where there is no other user. */
bool privileges_stand_apart(void);
/* In a supervisor: what is in /proc for it is its own user's. */
void privileges_use_own_files(void);

/* In the process that becomes a command: another user if need be, and no capability. -1 with an errno. */
int privileges_drop(const struct identity *identity);

#endif
