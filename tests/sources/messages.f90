! As messages.c, with Fortran's names.
program messages
  implicit none
  include 'mpif.h'
  integer :: ierror, rank, ranks, round, i, other, from, requests(2)
  double precision :: total, in, all
  call mpi_init(ierror)
  call mpi_comm_rank(mpi_comm_world, rank, ierror)
  call mpi_comm_size(mpi_comm_world, ranks, ierror)
  other = mod(rank + 1, ranks)
  from = mod(rank + ranks - 1, ranks)
  total = 0
  all = 0
  do round = 1, 7
    !$omp parallel do reduction(+ : total)
    do i = 1, 100000
      total = total + 1d0 / (i + rank)
    end do
    call mpi_irecv(in, 1, mpi_double_precision, from, round, mpi_comm_world, requests(1), ierror)
    call mpi_isend(total, 1, mpi_double_precision, other, round, mpi_comm_world, requests(2), ierror)
    call mpi_waitall(2, requests, mpi_statuses_ignore, ierror)
    call mpi_allreduce(in, all, 1, mpi_double_precision, mpi_sum, mpi_comm_world, ierror)
  end do
  call mpi_barrier(mpi_comm_world, ierror)
  if (rank == 0) print '(i0, a, f0.6)', ranks, ' ranks, ', all
  call mpi_finalize(ierror)
end program messages
