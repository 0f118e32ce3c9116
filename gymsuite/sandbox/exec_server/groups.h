/* The cgroups of sandboxes: one directory in each hierarchy, numbered. */
#ifndef GYMSUITE_GROUPS_H
#define GYMSUITE_GROUPS_H

#include <stdbool.h>

enum { MAX_HIERARCHIES = 8 };

/* `bases` are the keeper's own directories, one for each hierarchy; the sandboxes' lie in them. */
struct groups {
    const char *bases[MAX_HIERARCHIES];
    int count;
};

void groups_divide(const char *base); /* of version 2: lets the cgroups below it have limits */
bool groups_make(const struct groups *groups, int number);
bool groups_set(const struct groups *groups, int number, int hierarchy, const char *file, const char *value);
bool groups_join(const struct groups *groups, int number); /* for the caller */
int groups_open(const struct groups *groups, int number, int hierarchy, const char *file);
void groups_remove(const struct groups *groups, int number);

#endif
