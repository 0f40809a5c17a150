	.text
	.p2align 4
	.type	two, @function
two:
	subq	$24, %rsp
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	movl	%edi, 12(%rsp)
	leaq	12(%rsp), %rsi
	leaq	two._omp_fn.0(%rip), %rdi
	call	GOMP_parallel@PLT
	addq	$24, %rsp
	ret
	.size	two, .-two
	.p2align 4
	.type	last, @function
last:
	subq	$24, %rsp
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	movl	%edi, 8(%rsp)
	leaq	8(%rsp), %rsi
	leaq	last._omp_fn.0(%rip), %rdi
	call	GOMP_parallel@PLT
	movl	12(%rsp), %eax
	addq	$24, %rsp
	ret
	.size	last, .-last
	.p2align 4
	.type	two._omp_fn.0, @function
two._omp_fn.0:
	pushq	%rbp
	movq	%rdi, %rbp
	pushq	%rbx
	subq	$24, %rsp
	call	omp_get_num_threads@PLT
	movl	%eax, %ebx
	call	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movl	0(%rbp), %eax
	cltd
	idivl	%ebx
	cmpl	%edx, %ecx
	leal	1(%rax), %esi
	cmovl	%esi, %eax
	movl	$0, %esi
	cmovl	%esi, %edx
	imull	%eax, %ecx
	addl	%ecx, %edx
	leal	(%rax,%rdx), %esi
	cmpl	%esi, %edx
	jge	.L8
	movslq	%edx, %rbp
	leaq	values(%rip), %rbx
	movq	%rbp, %rdx
	.p2align 4
	.p2align 4
	.p2align 3
.L9:
	movl	%edx, (%rbx,%rdx,4)
	lock addl	$1, iterations(%rip)
	addq	$1, %rdx
	cmpl	%edx, %esi
	jg	.L9
	movl	%eax, 12(%rsp)
	call	GOMP_barrier@PLT
	movl	12(%rsp), %eax
	leaq	(%rbx,%rbp,4), %rdx
	addq	%rbp, %rax
	leaq	(%rbx,%rax,4), %rcx
	.p2align 5
	.p2align 4
	.p2align 3
.L11:
	movl	(%rdx), %eax
	leal	(%rax,%rax,2), %eax
	movl	%eax, (%rdx)
	lock addl	$1, iterations(%rip)
	addq	$4, %rdx
	cmpq	%rcx, %rdx
	jne	.L11
	addq	$24, %rsp
	popq	%rbx
	popq	%rbp
	ret
	.p2align 4,,10
	.p2align 3
.L8:
	addq	$24, %rsp
	popq	%rbx
	popq	%rbp
	jmp	GOMP_barrier@PLT
	.size	two._omp_fn.0, .-two._omp_fn.0
	.p2align 4
	.type	chunks._omp_fn.0, @function
chunks._omp_fn.0:
	subq	$40, %rsp
	movq	%r12, 24(%rsp)
	movl	4(%rdi), %r12d
	movq	%rbx, 8(%rsp)
	movq	%rbp, 16(%rsp)
	movl	%r12d, %ebx
	movl	(%rdi), %ebp
	call	omp_get_thread_num@PLT
	imull	%eax, %ebx
	cmpl	%ebx, %ebp
	jle	.L17
	movq	%r13, 32(%rsp)
	movl	%eax, %r13d
	call	omp_get_num_threads@PLT
	leal	(%r12,%rbx), %ecx
	leaq	values(%rip), %rdx
	cmpl	%ebp, %ecx
	leal	(%rax,%r13), %edi
	movl	%eax, %r8d
	cmovg	%ebp, %ecx
	imull	%r12d, %edi
	imull	%r12d, %r8d
	leal	(%rdi,%r12), %esi
	.p2align 4
	.p2align 3
.L20:
	movslq	%ebx, %rax
	.p2align 5
	.p2align 4
	.p2align 3
.L19:
	addl	$1, (%rdx,%rax,4)
	lock addl	$1, iterations(%rip)
	addq	$1, %rax
	cmpl	%eax, %ecx
	jg	.L19
	cmpl	%ebp, %esi
	movl	%ebp, %ecx
	leal	(%r8,%rsi), %eax
	movl	%edi, %ebx
	cmovle	%esi, %ecx
	subl	%r12d, %esi
	addl	%r8d, %edi
	cmpl	%esi, %ebp
	jle	.L24
	movl	%eax, %esi
	jmp	.L20
	.p2align 4,,10
	.p2align 3
.L24:
	movq	32(%rsp), %r13
.L17:
	movq	8(%rsp), %rbx
	movq	16(%rsp), %rbp
	movq	24(%rsp), %r12
	addq	$40, %rsp
	ret
	.size	chunks._omp_fn.0, .-chunks._omp_fn.0
	.p2align 4
	.type	added._omp_fn.0, @function
added._omp_fn.0:
	pushq	%rbp
	movq	%rdi, %rbp
	pushq	%rbx
	subq	$8, %rsp
	call	omp_get_num_threads@PLT
	movl	%eax, %ebx
	call	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movl	0(%rbp), %eax
	cltd
	idivl	%ebx
	cmpl	%edx, %ecx
	leal	1(%rax), %esi
	cmovge	%eax, %esi
	movl	$0, %eax
	cmovl	%eax, %edx
	imull	%esi, %ecx
	addl	%ecx, %edx
	addl	%edx, %esi
	cmpl	%esi, %edx
	jge	.L25
	movsd	.LC0(%rip), %xmm0
	.p2align 4
	.p2align 3
.L29:
	movq	sum(%rip), %rcx
.L28:
	movq	%rcx, %xmm1
	movq	%rcx, %rax
	addsd	%xmm0, %xmm1
	movq	%xmm1, %rdi
	lock cmpxchgq	%rdi, sum(%rip)
	jne	.L31
	lock addl	$1, iterations(%rip)
	addl	$1, %edx
	cmpl	%edx, %esi
	jne	.L29
.L25:
	addq	$8, %rsp
	popq	%rbx
	popq	%rbp
	ret
.L31:
	movq	%rax, %rcx
	jmp	.L28
	.size	added._omp_fn.0, .-added._omp_fn.0
	.p2align 4
	.type	last._omp_fn.0, @function
last._omp_fn.0:
	pushq	%r13
	pushq	%r12
	pushq	%rbp
	movq	%rdi, %rbp
	pushq	%rbx
	subq	$8, %rsp
	movl	(%rdi), %ebx
	call	omp_get_num_threads@PLT
	movl	%eax, %r13d
	call	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movl	%ebx, %eax
	cltd
	idivl	%r13d
	cmpl	%edx, %ecx
	leal	1(%rax), %esi
	cmovl	%esi, %eax
	movl	$0, %esi
	cmovl	%esi, %edx
	imull	%eax, %ecx
	addl	%ecx, %edx
	leal	(%rax,%rdx), %esi
	cmpl	%esi, %edx
	jge	.L41
	movslq	%edx, %rcx
	movl	%eax, %eax
	leaq	values(%rip), %rdi
	addq	%rcx, %rax
	leaq	(%rdi,%rcx,4), %rdx
	leaq	(%rdi,%rax,4), %rax
	.p2align 5
	.p2align 4
	.p2align 3
.L37:
	movl	(%rdx), %r12d
	lock addl	$1, iterations(%rip)
	addq	$4, %rdx
	cmpq	%rax, %rdx
	jne	.L37
.L36:
	cmpl	%ebx, %esi
	jne	.L34
	movl	%r12d, 4(%rbp)
.L34:
	addq	$8, %rsp
	popq	%rbx
	popq	%rbp
	popq	%r12
	popq	%r13
	ret
	.p2align 4,,10
	.p2align 3
.L41:
	xorl	%esi, %esi
	jmp	.L36
	.size	last._omp_fn.0, .-last._omp_fn.0
	.p2align 4
	.type	added.constprop.0, @function
added.constprop.0:
	subq	$24, %rsp
	xorl	%ecx, %ecx
	leaq	added._omp_fn.0(%rip), %rdi
	xorl	%edx, %edx
	leaq	12(%rsp), %rsi
	movl	$41, 12(%rsp)
	call	GOMP_parallel@PLT
	addq	$24, %rsp
	ret
	.size	added.constprop.0, .-added.constprop.0
	.p2align 4
	.type	chunks.constprop.0, @function
chunks.constprop.0:
	subq	$24, %rsp
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	movl	%edi, 12(%rsp)
	leaq	8(%rsp), %rsi
	leaq	chunks._omp_fn.0(%rip), %rdi
	movl	$97, 8(%rsp)
	call	GOMP_parallel@PLT
	addq	$24, %rsp
	ret
	.size	chunks.constprop.0, .-chunks.constprop.0
	.section	.rodata.str1.1,"aMS",@progbits,1
.LC1:
	.string	"right"
.LC2:
	.string	"wrong"
.LC3:
	.string	"range %d\n"
	.section	.text.startup,"ax",@progbits
	.p2align 4
	.globl	main
	.type	main, @function
main:
	pushq	%rbp
	xorl	%ebp, %ebp
	pushq	%rbx
	xorl	%ebx, %ebx
	subq	$8, %rsp
	cmpl	$2, %ebx
	je	.L49
.L58:
	leal	100(%rbx), %edi
	leal	369(%rbp,%rbx,2), %ebp
	call	two
	leal	4(%rbx), %edi
	addl	$1, %ebx
	call	chunks.constprop.0
	call	added.constprop.0
	movl	$31, %edi
	call	last
	movl	%eax, values(%rip)
	cmpl	$2, %ebx
	jne	.L58
.L49:
	movl	$102, %edi
	call	two
	movl	$6, %edi
	call	chunks.constprop.0
	call	added.constprop.0
	movl	$1, %edi
	call	last
	movsd	.LC4(%rip), %xmm0
	ucomisd	sum(%rip), %xmm0
	movl	%eax, values(%rip)
	jp	.L55
	jne	.L55
	addl	$343, %ebp
	cmpl	%ebp, iterations(%rip)
	leaq	.LC2(%rip), %rdi
	je	.L59
.L51:
	call	puts@PLT
	movl	iterations(%rip), %esi
	leaq	.LC3(%rip), %rdi
	xorl	%eax, %eax
	call	printf@PLT
	addq	$8, %rsp
	xorl	%eax, %eax
	popq	%rbx
	popq	%rbp
	ret
.L55:
	leaq	.LC2(%rip), %rdi
	jmp	.L51
.L59:
	leaq	.LC1(%rip), %rdi
	jmp	.L51
	.size	main, .-main
	.local	sum
	.comm	sum,8,8
	.local	values
	.comm	values,800,32
	.local	iterations
	.comm	iterations,4,4
	.section	.rodata.cst8,"aM",@progbits,8
	.align 8
.LC0:
	.long	0
	.long	1071644672
	.align 8
.LC4:
	.long	0
	.long	1078902784
	.section	.note.GNU-stack,"",@progbits
