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
	pushq	%r12
	pushq	%rbp
	movq	%rdi, %rbp
	pushq	%rbx
	call	omp_get_num_threads@PLT
	movl	%eax, %ebx
	call	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movl	0(%rbp), %eax
	cltd
	idivl	%ebx
	movl	%eax, %ebp
	cmpl	%edx, %ecx
	jl	.L7
.L12:
	imull	%ebp, %ecx
	addl	%ecx, %edx
	leal	0(%rbp,%rdx), %eax
	cmpl	%eax, %edx
	jge	.L8
	movslq	%edx, %rbx
	leaq	values(%rip), %r12
	movq	%rbx, %rcx
	.p2align 4,,10
	.p2align 3
.L9:
	movl	%ecx, (%r12,%rcx,4)
	lock addl	$1, iterations(%rip)
	addq	$1, %rcx
	cmpl	%ecx, %eax
	jg	.L9
	call	GOMP_barrier@PLT
	movl	%ebp, %ebp
	leaq	(%r12,%rbx,4), %rcx
	addq	%rbx, %rbp
	leaq	(%r12,%rbp,4), %rdx
	.p2align 4,,10
	.p2align 3
.L11:
	movl	(%rcx), %eax
	leal	(%rax,%rax,2), %eax
	movl	%eax, (%rcx)
	lock addl	$1, iterations(%rip)
	addq	$4, %rcx
	cmpq	%rdx, %rcx
	jne	.L11
	popq	%rbx
	popq	%rbp
	popq	%r12
	ret
	.p2align 4,,10
	.p2align 3
.L8:
	popq	%rbx
	popq	%rbp
	popq	%r12
	jmp	GOMP_barrier@PLT
	.p2align 4,,10
	.p2align 3
.L7:
	addl	$1, %ebp
	xorl	%edx, %edx
	jmp	.L12
	.size	two._omp_fn.0, .-two._omp_fn.0
	.p2align 4
	.type	chunks._omp_fn.0, @function
chunks._omp_fn.0:
	pushq	%r12
	pushq	%rbp
	pushq	%rbx
	movl	4(%rdi), %r12d
	movl	(%rdi), %ebp
	call	omp_get_num_threads@PLT
	movl	%eax, %ebx
	call	omp_get_thread_num@PLT
	movl	%eax, %edx
	movl	%r12d, %eax
	imull	%edx, %eax
	leal	(%r12,%rax), %ecx
	cmpl	%ebp, %ecx
	cmovg	%ebp, %ecx
	cmpl	%eax, %ebp
	jle	.L18
	leal	(%rbx,%rdx), %edi
	leaq	values(%rip), %rdx
	movl	%r12d, %r8d
	imull	%r12d, %edi
	imull	%ebx, %r8d
	leal	(%rdi,%r12), %esi
	.p2align 4,,10
	.p2align 3
.L21:
	cltq
	.p2align 4,,10
	.p2align 3
.L20:
	addl	$1, (%rdx,%rax,4)
	lock addl	$1, iterations(%rip)
	addq	$1, %rax
	cmpl	%eax, %ecx
	jg	.L20
	cmpl	%ebp, %esi
	movl	%ebp, %ecx
	leal	(%rsi,%r8), %r9d
	movl	%edi, %eax
	cmovle	%esi, %ecx
	subl	%r12d, %esi
	addl	%r8d, %edi
	cmpl	%esi, %ebp
	jle	.L18
	movl	%r9d, %esi
	jmp	.L21
	.p2align 4,,10
	.p2align 3
.L18:
	popq	%rbx
	popq	%rbp
	popq	%r12
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
	jl	.L26
.L30:
	imull	%eax, %ecx
	addl	%ecx, %edx
	leal	(%rax,%rdx), %esi
	cmpl	%esi, %edx
	jge	.L25
	movsd	.LC0(%rip), %xmm0
	.p2align 4,,10
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
	.p2align 4,,10
	.p2align 3
.L26:
	addl	$1, %eax
	xorl	%edx, %edx
	jmp	.L30
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
	movl	(%rdi), %r12d
	call	omp_get_num_threads@PLT
	movl	%eax, %ebx
	call	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movl	%r12d, %eax
	cltd
	idivl	%ebx
	cmpl	%edx, %ecx
	jl	.L35
.L40:
	imull	%eax, %ecx
	addl	%ecx, %edx
	leal	(%rax,%rdx), %esi
	cmpl	%esi, %edx
	jge	.L41
	movslq	%edx, %rdx
	movl	%eax, %eax
	leaq	values(%rip), %rdi
	addq	%rdx, %rax
	leaq	(%rdi,%rdx,4), %rcx
	leaq	(%rdi,%rax,4), %rax
	.p2align 4,,10
	.p2align 3
.L37:
	movl	(%rcx), %r13d
	lock addl	$1, iterations(%rip)
	addq	$4, %rcx
	cmpq	%rax, %rcx
	jne	.L37
.L36:
	cmpl	%r12d, %esi
	jne	.L34
	movl	%r13d, 4(%rbp)
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
	.p2align 4,,10
	.p2align 3
.L35:
	addl	$1, %eax
	xorl	%edx, %edx
	jmp	.L40
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
.LC4:
	.string	"range %d\n"
	.section	.text.startup,"ax",@progbits
	.p2align 4
	.globl	main
	.type	main, @function
main:
	subq	$8, %rsp
	movl	$100, %edi
	call	two
	movl	$4, %edi
	call	chunks.constprop.0
	call	added.constprop.0
	movl	$31, %edi
	call	last
	movl	$101, %edi
	movl	%eax, values(%rip)
	call	two
	movl	$5, %edi
	call	chunks.constprop.0
	call	added.constprop.0
	movl	$31, %edi
	call	last
	movl	$102, %edi
	movl	%eax, values(%rip)
	call	two
	movl	$6, %edi
	call	chunks.constprop.0
	call	added.constprop.0
	movl	$1, %edi
	call	last
	movsd	.LC3(%rip), %xmm0
	ucomisd	sum(%rip), %xmm0
	movl	%eax, values(%rip)
	jp	.L51
	jne	.L51
	leaq	.LC1(%rip), %rdi
	leaq	.LC2(%rip), %rax
	cmpl	$1083, iterations(%rip)
	cmovne	%rax, %rdi
.L49:
	call	puts@PLT
	movl	iterations(%rip), %esi
	leaq	.LC4(%rip), %rdi
	xorl	%eax, %eax
	call	printf@PLT
	xorl	%eax, %eax
	addq	$8, %rsp
	ret
.L51:
	leaq	.LC2(%rip), %rdi
	jmp	.L49
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
.LC3:
	.long	0
	.long	1078902784
	.section	.note.GNU-stack,"",@progbits
