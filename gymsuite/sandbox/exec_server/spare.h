/* Children that wait in their cgroups to become a sandbox's process: to get there takes a while, and can be done ahead. */
#ifndef GYMSUITE_SPARE_H
#define GYMSUITE_SPARE_H

#include "boxes.h"

/* For a sandbox whose cgroups are there, by their number. */
bool spare_fork(const struct keeper *keeper, struct spare *spare, int number);

/* Sees to it that the keeper has one, with cgroups that nobody has yet. */
void spare_prepare(struct keeper *keeper);

#endif
