	.text
	.globl	main
	.p2align	4
	.type	main,@function
main:
	pushq	%rbx
	movl	$50, %ebx
	.p2align	4
.LBB0_1:
	movq	%rbx, %rdi
	callq	dealt
	callq	one_thread
	callq	pieces
	incq	%rbx
	cmpq	$53, %rbx
	jne	.LBB0_1
	movl	$153, %eax
	xorl	iterations(%rip), %eax
	movl	tasks(%rip), %ecx
	xorl	$21, %ecx
	orl	%eax, %ecx
	movl	sections(%rip), %eax
	xorl	$6, %eax
	leaq	.L.str.1(%rip), %rdx
	leaq	.L.str.2(%rip), %rdi
	orl	%ecx, %eax
	cmoveq	%rdx, %rdi
	callq	puts@PLT
	movl	iterations(%rip), %esi
	movl	sections(%rip), %edx
	movl	tasks(%rip), %ecx
	leaq	.L.str.3(%rip), %rdi
	xorl	%eax, %eax
	callq	printf@PLT
	movl	criticals(%rip), %esi
	movl	masters(%rip), %edx
	movl	singles(%rip), %ecx
	leaq	.L.str.4(%rip), %rdi
	xorl	%eax, %eax
	callq	printf@PLT
	xorl	%eax, %eax
	popq	%rbx
	retq
.Lfunc_end0:
	.size	main, .Lfunc_end0-main
	.p2align	4
	.type	dealt,@function
dealt:
	pushq	%rax
	movq	%rdi, (%rsp)
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	dealt.omp_outlined(%rip), %rdx
	movq	%rsp, %rcx
	movl	$1, %esi
	xorl	%eax, %eax
	callq	__kmpc_fork_call@PLT
	popq	%rax
	retq
.Lfunc_end1:
	.size	dealt, .Lfunc_end1-dealt
	.p2align	4
	.type	one_thread,@function
one_thread:
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	one_thread.omp_outlined(%rip), %rdx
	xorl	%esi, %esi
	xorl	%eax, %eax
	jmp	__kmpc_fork_call@PLT
.Lfunc_end2:
	.size	one_thread, .Lfunc_end2-one_thread
	.p2align	4
	.type	pieces,@function
pieces:
	leaq	.L__unnamed_1(%rip), %rdi
	leaq	pieces.omp_outlined(%rip), %rdx
	xorl	%esi, %esi
	xorl	%eax, %eax
	jmp	__kmpc_fork_call@PLT
.Lfunc_end3:
	.size	pieces, .Lfunc_end3-pieces
	.p2align	4
	.type	dealt.omp_outlined,@function
dealt.omp_outlined:
	movq	(%rdx), %r8
	testq	%r8, %r8
	jle	.LBB4_8
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$40, %rsp
	decq	%r8
	movq	$0, 24(%rsp)
	movq	%r8, 16(%rsp)
	movq	$1, 32(%rsp)
	movl	$0, 12(%rsp)
	movl	(%rdi), %ebx
	movq	$5, (%rsp)
	leaq	.L__unnamed_1(%rip), %r14
	movl	$1, %r9d
	movq	%r14, %rdi
	movl	%ebx, %esi
	movl	$1073741859, %edx
	xorl	%ecx, %ecx
	callq	__kmpc_dispatch_init_8@PLT
	leaq	12(%rsp), %rdx
	leaq	24(%rsp), %rcx
	leaq	16(%rsp), %r8
	leaq	32(%rsp), %r9
	movq	%r14, %rdi
	movl	%ebx, %esi
	callq	__kmpc_dispatch_next_8@PLT
	testl	%eax, %eax
	je	.LBB4_7
	leaq	12(%rsp), %r15
	leaq	24(%rsp), %r12
	leaq	16(%rsp), %r13
	leaq	32(%rsp), %rbp
	leaq	values(%rip), %r14
	jmp	.LBB4_4
	.p2align	4
.LBB4_3:
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	movq	%r15, %rdx
	movq	%r12, %rcx
	movq	%r13, %r8
	movq	%rbp, %r9
	callq	__kmpc_dispatch_next_8@PLT
	testl	%eax, %eax
	je	.LBB4_7
.LBB4_4:
	movq	24(%rsp), %rax
	movq	16(%rsp), %rcx
	cmpq	%rcx, %rax
	jg	.LBB4_3
	subq	%rax, %rcx
	incq	%rcx
	shlq	$2, %rax
	xorl	%edx, %edx
	.p2align	4
.LBB4_6:
	leaq	(%rax,%rdx,4), %rsi
	incl	(%r14,%rsi)
	lock		incl	iterations(%rip)
	incq	%rdx
	cmpq	%rdx, %rcx
	jne	.LBB4_6
	jmp	.LBB4_3
.LBB4_7:
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_dispatch_deinit@PLT
	addq	$40, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
.LBB4_8:
	retq
.Lfunc_end4:
	.size	dealt.omp_outlined, .Lfunc_end4-dealt.omp_outlined
	.p2align	4
	.type	one_thread.omp_outlined,@function
one_thread.omp_outlined:
	pushq	%r15
	pushq	%r14
	pushq	%rbx
	movl	(%rdi), %ebx
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_master@PLT
	testl	%eax, %eax
	je	.LBB5_2
	incl	masters(%rip)
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_end_master@PLT
.LBB5_2:
	leaq	.L__unnamed_2(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_barrier@PLT
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_single@PLT
	testl	%eax, %eax
	je	.LBB5_4
	incl	singles(%rip)
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_end_single@PLT
.LBB5_4:
	leaq	.L__unnamed_3(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_barrier@PLT
	leaq	.L__unnamed_1(%rip), %r14
	leaq	.gomp_critical_user_.var(%rip), %r15
	movq	%r14, %rdi
	movl	%ebx, %esi
	movq	%r15, %rdx
	callq	__kmpc_critical@PLT
	incl	criticals(%rip)
	movq	%r14, %rdi
	movl	%ebx, %esi
	movq	%r15, %rdx
	callq	__kmpc_end_critical@PLT
	movq	%r14, %rdi
	movl	%ebx, %esi
	callq	__kmpc_single@PLT
	testl	%eax, %eax
	je	.LBB5_5
	lock		incl	singles(%rip)
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	popq	%rbx
	popq	%r14
	popq	%r15
	jmp	__kmpc_end_single@PLT
.LBB5_5:
	popq	%rbx
	popq	%r14
	popq	%r15
	retq
.Lfunc_end5:
	.size	one_thread.omp_outlined, .Lfunc_end5-one_thread.omp_outlined
	.p2align	4
	.type	pieces.omp_outlined,@function
pieces.omp_outlined:
	pushq	%r15
	pushq	%r14
	pushq	%r12
	pushq	%rbx
	subq	$24, %rsp
	movl	$0, 12(%rsp)
	movl	$1, 8(%rsp)
	movl	$1, 20(%rsp)
	movl	$0, 16(%rsp)
	movl	(%rdi), %ebx
	subq	$8, %rsp
	leaq	28(%rsp), %rax
	leaq	.L__unnamed_4(%rip), %rdi
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
	testl	%eax, %eax
	movl	$1, %ecx
	cmovlel	%eax, %ecx
	movl	%ecx, 8(%rsp)
	movl	12(%rsp), %r12d
	cmpl	%ecx, %r12d
	jle	.LBB6_1
.LBB6_8:
	leaq	.L__unnamed_4(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_for_static_fini@PLT
	leaq	.L__unnamed_5(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_barrier@PLT
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_single@PLT
	testl	%eax, %eax
	je	.LBB6_12
	incl	singles(%rip)
	xorl	%r12d, %r12d
	leaq	.L__unnamed_1(%rip), %r14
	leaq	.omp_task_entry.(%rip), %r15
	.p2align	4
.LBB6_10:
	movl	$48, %ecx
	movq	%r14, %rdi
	movl	%ebx, %esi
	movl	$1, %edx
	xorl	%r8d, %r8d
	movq	%r15, %r9
	callq	__kmpc_omp_task_alloc@PLT
	movl	%r12d, 40(%rax)
	movq	%r14, %rdi
	movl	%ebx, %esi
	movq	%rax, %rdx
	callq	__kmpc_omp_task@PLT
	incl	%r12d
	cmpl	$7, %r12d
	jne	.LBB6_10
	leaq	.L__unnamed_1(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_end_single@PLT
.LBB6_12:
	leaq	.L__unnamed_3(%rip), %rdi
	movl	%ebx, %esi
	callq	__kmpc_barrier@PLT
	addq	$24, %rsp
	popq	%rbx
	popq	%r12
	popq	%r14
	popq	%r15
	retq
.LBB6_1:
	leaq	.L.str.5(%rip), %r14
	leaq	.L.str.6(%rip), %r15
	jmp	.LBB6_2
	.p2align	4
.LBB6_5:
	movq	%r14, %rdi
	movq	%r15, %rsi
	xorl	%eax, %eax
	callq	printf@PLT
	movl	%eax, values+4(%rip)
.LBB6_6:
	lock		incl	sections(%rip)
.LBB6_7:
	cmpl	8(%rsp), %r12d
	leal	1(%r12), %eax
	movl	%eax, %r12d
	jge	.LBB6_8
.LBB6_2:
	cmpl	$1, %r12d
	je	.LBB6_5
	testl	%r12d, %r12d
	jne	.LBB6_7
	movq	%r14, %rdi
	movq	%r15, %rsi
	xorl	%eax, %eax
	callq	printf@PLT
	movl	%eax, values(%rip)
	jmp	.LBB6_6
.Lfunc_end6:
	.size	pieces.omp_outlined, .Lfunc_end6-pieces.omp_outlined
	.p2align	4
	.type	.omp_task_entry.,@function
.omp_task_entry.:
	movslq	40(%rsi), %rax
	leaq	values(%rip), %rcx
	movl	%eax, (%rcx,%rax,4)
	lock		incl	tasks(%rip)
	xorl	%eax, %eax
	retq
.Lfunc_end7:
	.size	.omp_task_entry., .Lfunc_end7-.omp_task_entry.
	.type	iterations,@object
	.local	iterations
	.comm	iterations,4,4
	.type	tasks,@object
	.local	tasks
	.comm	tasks,4,4
	.type	sections,@object
	.local	sections
	.comm	sections,4,4
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
	.asciz	"range %d\nsection %d\ntask %d\n"
	.size	.L.str.3, 29
	.type	.L.str.4,@object
.L.str.4:
	.asciz	"critical %d\nmaster %d\nsingle %d\n"
	.size	.L.str.4, 33
	.type	criticals,@object
	.local	criticals
	.comm	criticals,4,4
	.type	masters,@object
	.local	masters
	.comm	masters,4,4
	.type	singles,@object
	.local	singles
	.comm	singles,4,4
	.type	.L__unnamed_6,@object
.L__unnamed_6:
	.asciz	";unknown;unknown;0;0;;"
	.size	.L__unnamed_6, 23
	.type	.L__unnamed_1,@object
	.section	.data.rel.ro,"aw",@progbits
	.p2align	3, 0x0
.L__unnamed_1:
	.long	0
	.long	2
	.long	0
	.long	22
	.quad	.L__unnamed_6
	.size	.L__unnamed_1, 24
	.type	values,@object
	.local	values
	.comm	values,800,16
	.type	.L__unnamed_2,@object
	.p2align	3, 0x0
.L__unnamed_2:
	.long	0
	.long	34
	.long	0
	.long	22
	.quad	.L__unnamed_6
	.size	.L__unnamed_2, 24
	.type	.L__unnamed_3,@object
	.p2align	3, 0x0
.L__unnamed_3:
	.long	0
	.long	322
	.long	0
	.long	22
	.quad	.L__unnamed_6
	.size	.L__unnamed_3, 24
	.type	.gomp_critical_user_.var,@object
	.comm	.gomp_critical_user_.var,32,8
	.type	.L__unnamed_4,@object
	.p2align	3, 0x0
.L__unnamed_4:
	.long	0
	.long	1026
	.long	0
	.long	22
	.quad	.L__unnamed_6
	.size	.L__unnamed_4, 24
	.type	.L.str.5,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.L.str.5:
	.asciz	"%s"
	.size	.L.str.5, 3
	.type	.L.str.6,@object
.L.str.6:
	.zero	1
	.size	.L.str.6, 1
	.type	.L__unnamed_5,@object
	.section	.data.rel.ro,"aw",@progbits
	.p2align	3, 0x0
.L__unnamed_5:
	.long	0
	.long	194
	.long	0
	.long	22
	.quad	.L__unnamed_6
	.size	.L__unnamed_5, 24
	.section	".note.GNU-stack","",@progbits
