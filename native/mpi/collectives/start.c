#include "eager.h"
#include "levels.h"
#include "static_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Settings two_level_settings = {NEVER, false};

static Mode mode_of(const char *value)
{
    if (!value || !*value || !strcmp(value, "auto"))
        return AUTO;
    if (!strcmp(value, "always"))
        return ALWAYS;
    if (strcmp(value, "never"))
        fprintf(stderr, "topolane: TOPOLANE_MPI_TWO_LEVEL: \"%s\" is none of auto, always, never; "
                        "collectives stay flat\n", value);
    return NEVER;
}

/* Whether packing adds nothing. Needed because data cross as bytes. */
static bool packs_plainly(void)
{
    int bytes = 0;
    return PMPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &bytes) == MPI_SUCCESS && bytes == 3 * (int)sizeof(int);
}

/* Makes a map from the value on rank 0 and distributes it. Returns whether that succeeded. */
static bool spread_map(const char *value, bool by_host, int rank, int ranks)
{
    uint16_t *site = malloc((size_t)ranks * sizeof *site);
    char *hosts = NULL, host[HOST_NAME > MPI_MAX_PROCESSOR_NAME ? HOST_NAME : MPI_MAX_PROCESSOR_NAME] = "";
    int length, good = 1;
    if (by_host) {
        PMPI_Get_processor_name(host, &length);
        host[HOST_NAME - 1] = '\0';
        hosts = rank ? NULL : malloc((size_t)ranks * HOST_NAME);
        PMPI_Gather(host, HOST_NAME, MPI_CHAR, hosts, HOST_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        good = by_host ? sites_of_file(value, ranks, hosts, site) : sites_of_list(value, ranks, site);
    PMPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (good) {
        PMPI_Bcast(site, ranks, MPI_UINT16_T, 0, MPI_COMM_WORLD);
        uint16_t most = 0;
        for (int i = 0; i < ranks; i++)
            most = site[i] > most ? site[i] : most;
        sites_publish(&(SiteMap){1, ranks, most + 1, site});
    }
    free(hosts);
    free(site);
    return good;
}

/* Only rank 0's environment counts, because it may differ on other hosts. */
void two_level_start(void)
{
    enum { MODE, CHANGING, HAS_MAP, BY_HOST, VALUES };
    int rank, ranks, found[VALUES] = {NEVER, 0, 0, 0};
    const char *sites = getenv("TOPOLANE_MPI_SITES"), *manager = getenv("TOPOLANE_MPI_MANAGER");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0 && ranks > 1 && packs_plainly()) {
        found[HAS_MAP] = sites && *sites;
        found[BY_HOST] = found[HAS_MAP] && !is_list(sites);
        found[CHANGING] = !found[HAS_MAP] && manager && *manager;
        found[MODE] = found[HAS_MAP] || found[CHANGING] ? (int)mode_of(getenv("TOPOLANE_MPI_TWO_LEVEL")) : NEVER;
    }
    if (PMPI_Bcast(found, VALUES, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS || found[MODE] == NEVER)
        return;
    if (found[HAS_MAP] && !spread_map(sites, found[BY_HOST], rank, ranks))
        return;
    eager_start();
    two_level_settings = (Settings){(Mode)found[MODE], found[CHANGING]};
}
