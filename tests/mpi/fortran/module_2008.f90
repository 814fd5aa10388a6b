! The calls of Fortran by `use mpi_f08`; the test says what they send.
program new
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, before, code, round, rounds, got, given, total, flat(4), place, done, found
  integer :: indices(2)
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Comm) :: half
  logical :: flag
  rounds = 5
  found = 0
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, code)
  do round = 1, rounds
    given = rank
    ! 4 bytes to the next rank, each with another way to wait, with statuses and without.
    call MPI_Irecv(got, 1, MPI_INTEGER, before, 0, MPI_COMM_WORLD, requests(1), code)
    call MPI_Isend(given, 1, MPI_INTEGER, next, 0, MPI_COMM_WORLD, requests(2), code)
    call MPI_Waitall(2, requests, statuses, code)
    if (statuses(1)%MPI_SOURCE /= before .or. requests(1) /= MPI_REQUEST_NULL) found = found + 1
    call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1), code)
    call MPI_Send(given, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, code)
    call MPI_Waitany(1, requests, place, status, code)
    if (place /= 1 .or. status%MPI_SOURCE /= before) found = found + 1
    call MPI_Irecv(got, 1, MPI_INTEGER, before, 2, MPI_COMM_WORLD, requests(1), code)
    call MPI_Send(given, 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD, code)
    call MPI_Waitsome(1, requests, done, indices, MPI_STATUSES_IGNORE, code)
    if (done /= 1 .or. indices(1) /= 1) found = found + 1
    call MPI_Irecv(got, 1, MPI_INTEGER, before, 3, MPI_COMM_WORLD, requests(1), code)
    call MPI_Send(given, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, code)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, code)
    end do
    if (got /= before) found = found + 1
    ! 8 bytes to the other rank of the half.
    flat(1:2) = rank
    call MPI_Sendrecv_replace(flat, 2, MPI_INTEGER, mod(rank / 2, 2), 0, mod(rank / 2, 2), 0, half, &
                              status, code)
  end do
  ! A collective in place, and one with the address of nothing.
  total = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (total /= ranks * (ranks - 1) / 2) found = found + 1
  call MPI_Bcast(MPI_BOTTOM, 0, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
  call MPI_Comm_free(half, code)
  if (rank == 0) print *, 'wrong', found
  call MPI_Finalize(code)
end program
