/* The server itself: one thread, one poll loop, PID 1 of a sandbox. */
#ifndef GYMSUITE_SERVE_H
#define GYMSUITE_SERVE_H

/* Arguments: how many processes a command may have, 0 for any number, and perhaps descriptors of the sandbox's
   cgroup: --memory-events FD for memory.events or memory.oom_control, --pids-events FD for pids.events.
   --memory BYTES is how much the sandbox may have: an eighth of it is for what commands wrote and nobody took yet. With
   --owners 1 all files have one owner, whatever a command says. */
_Noreturn void serve(int argc, char **argv);

#endif
