! A mesh that is refined where it is steep: tasks of different lengths, an internal procedure, and a critical section.
module mesh
  implicit none
  integer :: cells = 0
contains
  recursive subroutine refine(low, high, depth)
    real(8), intent(in) :: low, high
    integer, intent(in) :: depth
    real(8) :: middle
    middle = 0.5d0 * (low + high)
    if (depth == 0 .or. abs(f(high) - f(low)) < 1d-5) then
      !$omp critical
      cells = cells + 1
      !$omp end critical
      return
    end if
    !$omp task if(depth > 8)
    call refine(low, middle, depth - 1)
    !$omp end task
    call refine(middle, high, depth - 1)
    !$omp taskwait
  contains
    real(8) function f(x)
      real(8), intent(in) :: x
      integer :: k
      f = 0
      do k = 1, 60
        f = f + sin(k * x) / k
      end do
    end function
  end subroutine
end module

program main
  use mesh
  implicit none
  !$omp parallel
  !$omp single
  call refine(0d0, 3d0, 18)
  !$omp end single
  !$omp end parallel
  print *, cells > 0
end program
