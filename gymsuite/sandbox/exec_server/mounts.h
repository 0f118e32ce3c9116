/* Mounts as descriptors: what the C library does not name everywhere. */
#ifndef GYMSUITE_MOUNTS_H
#define GYMSUITE_MOUNTS_H

enum { CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, TREE_CLONE = 1, FROM_FD = 0x4 };

#endif
