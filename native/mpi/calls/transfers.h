/* One-sided transfers, each also with a request. Included once for int and once for MPI_Count. */

#define TRANSFER(name, PARAMETERS, ARGUMENTS, COUNTED)                                    \
    ON_OWN_STACK(NAME(name), REAL(name), NUMBER_OF ARGUMENTS)                             \
    EXPORT int NAME(name) PARAMETERS                                                      \
    {                                                                                     \
        WATCH(CALL_##name, REAL(name) ARGUMENTS, bytes = COUNTED);                        \
    }
#define UNPACK(...) __VA_ARGS__
#define TRANSFERS(name, with_request, PARAMETERS, ARGUMENTS, COUNTED)                     \
    TRANSFER(name, PARAMETERS, ARGUMENTS, COUNTED)                                        \
    TRANSFER(with_request, (UNPACK PARAMETERS, MPI_Request * request), (UNPACK ARGUMENTS, request), COUNTED)

#define TO_TARGET int target, MPI_Aint at, COUNT target_count, MPI_Datatype target_type

TRANSFERS(Put, Rput, (const void *origin, COUNT count, MPI_Datatype type, TO_TARGET, MPI_Win window),
          (origin, count, type, target, at, target_count, target_type, window), given(window, target, count, type))
TRANSFERS(Get, Rget, (void *origin, COUNT count, MPI_Datatype type, TO_TARGET, MPI_Win window),
          (origin, count, type, target, at, target_count, target_type, window), fetched(window, target, count, type))
TRANSFERS(Accumulate, Raccumulate,
          (const void *origin, COUNT count, MPI_Datatype type, TO_TARGET, MPI_Op op, MPI_Win window),
          (origin, count, type, target, at, target_count, target_type, op, window),
          given(window, target, count, type))
TRANSFERS(Get_accumulate, Rget_accumulate,
          (const void *origin, COUNT count, MPI_Datatype type, void *back, COUNT back_count, MPI_Datatype back_type,
           TO_TARGET, MPI_Op op, MPI_Win window),
          (origin, count, type, back, back_count, back_type, target, at, target_count, target_type, op, window),
          swapped(window, target, count, type, back_count, back_type, op))
#undef TRANSFER
#undef TRANSFERS
#undef TO_TARGET
#undef UNPACK
