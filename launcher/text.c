/* Words, numbers and small files: what a libc would give us. */
#include "launch.h"

/* gcc and clang may call these two on their own account, also when freestanding. */
void *memcpy(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;
    while (n--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    char *t = to;
    while (n--)
        *t++ = (char)byte;
    return to;
}

size_t length(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

int equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

char *put(char *end, const char *text)
{
    while (*text)
        *end++ = *text++;
    *end = 0;
    return end;
}

char *put_number(char *end, u64 value)
{
    char digits[21];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *end++ = digits[--n];
    *end = 0;
    return end;
}

long read_file(const char *path, char *into, size_t size)
{
    long fd = sys(NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    long got = sys(NR_read, fd, into, size - 1);
    sys(NR_close, fd);
    if (got >= 0)
        into[got] = 0;
    return got;
}

long write_file(const char *path, const char *text)
{
    long fd = sys(NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    long put_out = sys(NR_write, fd, text, length(text));
    sys(NR_close, fd);
    return put_out < 0 ? put_out : 0;
}

void say(int fd, const char *text)
{
    sys(NR_write, fd, text, length(text));
}

/* Words of a plan may hold anything, and this goes to somebody's terminal. */
void say_escaped(int fd, const char *text)
{
    char buffer[256], *end = buffer;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (end - buffer > 240) {
            *end = 0;
            say(fd, buffer);
            end = buffer;
        }
        if (byte >= 0x20 && byte < 0x7f) {
            *end++ = (char)byte;
        } else {
            *end++ = '\\';
            *end++ = 'x';
            *end++ = "0123456789abcdef"[byte >> 4];
            *end++ = "0123456789abcdef"[byte & 15];
        }
    }
    *end = 0;
    say(fd, buffer);
}

_Noreturn void leave(int code)
{
    for (;;)
        sys(NR_exit_group, code);
}
