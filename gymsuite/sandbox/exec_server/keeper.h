/* Holds what all sandboxes of one owner write, in a mount namespace of its own, and starts and ends them. */
#ifndef GYMSUITE_KEEPER_H
#define GYMSUITE_KEEPER_H

/* Arguments: OWNER-PID UID GID [CGROUP-DIRECTORY]... */
_Noreturn void keep(int argc, char **argv);

#endif
