/* PID 1 of a jail: it reaps, passes signals on, tells the supervisor how the command ended, and takes the whole
 * namespace with it when it leaves. It holds nothing but two descriptors. */
#include "launch.h"

static void close_all_but(int a, int b)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    if (low)
        sys(NR_close_range, 0, low - 1, 0);
    if (high > low + 1)
        sys(NR_close_range, low + 1, high - 1, 0);
    sys(NR_close_range, high + 1, ~0u, 0);
}

void tell(struct report report)
{
    sys(NR_write, launch.control, &report, sizeof report);
}

static int stops, is_stopped;

/* Everything else in the namespace was started by the command or by what it started, and has been our child since its
 * parents ended: if we have none it is empty. The caller need not wait for us to be gone then, unless it has our control
 * group to remove. What there is otherwise goes with us. */
static void tell_end(int status)
{
    struct report report = {.kind = ENDED, .value = status};
    long pid;
    while ((pid = sys(NR_wait4, -1, 0, WNOHANG, 0)) > 0)
        ;
    report.error = pid == -ECHILD && !launch.is_grouped;
    sys(NR_getrusage, RUSAGE_CHILDREN, &report.usage);
    tell(report);
    leave(0);
}

/* Reap all that ended; the run is over when the command is among them. */
static void reap(int command)
{
    int status;
    long pid;
    while ((pid = sys(NR_wait4, -1, &status, WNOHANG | WUNTRACED | WCONTINUED, 0)) > 0) {
        if (pid != command)
            continue;
        if ((status & 0xff) == 0x7f) {
            is_stopped = 1;
            tell((struct report){.kind = STOPPED, .value = status, .error = ++stops});
        } else if (status == 0xffff) {
            is_stopped = 0;
            tell((struct report){.kind = CONTINUED, .value = status, .error = stops});
        } else {
            tell_end(status);
        }
    }
}

void op_init(void)
{
    if (launch.sharing || launch.control < 0)
        refuse(EINVAL); /* PID 1 of nothing */
    int signals = signals_descriptor(), command = (int)start_command(0);
    tell((struct report){.kind = launch.error ? FAILED : RUNNING, .value = launch.step, .error = launch.error});
    if (launch.error)
        leave(EXIT_REFUSED);
    if (launch.text)
        sys(NR_munmap, launch.text, launch.text_bytes);
    struct pollfd watched[2] = {{launch.control, POLLIN, 0}, {signals, POLLIN, 0}};
    close_all_but(launch.control, signals);
    for (;;) {
        sys(NR_ppoll, watched, 2, 0, 0, 8);
        if (watched[1].revents) {
            struct signalfd_siginfo info;
            while (sys(NR_read, signals, &info, sizeof info) > 0)
                ;
            reap(command);
        }
        if (watched[0].revents) {
            struct order order;
            if (sys(NR_read, launch.control, &order, sizeof order) != sizeof order)
                leave(EXIT_REFUSED); /* the supervisor is gone */
            reap(command);
            if (!order.stop || (is_stopped && order.stop == stops))
                sys(NR_kill, command, order.signal);
        }
    }
}
