/* System calls that a sandboxed command never needs, refused by a filter of our own. */
#ifndef GYMSUITE_FILTER_H
#define GYMSUITE_FILTER_H

/* Sets no_new_privs and the filter for this process and all that it starts. Returns where those wait who want a socket
   of the family netlink, or -1 where all may have one. */
int filter_install(void);

/* Lets every change of an owner succeed without effect, for builds of images, in which all files have one. */
void filter_owners(void);

#endif
