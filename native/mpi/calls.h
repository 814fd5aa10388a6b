/* The watched calls, by their numbers in the protocol (native/mpi/PROTOCOL.md). Append new ones at
 * the end. The `_c` form of a call counts as that call, and a persistent collective as the blocking one. */
#define CALLS(CALL) \
    CALL(1, Send) CALL(2, Ssend) CALL(3, Bsend) CALL(4, Rsend) \
    CALL(5, Isend) CALL(6, Issend) CALL(7, Ibsend) CALL(8, Irsend) \
    CALL(9, Recv) CALL(10, Irecv) CALL(11, Sendrecv) CALL(12, Sendrecv_replace) \
    CALL(13, Isendrecv) CALL(14, Isendrecv_replace) \
    CALL(15, Probe) CALL(16, Iprobe) CALL(17, Mprobe) CALL(18, Improbe) CALL(19, Mrecv) CALL(20, Imrecv) \
    CALL(21, Wait) CALL(22, Waitall) CALL(23, Waitany) CALL(24, Waitsome) \
    CALL(25, Test) CALL(26, Testall) CALL(27, Testany) CALL(28, Testsome) \
    CALL(29, Start) CALL(30, Startall) \
    CALL(40, Barrier) CALL(41, Bcast) CALL(42, Gather) CALL(43, Gatherv) CALL(44, Scatter) CALL(45, Scatterv) \
    CALL(46, Allgather) CALL(47, Allgatherv) CALL(48, Alltoall) CALL(49, Alltoallv) CALL(50, Alltoallw) \
    CALL(51, Reduce) CALL(52, Allreduce) CALL(53, Reduce_scatter) CALL(54, Reduce_scatter_block) \
    CALL(55, Scan) CALL(56, Exscan) \
    CALL(57, Neighbor_allgather) CALL(58, Neighbor_allgatherv) CALL(59, Neighbor_alltoall) \
    CALL(60, Neighbor_alltoallv) CALL(61, Neighbor_alltoallw) \
    CALL(70, Ibarrier) CALL(71, Ibcast) CALL(72, Igather) CALL(73, Igatherv) CALL(74, Iscatter) \
    CALL(75, Iscatterv) CALL(76, Iallgather) CALL(77, Iallgatherv) CALL(78, Ialltoall) CALL(79, Ialltoallv) \
    CALL(80, Ialltoallw) CALL(81, Ireduce) CALL(82, Iallreduce) CALL(83, Ireduce_scatter) \
    CALL(84, Ireduce_scatter_block) CALL(85, Iscan) CALL(86, Iexscan) \
    CALL(87, Ineighbor_allgather) CALL(88, Ineighbor_allgatherv) CALL(89, Ineighbor_alltoall) \
    CALL(90, Ineighbor_alltoallv) CALL(91, Ineighbor_alltoallw) \
    CALL(100, Put) CALL(101, Get) CALL(102, Accumulate) CALL(103, Get_accumulate) CALL(104, Fetch_and_op) \
    CALL(105, Compare_and_swap) CALL(106, Rput) CALL(107, Rget) CALL(108, Raccumulate) \
    CALL(109, Rget_accumulate) \
    CALL(110, Win_fence) CALL(111, Win_start) CALL(112, Win_complete) CALL(113, Win_post) CALL(114, Win_wait) \
    CALL(115, Win_test) CALL(116, Win_lock) CALL(117, Win_unlock) CALL(118, Win_lock_all) \
    CALL(119, Win_unlock_all) CALL(120, Win_flush) CALL(121, Win_flush_all) CALL(122, Win_flush_local) \
    CALL(123, Win_flush_local_all)

enum {
#define CALL(number, name) CALL_##name = number,
    CALLS(CALL)
#undef CALL
    MOST_CALLS = 128
};
