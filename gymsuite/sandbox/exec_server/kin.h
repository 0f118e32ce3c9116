/* Ends the processes below one, also those that lost their parent. */
#ifndef GYMSUITE_KIN_H
#define GYMSUITE_KIN_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills the child of a sandbox's process, which is PID 1 in it, so that its parent sees the end of all in it; where it has
   none, or with `force`, the parent. */
void kin_kill(pid_t parent, bool force);

/* Kills this process's children that are not known; says whether there were any. */
bool kin_kill_strays(bool (*known)(pid_t, void *), void *data);

#endif
