/* One-sided communication, from Fortran. */
#include "fortran.h"

#if FORTRAN_WRAPPERS

#define ORIGIN char *origin, Int count, Int type
#define FROM_ORIGIN BUFFER(origin), *count, TYPE(type)
#define TARGET Int target, MPI_Aint *at, Int target_count, Int target_type
#define TO_TARGET *target, *at, *target_count, TYPE(target_type)
#define BACK char *back, Int back_count, Int back_type
#define GIVEN_BACK BUFFER(back), *back_count, TYPE(back_type)

#define UNPACK(...) __VA_ARGS__
#define TRANSFER(name, Name, PARAMETERS, ARGUMENTS)                                  \
    FORTRAN(name, (UNPACK PARAMETERS, Int code), MPI_##Name(UNPACK ARGUMENTS))       \
    FORTRAN_REQUEST(r##name, (UNPACK PARAMETERS, Int request, Int code), MPI_R##name(UNPACK ARGUMENTS, &made))

TRANSFER(put, Put, (ORIGIN, TARGET, Int window), (FROM_ORIGIN, TO_TARGET, WINDOW(window)))
TRANSFER(get, Get, (ORIGIN, TARGET, Int window), (FROM_ORIGIN, TO_TARGET, WINDOW(window)))
TRANSFER(accumulate, Accumulate, (ORIGIN, TARGET, Int op, Int window),
         (FROM_ORIGIN, TO_TARGET, OP(op), WINDOW(window)))
TRANSFER(get_accumulate, Get_accumulate, (ORIGIN, BACK, TARGET, Int op, Int window),
         (FROM_ORIGIN, GIVEN_BACK, TO_TARGET, OP(op), WINDOW(window)))

FORTRAN(fetch_and_op,
        (char *origin, char *back, Int type, Int target, MPI_Aint *at, Int op, Int window, Int code),
        MPI_Fetch_and_op(BUFFER(origin), BUFFER(back), TYPE(type), *target, *at, OP(op), WINDOW(window)))
FORTRAN(compare_and_swap,
        (char *origin, char *compared, char *back, Int type, Int target, MPI_Aint *at, Int window, Int code),
        MPI_Compare_and_swap(BUFFER(origin), BUFFER(compared), BUFFER(back), TYPE(type), *target, *at,
                             WINDOW(window)))

FORTRAN(win_fence, (Int asserted, Int window, Int code), MPI_Win_fence(*asserted, WINDOW(window)))
FORTRAN(win_start, (Int group, Int asserted, Int window, Int code),
        MPI_Win_start(PMPI_Group_f2c(*group), *asserted, WINDOW(window)))
FORTRAN(win_complete, (Int window, Int code), MPI_Win_complete(WINDOW(window)))
FORTRAN(win_post, (Int group, Int asserted, Int window, Int code),
        MPI_Win_post(PMPI_Group_f2c(*group), *asserted, WINDOW(window)))
FORTRAN(win_wait, (Int window, Int code), MPI_Win_wait(WINDOW(window)))
FORTRAN(win_test, (Int window, Int flag, Int code), MPI_Win_test(WINDOW(window), flag))
FORTRAN(win_lock, (Int kind, Int target, Int asserted, Int window, Int code),
        MPI_Win_lock(*kind, *target, *asserted, WINDOW(window)))
FORTRAN(win_unlock, (Int target, Int window, Int code), MPI_Win_unlock(*target, WINDOW(window)))
FORTRAN(win_lock_all, (Int asserted, Int window, Int code), MPI_Win_lock_all(*asserted, WINDOW(window)))
FORTRAN(win_unlock_all, (Int window, Int code), MPI_Win_unlock_all(WINDOW(window)))
FORTRAN(win_flush, (Int target, Int window, Int code), MPI_Win_flush(*target, WINDOW(window)))
FORTRAN(win_flush_all, (Int window, Int code), MPI_Win_flush_all(WINDOW(window)))
FORTRAN(win_flush_local, (Int target, Int window, Int code), MPI_Win_flush_local(*target, WINDOW(window)))
FORTRAN(win_flush_local_all, (Int window, Int code), MPI_Win_flush_local_all(WINDOW(window)))

#endif
