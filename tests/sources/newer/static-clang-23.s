	.section	.rodata.cst8,"aM",@progbits,8
	.p2align	3, 0x0
.LCPI0_0:
	.quad	0x404ec00000000000
	.text
	.globl	main
	.p2align	4
	.type	main,@function
main:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%rbx
	pushq	%rax
	xorl	%r14d, %r14d
	movl	$2, %ebp
	movl	$1, %r15d
	.p2align	4
.LBB0_1:
	subl	$1, %ebp
	movl	$31, %ebx
	cmovbl	%r15d, %ebx
	leal	100(%r14), %edi
	callq	two
	leal	4(%r14), %edi
	callq	chunks
	callq	added
	movl	%ebx, %edi
	callq	last
	movl	%eax, values(%rip)
	incl	%r14d
	cmpl	$3, %r14d
	jne	.LBB0_1
	cmpl	$1083, iterations(%rip)
	leaq	.L.str.1(%rip), %rdi
	leaq	.L.str.2(%rip), %rax
	cmovneq	%rax, %rdi
	movsd	sum(%rip), %xmm0
	ucomisd	.LCPI0_0(%rip), %xmm0
	cmovneq	%rax, %rdi
	cmovpq	%rax, %rdi
	callq	puts@PLT
	movl	iterations(%rip), %esi
	leaq	.L.str.3(%rip), %rdi
	xorl	%eax, %eax
	callq	printf@PLT
	xorl	%eax, %eax
	addq	$8, %rsp
	popq	%rbx
	popq	%r14
	popq	%r15
	popq	%rbp
	retq
.Lfunc_end0:
	.size	main, .Lfunc_end0-main
	.p2align	4
	.type	two,@function
two:
	pushq	%rax
	movl	%edi, 4(%rsp)
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	two.omp_outlined(%rip), %rdx
	leaq	4(%rsp), %rcx
	movl	$1, %esi
	xorl	%eax, %eax
	callq	__kmpc_fork_call@PLT
	popq	%rax
	retq
.Lfunc_end1:
	.size	two, .Lfunc_end1-two
	.p2align	4
	.type	chunks,@function
chunks:
	pushq	%rax
	movl	$97, 4(%rsp)
	movl	%edi, %r8d
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	chunks.omp_outlined(%rip), %rdx
	leaq	4(%rsp), %rcx
	movl	$2, %esi
	xorl	%eax, %eax
	callq	__kmpc_fork_call@PLT
	popq	%rax
	retq
.Lfunc_end2:
	.size	chunks, .Lfunc_end2-chunks
	.p2align	4
	.type	added,@function
added:
	pushq	%rax
	movl	$41, 4(%rsp)
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	added.omp_outlined(%rip), %rdx
	leaq	4(%rsp), %rcx
	movl	$1, %esi
	xorl	%eax, %eax
	callq	__kmpc_fork_call@PLT
	popq	%rax
	retq
.Lfunc_end3:
	.size	added, .Lfunc_end3-added
	.p2align	4
	.type	last,@function
last:
	pushq	%rax
	movl	%edi, 4(%rsp)
	movl	$0, (%rsp)
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	last.omp_outlined(%rip), %rdx
	leaq	4(%rsp), %rcx
	movq	%rsp, %r8
	movl	$2, %esi
	xorl	%eax, %eax
	callq	__kmpc_fork_call@PLT
	movl	(%rsp), %eax
	popq	%rcx
	retq
.Lfunc_end4:
	.size	last, .Lfunc_end4-last
	.p2align	4
	.type	two.omp_outlined,@function
two.omp_outlined:
	pushq	%rbp
	pushq	%r14
	pushq	%rbx
	subq	$16, %rsp
	movq	%rdx, %r14
	movl	(%rdx), %ebp
	movl	(%rdi), %ebx
	testl	%ebp, %ebp
	jle	.LBB5_5
	decl	%ebp
	movl	$0, 4(%rsp)
	movl	%ebp, (%rsp)
	movl	$1, 12(%rsp)
	movl	$0, 8(%rsp)
	subq	$8, %rsp
	leaq	20(%rsp), %rax
	leaq	.L__unnamed_2(%rip), %rdi
	leaq	16(%rsp), %rcx
	leaq	12(%rsp), %r8
	leaq	8(%rsp), %r9
	movl	%ebx, %esi
	movl	$34, %edx
	pushq	$1
	pushq	$1
	pushq	%rax
	callq	__kmpc_for_static_init_4@PLT
	addq	$32, %rsp
	movl	(%rsp), %eax
	cmpl	%ebp, %eax
	cmovll	%eax, %ebp
	movl	%ebp, (%rsp)
	movl	4(%rsp), %eax
	cmpl	%ebp, %eax
	jg	.LBB5_4
	movslq	%eax, %rcx
	incl	%ebp
	leaq	values(%rip), %rdx
	leaq	(%rdx,%rcx,4), %rcx
	.p2align	4
.LBB5_3:
	movl	%eax, (%rcx)
	lock		incl	iterations(%rip)
	incl	%eax
	addq	$4, %rcx
	cmpl	%eax, %ebp
	jne	.LBB5_3
.LBB5_4:
	leaq	.L__unnamed_2(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_for_static_fini@PLT
.LBB5_5:
	leaq	.L__unnamed_3(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_barrier@PLT
	movl	(%r14), %r14d
	testl	%r14d, %r14d
	jle	.LBB5_10
	decl	%r14d
	movl	$0, 4(%rsp)
	movl	%r14d, (%rsp)
	movl	$1, 12(%rsp)
	movl	$0, 8(%rsp)
	subq	$8, %rsp
	leaq	20(%rsp), %rax
	leaq	.L__unnamed_2(%rip), %rdi
	leaq	16(%rsp), %rcx
	leaq	12(%rsp), %r8
	leaq	8(%rsp), %r9
	movl	%ebx, %esi
	movl	$34, %edx
	pushq	$1
	pushq	$1
	pushq	%rax
	callq	__kmpc_for_static_init_4@PLT
	addq	$32, %rsp
	movl	(%rsp), %eax
	cmpl	%r14d, %eax
	cmovll	%eax, %r14d
	movl	%r14d, (%rsp)
	movslq	4(%rsp), %rax
	cmpl	%r14d, %eax
	jg	.LBB5_9
	movl	%eax, %ecx
	shlq	$2, %rax
	subl	%ecx, %r14d
	incl	%r14d
	xorl	%ecx, %ecx
	leaq	values(%rip), %rdx
	.p2align	4
.LBB5_8:
	leaq	(%rax,%rcx,4), %rsi
	movl	(%rdx,%rsi), %edi
	leal	(%rdi,%rdi,2), %edi
	movl	%edi, (%rdx,%rsi)
	lock		incl	iterations(%rip)
	incq	%rcx
	cmpl	%ecx, %r14d
	jne	.LBB5_8
.LBB5_9:
	leaq	.L__unnamed_2(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_for_static_fini@PLT
.LBB5_10:
	addq	$16, %rsp
	popq	%rbx
	popq	%r14
	popq	%rbp
	retq
.Lfunc_end5:
	.size	two.omp_outlined, .Lfunc_end5-two.omp_outlined
	.p2align	4
	.type	chunks.omp_outlined,@function
chunks.omp_outlined:
	pushq	%rbp
	pushq	%rbx
	subq	$24, %rsp
	movl	(%rdx), %ebp
	testl	%ebp, %ebp
	jle	.LBB6_8
	movq	%rcx, %rax
	decl	%ebp
	movl	$0, 12(%rsp)
	movl	%ebp, 8(%rsp)
	movl	$1, 16(%rsp)
	movl	$0, 20(%rsp)
	movl	(%rdi), %ebx
	subq	$8, %rsp
	leaq	24(%rsp), %r10
	leaq	.L__unnamed_2(%rip), %rdi
	leaq	28(%rsp), %rcx
	leaq	20(%rsp), %r8
	leaq	16(%rsp), %r9
	movl	%ebx, %esi
	movl	$33, %edx
	pushq	%rax
	pushq	$1
	pushq	%r10
	callq	__kmpc_for_static_init_4@PLT
	addq	$32, %rsp
	movl	8(%rsp), %eax
	movslq	12(%rsp), %rcx
	cmpl	%ebp, %eax
	cmovgel	%ebp, %eax
	cmpl	%eax, %ecx
	jg	.LBB6_7
	movslq	16(%rsp), %rdx
	leaq	values(%rip), %rsi
	leaq	(%rsi,%rcx,4), %rsi
	leaq	(,%rdx,4), %rdi
	.p2align	4
.LBB6_3:
	movslq	%eax, %r8
	movq	$-1, %r9
	.p2align	4
.LBB6_4:
	incl	4(%rsi,%r9,4)
	lock		incl	iterations(%rip)
	leaq	(%rcx,%r9), %r10
	incq	%r10
	incq	%r9
	cmpq	%r8, %r10
	jl	.LBB6_4
	addq	%rdx, %rcx
	addl	%edx, %eax
	cmpl	%ebp, %eax
	cmovgel	%ebp, %eax
	addq	%rdi, %rsi
	cmpl	%ecx, %eax
	jge	.LBB6_3
	movl	%ecx, 12(%rsp)
.LBB6_7:
	movl	%eax, 8(%rsp)
	leaq	.L__unnamed_2(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_for_static_fini@PLT
.LBB6_8:
	addq	$24, %rsp
	popq	%rbx
	popq	%rbp
	retq
.Lfunc_end6:
	.size	chunks.omp_outlined, .Lfunc_end6-chunks.omp_outlined
	.section	.rodata.cst8,"aM",@progbits,8
	.p2align	3, 0x0
.LCPI7_0:
	.quad	0x3fe0000000000000
	.text
	.p2align	4
	.type	added.omp_outlined,@function
added.omp_outlined:
	pushq	%rbp
	pushq	%rbx
	subq	$24, %rsp
	movl	(%rdx), %ebp
	testl	%ebp, %ebp
	jle	.LBB7_7
	decl	%ebp
	movl	$0, 12(%rsp)
	movl	%ebp, 8(%rsp)
	movl	$1, 20(%rsp)
	movl	$0, 16(%rsp)
	movl	(%rdi), %ebx
	subq	$8, %rsp
	leaq	28(%rsp), %rax
	leaq	.L__unnamed_2(%rip), %rdi
	leaq	24(%rsp), %rcx
	leaq	20(%rsp), %r8
	leaq	16(%rsp), %r9
	movl	%ebx, %esi
	movl	$34, %edx
	pushq	$1
	pushq	$1
	pushq	%rax
	callq	__kmpc_for_static_init_4@PLT
	addq	$32, %rsp
	movl	8(%rsp), %eax
	cmpl	%ebp, %eax
	cmovll	%eax, %ebp
	movl	%ebp, 8(%rsp)
	movl	12(%rsp), %ecx
	cmpl	%ebp, %ecx
	jg	.LBB7_6
	movsd	.LCPI7_0(%rip), %xmm0
	.p2align	4
.LBB7_3:
	movq	sum(%rip), %xmm1
	.p2align	4
.LBB7_4:
	movq	%xmm1, %rax
	addsd	%xmm0, %xmm1
	movq	%xmm1, %rdx
	lock		cmpxchgq	%rdx, sum(%rip)
	movq	%rax, %xmm1
	jne	.LBB7_4
	lock		incl	iterations(%rip)
	cmpl	%ebp, %ecx
	leal	1(%rcx), %eax
	movl	%eax, %ecx
	jne	.LBB7_3
.LBB7_6:
	leaq	.L__unnamed_2(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_for_static_fini@PLT
.LBB7_7:
	addq	$24, %rsp
	popq	%rbx
	popq	%rbp
	retq
.Lfunc_end7:
	.size	added.omp_outlined, .Lfunc_end7-added.omp_outlined
	.p2align	4
	.type	last.omp_outlined,@function
last.omp_outlined:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%rbx
	subq	$24, %rsp
	movl	(%rdx), %r14d
	testl	%r14d, %r14d
	jle	.LBB8_6
	movq	%rcx, %rbx
	decl	%r14d
	movl	$0, 16(%rsp)
	movl	%r14d, 8(%rsp)
	movl	$1, 20(%rsp)
	movl	$0, 12(%rsp)
	movl	(%rdi), %ebp
	subq	$8, %rsp
	leaq	28(%rsp), %rax
	leaq	.L__unnamed_2(%rip), %rdi
	leaq	20(%rsp), %rcx
	leaq	24(%rsp), %r8
	leaq	16(%rsp), %r9
	movl	%ebp, %esi
	movl	$34, %edx
	pushq	$1
	pushq	$1
	pushq	%rax
	callq	__kmpc_for_static_init_4@PLT
	addq	$32, %rsp
	movl	8(%rsp), %eax
	cmpl	%r14d, %eax
	cmovll	%eax, %r14d
	movl	%r14d, 8(%rsp)
	movslq	16(%rsp), %rax
	cmpl	%r14d, %eax
	jg	.LBB8_4
	movl	%eax, %ecx
	shlq	$2, %rax
	subl	%ecx, %r14d
	incl	%r14d
	xorl	%ecx, %ecx
	leaq	values(%rip), %rdx
	.p2align	4
.LBB8_3:
	leaq	(%rax,%rcx,4), %rsi
	movl	(%rdx,%rsi), %r15d
	lock		incl	iterations(%rip)
	incq	%rcx
	cmpl	%ecx, %r14d
	jne	.LBB8_3
.LBB8_4:
	leaq	.L__unnamed_2(%rip), %rdi
	movl	%ebp, %esi
	callq	__kmpc_for_static_fini@PLT
	cmpl	$0, 12(%rsp)
	je	.LBB8_6
	movl	%r15d, (%rbx)
.LBB8_6:
	addq	$24, %rsp
	popq	%rbx
	popq	%r14
	popq	%r15
	popq	%rbp
	retq
.Lfunc_end8:
	.size	last.omp_outlined, .Lfunc_end8-last.omp_outlined
	.type	values,@object
	.local	values
	.comm	values,800,16
	.type	sum,@object
	.local	sum
	.comm	sum,8,8
	.type	iterations,@object
	.local	iterations
	.comm	iterations,4,4
	.type	.L.str.1,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.L.str.1:
	.asciz	"right"
	.size	.L.str.1, 6
	.type	.L.str.2,@object
.L.str.2:
	.asciz	"wrong"
	.size	.L.str.2, 6
	.type	.L.str.3,@object
.L.str.3:
	.asciz	"range %d\n"
	.size	.L.str.3, 10
	.type	.L__unnamed_4,@object
.L__unnamed_4:
	.asciz	";unknown;unknown;0;0;;"
	.size	.L__unnamed_4, 23
	.type	.L__unnamed_2,@object
	.section	.data.rel.ro,"aw",@progbits
	.p2align	3, 0x0
.L__unnamed_2:
	.long	0
	.long	514
	.long	0
	.long	22
	.quad	.L__unnamed_4
	.size	.L__unnamed_2, 24
	.type	.L__unnamed_3,@object
	.p2align	3, 0x0
.L__unnamed_3:
	.long	0
	.long	66
	.long	0
	.long	22
	.quad	.L__unnamed_4
	.size	.L__unnamed_3, 24
	.type	.L__unnamed_1,@object
	.p2align	3, 0x0
.L__unnamed_1:
	.long	0
	.long	2
	.long	0
	.long	22
	.quad	.L__unnamed_4
	.size	.L__unnamed_1, 24
	.section	".note.GNU-stack","",@progbits
