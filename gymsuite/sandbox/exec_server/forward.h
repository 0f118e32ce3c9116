/* A listener inside a sandbox, whose connections all lead to one unix socket. */
#ifndef GYMSUITE_FORWARD_H
#define GYMSUITE_FORWARD_H

/* Listens on 127.0.0.1 at a port, says "ready", and forwards until it is killed. */
_Noreturn void forward(int argc, char **argv);

#endif
