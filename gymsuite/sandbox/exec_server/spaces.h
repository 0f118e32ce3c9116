/* The mount namespaces of a keeper. It lives in one that only it sees, with what it keeps on STAGE. */
#ifndef GYMSUITE_SPACES_H
#define GYMSUITE_SPACES_H

#define STAGE "/tmp" /* what the keeper keeps is mounted there, and what a sandbox is made of is shown there */
#define PROGRAM "exec-server" /* its name there */
#define UPPER STAGE "/upper" /* in the mount namespace of a sandbox's process: what the sandbox writes */

/* `own` is the keeper's. `outside` is as the machine's, and sees what is mounted there later. `bare` has next to nothing, and
   none of the machine's files: in a copy of it each sandbox is made. */
struct spaces {
    int own, outside, bare;
};

struct spaces spaces_make(void);

#endif
