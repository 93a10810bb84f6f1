/* Joining a jail that is there already. A process cannot move into a PID namespace, only its children are born there: so
 * one goes in and supervises from inside, where it is the reaper of what its command starts, and we follow it. */
#include "supervisor.h"

/* It has our status descriptor and watches our caller itself; we pass signals on, and end as it does. */
static _Noreturn void follow(int inside)
{
    int signals = signals_descriptor(), status = 0;
    struct signalfd_siginfo info;
    struct pollfd watched = {signals, POLLIN, 0};
    long self = sys(NR_getpid);
    sys(NR_close_range, 0, signals - 1, 0);
    sys(NR_close_range, signals + 1, ~0u, 0);
    for (;;) {
        long changed = sys(NR_wait4, inside, &status, WNOHANG | WUNTRACED, 0);
        if (changed && (status & 0xff) != 0x7f)
            break;
        if (changed) /* by another command of the jail: nobody else would watch the clock and the caller now */
            sys(NR_kill, inside, SIGKILL);
        sys(NR_ppoll, &watched, 1, 0, 0, 8);
        while (sys(NR_read, signals, &info, sizeof info) == sizeof info)
            if (info.signo != SIGCHLD && info.code <= 0)
                sys(NR_kill, inside, info.signo);
    }
    if (status & 0x7f)
        sys(NR_kill, self, SIGKILL); /* the jail was ended from outside, and took it along */
    leave(status >> 8 & 0xff);
}

void op_join(void)
{
    check_first_keeper();
    long inside = must(sys(NR_clone, SIGCHLD, 0));
    if (inside)
        follow((int)inside);
    must(sys(NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    run.leaves_rest = 1;
    supervise_command(0);
}
