/* Sockets of the family netlink: what the kernel keeps for one that nobody reads is in no limit of memory. */
#ifndef GYMSUITE_NETLINK_H
#define GYMSUITE_NETLINK_H

/* Decides on a command that waits for such a socket: it gets one as long as the sandbox has few. `listener` is the
   filter's. */
void netlink_serve(int listener);

#endif
