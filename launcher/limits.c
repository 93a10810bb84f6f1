/* Limits: the kernel's, lowered and never raised, of each process or of a control group, and the sum of what a tree
 * keeps resident. */
#include "launch.h"

void op_rlimit(void)
{
    u64 resource = number(launch.operand[0]), value = number(launch.operand[1]);
    struct rlimit now;
    must(sys(NR_prlimit64, 0, resource, 0, &now));
    struct rlimit lower = {now.soft < value ? now.soft : value, now.hard < value ? now.hard : value};
    must(sys(NR_prlimit64, 0, resource, &lower, 0));
}

void op_deadline(void)
{
    launch.deadline = now_ms() + number(launch.operand[0]);
}

void op_memory(void)
{
    launch.memory = number(launch.operand[0]);
}

void op_oom(void)
{
    must(write_file("/proc/self/oom_score_adj", launch.operand[0]));
}

/* Into the control group that counts this run, before anything of the command is there: what it starts is born in it.
 * The supervisor stays outside, or it would go down with the run when the kernel ends the whole group. */
void op_group(void)
{
    must(sys(NR_write, slot_of(0), "0", 1));
    launch.is_grouped = 1;
}

u64 now_ms(void)
{
    struct timespec now;
    sys(NR_clock_gettime, CLOCK_MONOTONIC, &now);
    return (u64)now.sec * 1000 + (u64)now.nsec / 1000000;
}
