/* How a supervisor that is waiting is told of its next command: one datagram, and three descriptors. */
#ifndef GYMSUITE_ORDER_H
#define GYMSUITE_ORDER_H

#include "command.h"
#include "supervise.h"

/* A longer one, and one whose start is reported, is for a new supervisor, which has the server's memory before its eyes. */
bool order_fits(const struct command *command);

/* False when the supervisor is gone. */
bool order_send(int control, const struct command *command, struct ends ends);

/* Waits for it; the descriptors become 0 to 2. False when the server wants no more. */
bool order_receive(int control, struct command *command);

#endif
