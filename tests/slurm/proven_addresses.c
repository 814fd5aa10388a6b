/* Addresses that may be anything: what is Slurm's is recognised, and nothing else ends the process. Slurm's own allocations are
 * imitated, so that none of its libraries is needed. */
#define _GNU_SOURCE
#include "proven.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define CHECK(what)                                                                                                 \
    do {                                                                                                            \
        if (!(what)) {                                                                                              \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what);                                        \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

enum { MAGIC = 0x42, PAGE = 4096, NUMBERS = 20000 };

void *slurm_xcalloc(size_t count, size_t size, bool clear, bool try, const char *file, int line, const char *function)
{
    (void)clear, (void)try, (void)file, (void)line, (void)function;
    size_t *head = calloc(1, count * size + 2 * sizeof *head);
    head[0] = MAGIC;
    head[1] = count * size;
    return head + 2;
}

void slurm_xfree(void **item)
{
    if (*item)
        free((size_t *)*item - 2);
    *item = NULL;
}

bitstr_t *bit_alloc(bitoff_t bits)
{
    bitstr_t *map = xcalloc((size_t)(bits + 63) / 64 + 2, sizeof *map);
    map[0] = 0x42434445;
    map[1] = bits;
    return map;
}

bitoff_t bit_size(bitstr_t *map)
{
    return map[1];
}

void slurm_bit_free(bitstr_t **map)
{
    xfree(*map);
}

list_t *list_create(ListDelF free_one)
{
    (void)free_one;
    uint32_t *list = xmalloc(100);
    *list = 0xdeadbeef;
    return (list_t *)list;
}

void list_destroy(list_t *list)
{
    xfree(list);
}

static bool is_forbidden;

/* In place of the C library's. */
ssize_t process_vm_readv(pid_t process, const struct iovec *to, unsigned long to_count, const struct iovec *from,
                         unsigned long from_count, unsigned long flags)
{
    (void)process, (void)to_count, (void)from_count, (void)flags;
    ssize_t (*real)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long, unsigned long) =
        dlsym(RTLD_NEXT, "process_vm_readv");
    if (!is_forbidden)
        return real(process, to, to_count, from, from_count, flags);
    errno = EPERM;
    return -1;
}

static bool is_anything(const void *address)
{
    return proven_size(address) || proven_record(address, 100) || proven_text(address) || proven_map(address) ||
           proven_list(address);
}

static void test_what_is_there(void)
{
    char *text = xmalloc(6), *endless = xmalloc(600);
    memcpy(text, "hello", 6);
    memset(endless, 'x', 600);
    bitstr_t *map = bit_alloc(130), *other = bit_alloc(130);
    other[1] = 1300;
    list_t *list = list_create(NULL);
    CHECK(proven_size(text) == 6 && proven_record(text, 6) && !proven_record(text, 7));
    CHECK(proven_text(text) && !proven_text(endless) && !proven_map((bitstr_t *)text) && !proven_list((list_t *)text));
    endless[599] = '\0';
    CHECK(proven_text(endless));
    CHECK(proven_map(map) && !proven_map(other) && !proven_list((list_t *)map) && proven_list(list));
    CHECK(proven_text(NULL) && proven_map(NULL) && proven_list(NULL) && !proven_size(NULL));
    xfree(text);
    xfree(endless);
    xfree(map);
    xfree(other);
    xfree(list);
}

static void test_what_is_not_there(void)
{
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && !mprotect(pages + PAGE, PAGE, PROT_NONE) && !munmap(pages + 2 * PAGE, PAGE));
    /* A head that says more than there is. */
    size_t *head = (size_t *)(pages + PAGE) - 3;
    head[0] = MAGIC;
    head[1] = 100;
    CHECK(!is_anything(head + 2));
    head[1] = SIZE_MAX - 4;
    CHECK(!is_anything(head + 2));
    for (int at = 1; at < 40; at++) {
        CHECK(!is_anything((void *)(uintptr_t)at) && !is_anything((void *)(UINTPTR_MAX - (uintptr_t)at)));
        CHECK(!is_anything(pages + PAGE + at) && !is_anything(pages + 2 * PAGE + at));
    }
    for (int number = 0; number < NUMBERS; number++) {
        uint64_t drawn = ((uint64_t)random() << 42) ^ ((uint64_t)random() << 21) ^ (uint64_t)random();
        CHECK(!is_anything((void *)drawn) && !is_anything((void *)(drawn % (UINT64_C(1) << 47))));
    }
    munmap(pages, 2 * PAGE);
}

int main(void)
{
    for (int pass = 0; pass < 2; pass++, is_forbidden = true) {
        test_what_is_there();
        test_what_is_not_there();
    }
    return 0;
}
