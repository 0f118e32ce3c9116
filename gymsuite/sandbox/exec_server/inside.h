/* A sandbox's first process: in namespaces of its own it makes the file system, enters it, and becomes the exec server. */
#ifndef GYMSUITE_INSIDE_H
#define GYMSUITE_INSIDE_H

#include <sys/types.h>

#include "scene.h"

#define ROOT "root" /* on the stage: where the sandbox's root directory is made */

enum { DEVICES = 6 };

/* Mounts that are nowhere yet, as descriptors, and that of the process that started this one. `empty` has one for each
   mask that is not closed. */
struct pieces {
    int starter, program, shared, scratch, devices[DEVICES], empty[MAX_PIECES];
};

const char *device_path(int number);

/* Returns the process, and 0 in it. */
pid_t inside_clone(const struct scene *scene);

/* The current directory is the stage. */
_Noreturn void inside_run(const struct scene *scene, const struct pieces *pieces);

#endif
