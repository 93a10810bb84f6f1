/* Environment, for commands that somebody else spawns through us: drop by pattern, the last match decides. */
#include "launch.h"

/* `*` is any run of characters, `\` takes the next one as it is; the name ends at `=`. */
static int matches(const char *pattern, const char *name)
{
    const char *star = 0, *resume = 0;
    while (*name && *name != '=') {
        const char *literal = *pattern == '\\' ? pattern + 1 : pattern;
        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
        } else if (*literal && *literal == *name) {
            pattern = literal + 1;
            name++;
        } else if (star) {
            pattern = star;
            name = ++resume;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

enum { RULES = 512 };
static struct {
    const char *pattern;
    int keep;
} rules[RULES];
static int count;

static void add_rule(int keep)
{
    if (count == RULES)
        refuse(E2BIG);
    rules[count].pattern = launch.operand[0];
    rules[count++].keep = keep;
}

void op_unset(void)
{
    add_rule(0);
}

void op_retain(void)
{
    add_rule(1);
}

static int is_kept(const char *variable)
{
    for (int i = count; i-- > 0;)
        if (matches(rules[i].pattern, variable))
            return rules[i].keep;
    return 1;
}

void filter_environment(void)
{
    char **to = launch.env;
    for (char **from = launch.env; *from; from++)
        if (is_kept(*from))
            *to++ = *from;
    *to = 0;
}
