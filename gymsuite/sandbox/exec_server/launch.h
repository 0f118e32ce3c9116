/* Started by root, a sandbox must belong to nobody in particular: the host's side of that. */
#ifndef GYMSUITE_LAUNCH_H
#define GYMSUITE_LAUNCH_H

/* launch --uid U --gid G [--bind SOURCE NAME]... -- PROGRAM ARGUMENT...
   Shows each SOURCE as /tmp/NAME in a mount namespace of its own, gives up every privilege, and
   becomes PROGRAM. */
_Noreturn void launch(int argc, char **argv);

#endif
