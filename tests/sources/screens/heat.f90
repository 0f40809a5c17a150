! Heat in a plate: a module procedure with a loop over columns, whose rows are more where the plate is hot.
module plate
  implicit none
  integer, parameter :: n = 800
  real(8) :: now(n, n), next(n, n)
contains
  subroutine step()
    integer :: i, j
    !$omp parallel do
    do j = 2, n - 1
      do i = 2, n - 1
        next(i, j) = 0.25d0 * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1))
      end do
    end do
    !$omp end parallel do
  end subroutine

  real(8) function change()
    integer :: i, j
    change = 0
    !$omp parallel do reduction(max : change)
    do j = 2, n - 1
      do i = 2, n - 1
        change = max(change, abs(next(i, j) - now(i, j)))
      end do
    end do
  end function
end module

program heat
  use plate
  implicit none
  integer :: k
  real(8) :: most
  now = 0
  now(:, 1) = 100
  next = now
  do k = 1, 400
    call step()
    most = change()
    now = next
  end do
  print *, most < 100
end program
