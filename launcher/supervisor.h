/* What the supervisor's two files share. */
#ifndef CORRAL_SUPERVISOR_H
#define CORRAL_SUPERVISOR_H

#include "launch.h"

enum cause { BY_ITSELF, OVER_DEADLINE, MEMORY_PASSED };

struct run {
    int child;        /* PID 1 of the jail, or the command; 0 once it is gone */
    int has_init;     /* it is PID 1 */
    int may_kill_all; /* kill(-1) reaches what is ours and nothing else */
    int leaves_rest;  /* what the command leaves running when it ends by itself is not ours to end */
    int is_told;      /* PID 1 tells how the command ended; if it does not, its own end is no answer */
    int is_empty;     /* PID 1 is all that is left, and on its way out */
    int wait_status;  /* of the command; -1: not known */
    int stop, stop_status; /* a stop that PID 1 told of and that is not mirrored yet */
    struct rusage usage;
};
extern struct run run;

void check_first_keeper(void);
void keep_only_ours(void);
void note_earlier_children(void);
_Noreturn void supervise_command(int may_kill_all);
void note_end(long pid, int status, const struct rusage *usage);
void end_tree(void);
_Noreturn void finish(enum cause cause);

#endif
