/* Landlock: rules from descriptors, never from paths. Which rights, for which kernel, is the planner's table. */
#include "launch.h"

void op_ruleset(void)
{
    char **word = launch.operand;
    struct landlock_ruleset_attr attr = {number(word[0]), number(word[1]), number(word[2])};
    /* A kernel that knows fewer fields answers E2BIG, so the size is the planner's choice too. */
    launch.ruleset = (int)must(sys(NR_landlock_create_ruleset, &attr, number(word[3]), 0));
}

void op_allow(void)
{
    struct landlock_path_beneath rule = {number(launch.operand[1]), slot_of(0)};
    if (rule.fd < 0)
        return;
    must(sys(NR_landlock_add_rule, launch.ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
}

void op_port(void)
{
    struct landlock_net_port rule = {number(launch.operand[1]), number(launch.operand[0])};
    must(sys(NR_landlock_add_rule, launch.ruleset, LANDLOCK_RULE_NET_PORT, &rule, 0));
}

void op_restrict(void)
{
    must(sys(NR_landlock_restrict_self, launch.ruleset, 0));
    sys(NR_close, launch.ruleset);
}

/* A ruleset is made of what lies at the places, not of their names, and may be entered by any number of processes. */
void op_hand(void)
{
    char byte = 0;
    struct iovec piece = {&byte, 1};
    struct one_descriptor ours = {.level = SOL_SOCKET, .type = SCM_RIGHTS, .fd = launch.ruleset};
    ours.bytes = offsetof(struct one_descriptor, fd) + sizeof ours.fd;
    struct msghdr message = {.pieces = &piece, .count = 1, .control = &ours, .control_bytes = sizeof ours};
    if (launch.ruleset < 0)
        refuse(EBADF);
    must(sys(NR_sendmsg, 1, &message, MSG_NOSIGNAL));
    sys(NR_close, launch.ruleset);
    launch.ruleset = -1;
}

void op_rules(void)
{
    launch.ruleset = slot_of(0);
}
