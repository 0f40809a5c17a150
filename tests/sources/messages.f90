! As messages.c, with Fortran's names.
program messages
  implicit none
  include 'mpif.h'
  integer :: ierror, rank, ranks, round, i, other, from, requests(2), status(mpi_status_size), own(64)
  double precision :: total, in(4), all, of_all(64)
  call mpi_init(ierror)
  call mpi_comm_rank(mpi_comm_world, rank, ierror)
  call mpi_comm_size(mpi_comm_world, ranks, ierror)
  other = mod(rank + 1, ranks)
  from = mod(rank + ranks - 1, ranks)
  total = 0
  all = 0
  own = rank
  do round = 1, 7
    !$omp parallel do reduction(+ : total)
    do i = 1, 100000
      total = total + 1d0 / (i + rank)
    end do
    call mpi_irecv(in, 4, mpi_double_precision, from, round, mpi_comm_world, requests(1), ierror)
    call mpi_isend(total, 1, mpi_double_precision, other, round, mpi_comm_world, requests(2), ierror)
    call mpi_waitall(2, requests, mpi_statuses_ignore, ierror)
    call mpi_allreduce(in, all, 1, mpi_double_precision, mpi_sum, mpi_comm_world, ierror)
    if (rank == 0) then
      call mpi_send(all, 1, mpi_double_precision, 1, 1000, mpi_comm_world, ierror)
    else if (rank == 1 .and. mod(round, 2) == 0) then
      call mpi_recv(in, 4, mpi_double_precision, mpi_any_source, 1000, mpi_comm_world, status, ierror)
    else if (rank == 1) then
      call mpi_recv(in, 4, mpi_double_precision, 0, 1000, mpi_comm_world, mpi_status_ignore, ierror)
    end if
  end do
  ! The longest list of arguments that programs have: one more than in C.
  call mpi_sendrecv(all, 1, mpi_double_precision, other, 1, in, 4, mpi_double_precision, from, 1, mpi_comm_world, status, ierror)
  if (ierror /= mpi_success) stop 1
  call mpi_bcast(own, 11, mpi_integer, 1, mpi_comm_world, ierror)
  if (rank == 0) then
    call mpi_gather(mpi_in_place, 0, mpi_datatype_null, of_all, 7, mpi_integer, 0, mpi_comm_world, ierror)
  else
    call mpi_gather(own(1), 7, mpi_integer, of_all, 0, mpi_datatype_null, 0, mpi_comm_world, ierror)
  end if
  call mpi_alltoall(own, 3, mpi_real, of_all, 3, mpi_real, mpi_comm_world, ierror)
  call mpi_barrier(mpi_comm_world, ierror)
  if (rank == 0) print '(i0, a, f0.6)', ranks, ' ranks, ', all
  call mpi_finalize(ierror)
end program messages
