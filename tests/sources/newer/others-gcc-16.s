	.text
	.p2align 4
	.type	dealt, @function
dealt:
	subq	$24, %rsp
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	movq	%rdi, 8(%rsp)
	leaq	8(%rsp), %rsi
	leaq	dealt._omp_fn.0(%rip), %rdi
	call	GOMP_parallel@PLT
	addq	$24, %rsp
	ret
	.size	dealt, .-dealt
	.p2align 4
	.type	one_thread, @function
one_thread:
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	leaq	one_thread._omp_fn.0(%rip), %rdi
	xorl	%esi, %esi
	jmp	GOMP_parallel@PLT
	.size	one_thread, .-one_thread
	.p2align 4
	.type	pieces, @function
pieces:
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	leaq	pieces._omp_fn.0(%rip), %rdi
	xorl	%esi, %esi
	jmp	GOMP_parallel@PLT
	.size	pieces, .-pieces
	.p2align 4
	.type	dealt._omp_fn.0, @function
dealt._omp_fn.0:
	subq	$24, %rsp
	movq	(%rdi), %rsi
	movl	$5, %ecx
	xorl	%edi, %edi
	leaq	8(%rsp), %r9
	movq	%rsp, %r8
	movl	$1, %edx
	call	GOMP_loop_nonmonotonic_dynamic_start@PLT
	testb	%al, %al
	je	.L7
	movq	%rbx, 16(%rsp)
	leaq	values(%rip), %rbx
	.p2align 4
	.p2align 3
.L9:
	movq	(%rsp), %rax
	movq	8(%rsp), %rdx
	.p2align 5
	.p2align 4
	.p2align 3
.L8:
	addl	$1, (%rbx,%rax,4)
	lock addl	$1, iterations(%rip)
	addq	$1, %rax
	cmpq	%rax, %rdx
	jg	.L8
	leaq	8(%rsp), %rsi
	movq	%rsp, %rdi
	call	GOMP_loop_nonmonotonic_dynamic_next@PLT
	testb	%al, %al
	jne	.L9
	movq	16(%rsp), %rbx
.L7:
	call	GOMP_loop_end_nowait@PLT
	addq	$24, %rsp
	ret
	.size	dealt._omp_fn.0, .-dealt._omp_fn.0
	.p2align 4
	.type	one_thread._omp_fn.0, @function
one_thread._omp_fn.0:
	subq	$8, %rsp
	call	omp_get_thread_num@PLT
	testl	%eax, %eax
	jne	.L22
	addl	$1, masters(%rip)
.L22:
	call	GOMP_barrier@PLT
	call	GOMP_single_start@PLT
	testb	%al, %al
	je	.L21
	addl	$1, singles(%rip)
.L21:
	call	GOMP_barrier@PLT
	call	GOMP_critical_start@PLT
	addl	$1, criticals(%rip)
	call	GOMP_critical_end@PLT
	call	GOMP_single_start@PLT
	testb	%al, %al
	jne	.L24
	addq	$8, %rsp
	ret
	.p2align 4,,10
	.p2align 3
.L24:
	lock addl	$1, singles(%rip)
	addq	$8, %rsp
	ret
	.size	one_thread._omp_fn.0, .-one_thread._omp_fn.0
	.p2align 4
	.type	pieces._omp_fn.1, @function
pieces._omp_fn.1:
	movslq	(%rdi), %rcx
	leaq	values(%rip), %rdx
	movl	%ecx, (%rdx,%rcx,4)
	lock addl	$1, tasks(%rip)
	ret
	.size	pieces._omp_fn.1, .-pieces._omp_fn.1
	.section	.rodata.str1.1,"aMS",@progbits,1
.LC0:
	.string	""
.LC1:
	.string	"%s"
	.section	.text.unlikely,"ax",@progbits
.LCOLDB2:
	.text
.LHOTB2:
	.p2align 4
	.type	pieces._omp_fn.0, @function
pieces._omp_fn.0:
	subq	$24, %rsp
	movl	$2, %edi
	call	GOMP_sections_start@PLT
	cmpl	$1, %eax
	je	.L27
.L38:
	cmpl	$2, %eax
	je	.L28
	testl	%eax, %eax
	jne	.L36
	call	GOMP_sections_end@PLT
	call	GOMP_single_start@PLT
	testb	%al, %al
	je	.L26
	addl	$1, singles(%rip)
	movq	%rbx, 16(%rsp)
	xorl	%ebx, %ebx
	.p2align 4
	.p2align 3
.L31:
	movl	%ebx, 12(%rsp)
	movl	$1, %r9d
	xorl	%edx, %edx
	addl	$1, %ebx
	pushq	$0
	movl	$4, %r8d
	movl	$4, %ecx
	leaq	pieces._omp_fn.1(%rip), %rdi
	pushq	$0
	pushq	$0
	pushq	$0
	leaq	44(%rsp), %rsi
	call	GOMP_task@PLT
	addq	$32, %rsp
	cmpl	$7, %ebx
	jne	.L31
	movq	16(%rsp), %rbx
.L26:
	addq	$24, %rsp
	ret
	.p2align 4,,10
	.p2align 3
.L28:
	leaq	.LC0(%rip), %rsi
	leaq	.LC1(%rip), %rdi
	xorl	%eax, %eax
	call	printf@PLT
	movl	%eax, 4+values(%rip)
	lock addl	$1, sections(%rip)
.L34:
	call	GOMP_sections_next@PLT
	cmpl	$1, %eax
	jne	.L38
.L27:
	leaq	.LC0(%rip), %rsi
	leaq	.LC1(%rip), %rdi
	xorl	%eax, %eax
	call	printf@PLT
	movl	%eax, values(%rip)
	lock addl	$1, sections(%rip)
	jmp	.L34
	.section	.text.unlikely
	.type	pieces._omp_fn.0.cold, @function
pieces._omp_fn.0.cold:
.L36:
	movq	%rbx, 16(%rsp)
	ud2
	.text
	.size	pieces._omp_fn.0, .-pieces._omp_fn.0
	.section	.text.unlikely
	.size	pieces._omp_fn.0.cold, .-pieces._omp_fn.0.cold
.LCOLDE2:
	.text
.LHOTE2:
	.section	.rodata.str1.1
.LC3:
	.string	"right"
.LC4:
	.string	"wrong"
.LC5:
	.string	"range %d\nsection %d\ntask %d\n"
	.section	.rodata.str1.8,"aMS",@progbits,1
	.align 8
.LC6:
	.string	"critical %d\nmaster %d\nsingle %d\n"
	.section	.text.startup,"ax",@progbits
	.p2align 4
	.globl	main
	.type	main, @function
main:
	pushq	%rbx
	movl	$50, %ebx
.L40:
	movq	%rbx, %rdi
	addq	$1, %rbx
	call	dealt
	call	one_thread
	call	pieces
	cmpq	$53, %rbx
	jne	.L40
	cmpl	$153, iterations(%rip)
	je	.L48
.L47:
	leaq	.LC4(%rip), %rdi
.L43:
	call	puts@PLT
	movl	tasks(%rip), %ecx
	xorl	%eax, %eax
	movl	sections(%rip), %edx
	movl	iterations(%rip), %esi
	leaq	.LC5(%rip), %rdi
	call	printf@PLT
	movl	singles(%rip), %ecx
	xorl	%eax, %eax
	movl	masters(%rip), %edx
	movl	criticals(%rip), %esi
	leaq	.LC6(%rip), %rdi
	call	printf@PLT
	xorl	%eax, %eax
	popq	%rbx
	ret
.L48:
	cmpl	$21, tasks(%rip)
	jne	.L47
	cmpl	$6, sections(%rip)
	jne	.L47
	leaq	.LC3(%rip), %rdi
	jmp	.L43
	.size	main, .-main
	.local	values
	.comm	values,800,32
	.local	singles
	.comm	singles,4,4
	.local	masters
	.comm	masters,4,4
	.local	criticals
	.comm	criticals,4,4
	.local	tasks
	.comm	tasks,4,4
	.local	sections
	.comm	sections,4,4
	.local	iterations
	.comm	iterations,4,4
	.section	.note.GNU-stack,"",@progbits
