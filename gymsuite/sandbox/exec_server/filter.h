/* System calls that a sandboxed command never needs, refused by a filter of our own. */
#ifndef GYMSUITE_FILTER_H
#define GYMSUITE_FILTER_H

/* Sets no_new_privs and the filter for this process and all that it starts. */
void filter_install(void);

#endif
