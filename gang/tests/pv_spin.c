/* A paravirtual domain of Xen that needs no kernel. All its virtual processors compute for some milliseconds and sleep for 80,
 * or compute all the time if the first letter of their command line (`extra`) is b. Structures and numbers of calls
 * are those of Xen's public headers: xen.h, vcpu.h, sched.h, arch-x86/xen-x86_64.h, elfnote.h. */
typedef unsigned long u64;

enum { VCPU_INITIALISE = 0, VCPU_UP = 1, VCPU_RUNSTATE = 4, SCHED_POLL = 3 };
enum { MOST = 16, IN_KERNEL = 1 << 2, CODE = 0xe033, DATA = 0xe02b };

struct start_info {
    char magic[32];
    u64 pages, shared_info;
    u64 flags, store_mfn, store_channel, console_mfn, console_channel;
    u64 page_table, page_table_frames, frames, module, module_length;
    char command_line[1024];
};
struct runstate { int state; u64 since, time[4]; };
struct poll { void *ports; unsigned count; u64 timeout; };
/* struct vcpu_guest_context, by places of u64. */
enum { FLAGS = 64, RDI = 79, RIP = 81, CS = 82, RSP = 84, SS = 85, KERNEL_SS = 621, KERNEL_SP = 622, CR3 = 626, SIZE = 646 };

static u64 context[SIZE] __attribute__((aligned(16)));
static char stacks[MOST][512] __attribute__((aligned(16)));
static int busy;

/* Xen fills a page with its calls, 32 bytes for each. 24 is vcpu_op, 29 sched_op. */
#define CALL(number, first, second, third)                                                           \
    ({                                                                                               \
        long answer;                                                                                 \
        u64 one = (u64)(first), two = (u64)(second), three = (u64)(third);                           \
        asm volatile("call hypercalls + " #number " * 32"                                            \
                     : "=a"(answer), "+D"(one), "+S"(two), "+d"(three)                               \
                     :                                                                               \
                     : "memory", "rcx", "r8", "r9", "r10", "r11");                                   \
        answer;                                                                                      \
    })

static void compute(u64 vcpu)
{
    struct runstate now;
    struct poll sleep = {0, 0, 0};
    for (;;) {
        for (int i = 0; i < 3000000; i++)
            asm volatile("");
        if (!busy) {
            CALL(24, VCPU_RUNSTATE, vcpu, &now);
            sleep.timeout = now.since + 80000000;
            CALL(29, SCHED_POLL, &sleep, 0);
        }
    }
}

void begin(struct start_info *info)
{
    busy = info->command_line[0] == 'b';
    u64 cr3 = ((u64 *)info->frames)[info->page_table >> 12] << 12;
    for (u64 vcpu = 1; vcpu < MOST; vcpu++) {
        u64 stack = (u64)(stacks[vcpu] + 504);
        context[FLAGS] = IN_KERNEL;
        context[RDI] = vcpu;
        context[RIP] = (u64)compute;
        context[CS] = CODE;
        context[RSP] = context[KERNEL_SP] = stack;
        context[SS] = context[KERNEL_SS] = DATA;
        context[CR3] = cr3;
        if (CALL(24, VCPU_INITIALISE, vcpu, context))
            break;
        CALL(24, VCPU_UP, vcpu, 0);
    }
    compute(0);
}

asm(".globl _start\n"
    "_start: lea stacks + 504(%rip), %rsp\n mov %rsi, %rdi\n call begin\n"
    ".balign 4096\n hypercalls: .skip 4096\n"
    ".macro note type, content:vararg\n"
    ".long 4, 2f - 1f, \\type\n .asciz \"Xen\"\n 1: \\content\n 2: .balign 4\n .endm\n"
    ".pushsection .note.Xen, \"a\", @note\n"
    "note 6, .asciz \"spin\"\n note 5, .asciz \"xen-3.0\"\n note 8, .asciz \"generic\"\n"
    "note 1, .quad _start\n note 2, .quad hypercalls\n note 3, .quad 0\n"
    ".popsection\n");
