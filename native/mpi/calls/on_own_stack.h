/* Lets a watched call leave on the program's stack exactly what it leaves there without the library.
 *
 * A faulty program may read memory that it never wrote, and work by luck with what the last call left
 * there (ScaLAPACK's pdgerfs does). So a wrapper runs on a stack of its own, and MPI at the depth where
 * the program called:
 *
 *     MPI_X             what the program calls: goes on to PMPI_X if watching is off, else to the wrapper on its own
 *                       stack; inside another call the wrapper runs where it is, and checks if that call still runs
 *     topolane_MPI_X    the wrapper in C, written as MPI_X
 *     topolane_PMPI_X   what the wrapper calls as PMPI_X: goes back to the program's stack, then to PMPI_X
 *
 * A debugger in PMPI_X sees MPI_X and the program above it. On other processors, and without memory for
 * the stack, the wrapper runs on the program's stack. Included by calls/ only. */
#ifndef TOPOLANE_ON_OWN_STACK_H
#define TOPOLANE_ON_OWN_STACK_H

#include "../stack.h"

_Static_assert(sizeof(StackTop) == 80 && offsetof(StackTop, bytes) == 72, "the assembler below has these");

/* The number of arguments inside the parentheses that follow. */
#define NUMBER_OF(...) NUMBER_AT_14(__VA_ARGS__, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define NUMBER_AT_14(a, b, c, d, e, f, g, h, i, j, k, l, m, number, ...) number

#if defined __x86_64__ && !defined __ILP32__

#define ON_OWN_STACK(ours, mpis, arguments) ON_OWN_STACK_NAMED(ours, mpis, arguments)
#define ON_OWN_STACK_NAMED(ours, mpis, arguments)                       \
    extern __typeof__(ours) ours __asm__("topolane_" #ours);            \
    extern __typeof__(mpis) mpis __asm__("topolane_" #mpis);            \
    __asm__("topolane_on_own_stack " #ours ", " #mpis ", \"" #arguments "\"");

/* All arguments are integers or pointers: six in registers, the others above the return address. The offsets are those
 * of StackTop. The escapes tell a debugger and C++ where the program's frame is: at *(reg + 0) + 8, its return address at
 * reg + 8, its registers from reg + 16, where reg is rbp (6) in MPI_X and rbx (3) in topolane_PMPI_X. */
__asm__(
    ".hidden watching, inside, stack_top\n"
    ".macro topolane_saved_by register\n"
    ".cfi_escape 0x0f, 5, 0x70 + \\register, 0, 0x06, 0x23, 8\n"
    ".cfi_escape 0x10, 16, 2, 0x70 + \\register, 8\n"
    ".cfi_escape 0x10, 3, 2, 0x70 + \\register, 16\n"
    ".cfi_escape 0x10, 6, 2, 0x70 + \\register, 24\n"
    ".cfi_escape 0x10, 12, 2, 0x70 + \\register, 32\n"
    ".cfi_escape 0x10, 13, 2, 0x70 + \\register, 40\n"
    ".cfi_escape 0x10, 14, 2, 0x70 + \\register, 48\n"
    ".cfi_escape 0x10, 15, 2, 0x70 + \\register, 56\n"
    ".endm\n"

    ".macro topolane_on_own_stack ours, mpis, arguments\n"
    ".pushsection .text, \"ax\", @progbits\n"
    ".hidden topolane_\\ours, topolane_\\mpis\n"
    ".set topolane_words, (\\arguments) - 6\n"
    ".if topolane_words < 0\n"
    ".set topolane_words, 0\n"
    ".endif\n"

    ".globl \\ours\n"
    ".type \\ours, @function\n"
    ".p2align 4\n"
    "\\ours:\n"
    ".cfi_startproc\n"
    "endbr64\n"
    "cmpb $0, watching(%rip)\n"
    "je 8f\n"
    "movq inside@gottpoff(%rip), %rax\n"
    "cmpb $0, %fs:(%rax)\n"
    "jne 7f\n"
    "movq stack_top@gottpoff(%rip), %rax\n"
    "movq %fs:(%rax), %rax\n"
    "testq %rax, %rax\n"
    "je topolane_\\ours\n"
    "cmpq $0, (%rax)\n"
    "jne topolane_\\ours\n"
    "movq (%rsp), %r11\n"
    "movq %rsp, (%rax)\n"
    "movq %r11, 8(%rax)\n"
    "movq %rbx, 16(%rax)\n"
    "movq %rbp, 24(%rax)\n"
    "movq %r12, 32(%rax)\n"
    "movq %r13, 40(%rax)\n"
    "movq %r14, 48(%rax)\n"
    "movq %r15, 56(%rax)\n"
    "movq %rsp, %r11\n"
    "movq %rax, %rbp\n"
    ".cfi_remember_state\n"
    "topolane_saved_by 6\n"
    "leaq -8 * (topolane_words & 1)(%rbp), %rsp\n"
    ".set topolane_word, topolane_words\n"
    ".rept topolane_words\n"
    "pushq 8 * topolane_word(%r11)\n"
    ".set topolane_word, topolane_word - 1\n"
    ".endr\n"
    "call topolane_\\ours\n"
    "movq %rbp, %rcx\n"
    "movq (%rcx), %rsp\n"
    "movq 8(%rcx), %r11\n"
    "movq %r11, (%rsp)\n"
    "movq 24(%rcx), %rbp\n"
    ".cfi_restore_state\n"
    "movq $0, (%rcx)\n"
    "ret\n"
    "7: movq stack_top@gottpoff(%rip), %rax\n"    /* on our own stack the call is nested; otherwise the wrapper checks */
    "movq %fs:(%rax), %rax\n"
    "testq %rax, %rax\n"
    "je topolane_\\ours\n"
    "movq %rax, %r11\n"
    "subq %rsp, %r11\n"
    "cmpq 72(%rax), %r11\n"
    "jae topolane_\\ours\n"
    "8: jmp \\mpis@PLT\n"
    ".cfi_endproc\n"
    ".size \\ours, . - \\ours\n"

    ".type topolane_\\mpis, @function\n"
    ".p2align 4\n"
    "topolane_\\mpis:\n"
    ".cfi_startproc\n"
    "movq stack_top@gottpoff(%rip), %rax\n"
    "movq %fs:(%rax), %rax\n"
    "testq %rax, %rax\n"
    "je 8f\n"
    "movq %rax, %r11\n"
    "subq %rsp, %r11\n"
    "cmpq 72(%rax), %r11\n"    /* at least its size: the wrapper is not on our stack */
    "jae 8f\n"
    "pushq %rbx\n"
    ".cfi_adjust_cfa_offset 8\n"
    ".cfi_rel_offset rbx, 0\n"
    "movq %rsp, 64(%rax)\n"
    "movq %rax, %rbx\n"
    ".cfi_remember_state\n"
    "topolane_saved_by 3\n"
    "movq (%rbx), %r11\n"
    ".set topolane_word, 1\n"
    ".rept topolane_words\n"
    "movq 8 + 8 * topolane_word(%rsp), %r10\n"
    "movq %r10, 8 * topolane_word(%r11)\n"
    ".set topolane_word, topolane_word + 1\n"
    ".endr\n"
    "leaq 8(%r11), %rsp\n"
    "call \\mpis@PLT\n"
    "movq 64(%rbx), %rsp\n"
    ".cfi_restore_state\n"
    "popq %rbx\n"
    ".cfi_adjust_cfa_offset -8\n"
    ".cfi_restore rbx\n"
    "ret\n"
    "8: jmp \\mpis@PLT\n"
    ".cfi_endproc\n"
    ".size topolane_\\mpis, . - topolane_\\mpis\n"
    ".popsection\n"
    ".endm\n");

#else
#define ON_OWN_STACK(ours, mpis, arguments)
#endif

#endif
