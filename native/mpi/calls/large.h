/* The same calls with counts of MPI_Count (MPI-4). */
#undef COUNT
#undef DISPLACEMENT
#undef NAME
#undef REAL
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define NAME(name) MPI_##name##_c
#define REAL(name) PMPI_##name##_c
#define LARGE 1
