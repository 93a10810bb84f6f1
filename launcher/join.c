/* Joining a jail that is there already. A process cannot move into a PID namespace, only its children are born there: so
 * one goes in and supervises from inside, where it is the reaper of what its command starts, and we follow it. */
#include "supervisor.h"

enum { PATIENCE = 1000 };

/* Another command of the jail may stop it, or the command that it is about to start, and then nobody there watches the
 * clock and the caller. Out here nobody inside reaches us. */
static _Noreturn void end_for_it(int inside, enum cause cause)
{
    sys(NR_kill, inside, SIGKILL);
    sys(NR_wait4, inside, 0, 0, 0);
    run.wait_status = SIGKILL;
    run.leaves_rest = 1;
    finish(cause);
}

/* It has our status descriptor and watches the clock and our caller itself; we pass signals on, end as it does, and for
 * it if it does not. */
static _Noreturn void follow(int inside)
{
    int status = 0;
    u64 over = 0;
    struct signalfd_siginfo info;
    long self = sys(NR_getpid);
    keep_only_ours();
    int signals = signals_descriptor();
    struct pollfd watched[] = {
        {signals, POLLIN, 0}, {launch.life, POLLIN, 0}, {launch.status, POLLIN | POLLRDHUP, 0}};
    for (;;) {
        long changed = sys(NR_wait4, inside, &status, WNOHANG | WUNTRACED, 0);
        if (changed && (status & 0xff) != 0x7f)
            break;
        if (changed)
            end_for_it(inside, BY_ITSELF);
        u64 now = now_ms(), until = over ? over : launch.deadline ? launch.deadline + PATIENCE : 0;
        if (until && now >= until)
            end_for_it(inside, over ? BY_ITSELF : OVER_DEADLINE);
        u64 ms = until ? until - now : 0;
        struct timespec wait = {(s64)(ms / 1000), (s64)(ms % 1000 * 1000000)};
        sys(NR_ppoll, watched, 3, until ? &wait : 0, 0, 8);
        if (watched[1].revents || watched[2].revents) {
            over = now_ms() + PATIENCE;
            watched[1].fd = watched[2].fd = -1;
            watched[1].revents = watched[2].revents = 0;
        }
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
