/* The calls whose counts are int. */
#define COUNT int
#define DISPLACEMENT int
#define NAME(name) MPI_##name
#define REAL(name) PMPI_##name
