/* Privileges: none to keep, none to gain. */
#include "launch.h"

void op_nonewprivs(void)
{
    must(sys(NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

/* The bounding set can be emptied only by who may (CAP_SETPCAP). Who may not has no capability to lose there:
 * with no_new_privs set nothing can be gained through it either. */
static void empty_bounding_set(void)
{
    struct cap_header header = {CAP_VERSION_3, 0};
    struct cap_data held[2] = {{0}};
    must(sys(NR_capget, &header, held));
    if (!(held[0].effective & (1u << CAP_SETPCAP)))
        return;
    for (int cap = 0; cap < 64; cap++) {
        long dropped = sys(NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
        if (dropped == -EINVAL)
            break; /* past the last one this kernel knows */
        must(dropped);
    }
}

/* Groups first: once the user is another one it may not. */
void op_become(void)
{
    u64 uid = number(launch.operand[0]), gid = number(launch.operand[1]);
    empty_bounding_set();
    must(sys(NR_setgroups, 0, 0));
    must(sys(NR_setresgid, gid, gid, gid));
    must(sys(NR_setresuid, uid, uid, uid));
}

void op_nocaps(void)
{
    struct cap_header header = {CAP_VERSION_3, 0};
    struct cap_data none[2] = {{0}};
    empty_bounding_set();
    must(sys(NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    must(sys(NR_capset, &header, none));
}

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The filter comes as data: 8 bytes an instruction. It is decoded over its own text, which is ours to change. */
void op_seccomp(void)
{
    char *text = launch.operand[0];
    size_t digits = length(text);
    struct sock_fprog program = {(u16)(digits / 16), text};
    if (!digits || digits % 16 || digits / 16 > 4096)
        refuse(EINVAL);
    for (size_t i = 0; i < digits; i += 2) {
        int high = hex(text[i]), low = hex(text[i + 1]);
        if (high < 0 || low < 0)
            refuse(EINVAL);
        text[i / 2] = (char)(high << 4 | low);
    }
    must(sys(NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}
