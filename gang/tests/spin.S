/* A guest of two cores that are always busy: loaded by QEMU as a Multiboot kernel, it wakes the other core and both
 * jump in place. The cores' interrupt controllers are as in Intel's manual, volume 3, "Advanced programmable
 * interrupt controller": what is written to 0xfee00300 goes to all but the one that writes. */
    .code32
    .globl _start
    .align 4
    .long 0x1badb002, 0, -0x1badb002            /* Multiboot's header */
_start:
    movw $0xfeeb, 0x8000                        /* jmp to itself, where the other core begins */
    movl $0xc4500, 0xfee00300                   /* INIT */
    movl $100000, %ecx
1:  loop 1b
    movl $0xc4608, 0xfee00300                   /* begin at 0x8000 */
2:  jmp 2b
