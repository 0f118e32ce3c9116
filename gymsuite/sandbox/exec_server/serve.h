/* The server itself: one thread, one poll loop, PID 1 of a sandbox. */
#ifndef GYMSUITE_SERVE_H
#define GYMSUITE_SERVE_H

#include <stdint.h>

/* `processes` bounds how many a command may have; 0 sets no bound. */
_Noreturn void serve(uint32_t processes);

#endif
