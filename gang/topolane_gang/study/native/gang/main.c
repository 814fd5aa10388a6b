/* The words of the command. */
#include "team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static const char *const NAMES[KINDS] = {"independent", "barrier", "coevp", "rate"};
enum { OF_ALL = 1 << INDEPENDENT | 1 << BARRIER | 1 << COEVP };

typedef struct {
    const char *name;
    int kinds;          /* that have it: a bit each */
    double least, most; /* both included; equal where it is no number */
    bool whole;         /* of what is no number: without a value */
    void *value;
} Option;

static char said[256];

static const char *wrong(const char *what, const char *why)
{
    snprintf(said, sizeof said, "%.100s %.140s", what, why);
    return said;
}

static const char *read_number(const Option *option, const char *word)
{
    char *end, range[100];
    const double number = word == NULL ? 0 : strtod(word, &end);
    if (word == NULL)
        return wrong(option->name, "needs a value");
    if (*word == '\0' || *end != '\0' || !(number >= option->least && number <= option->most) ||
        (option->whole && number != floor(number))) {
        snprintf(range, sizeof range, "%.40s: not a%s number from %g to %g", word, option->whole ? " whole" : "",
                 option->least, option->most);
        return wrong(option->name, range);
    }
    *(double *)option->value = number;
    return NULL;
}

static const char *read_option(const Option *option, const char *word, int *at)
{
    if (option->least == option->most && option->whole) {
        *(bool *)option->value = true;
        return NULL;
    }
    ++*at;
    if (option->least < option->most)
        return read_number(option, word);
    *(const char **)option->value = word;
    return word == NULL ? wrong(option->name, "needs a file") : NULL;
}

static const char *read_kind(Options *options, const char *word)
{
    for (int kind = 0; word != NULL && kind < KINDS; kind++)
        if (strcmp(word, NAMES[kind]) == 0) {
            options->kind = kind;
            return NULL;
        }
    if (word == NULL)
        return "the first word says what to do: independent, barrier, coevp or rate";
    return wrong(word, "is none of independent, barrier, coevp, rate");
}

static const char *complete(const Options *options)
{
    if (options->kind == RATE)
        return NULL;
#ifdef WITH_MPI
    if (options->threads > 0)
        return "--threads: an MPI program has the number that its launcher starts";
#else
    if (options->threads == 0)
        return "--threads is missing";
#endif
    if (options->xen_clock && !open_xen_clock((int)options->threads))
        return "--xen-clock: Xen does not count the time of that number of processors here";
    return (options->seconds > 0) == (options->iterations > 0) ? "give one of --seconds and --iterations" : NULL;
}

const char *read_options(Options *options, int count, char **words)
{
    *options = (Options){.iteration = 0.1, .interval = 1e-3, .coarse = 0.01, .tasks = 16, .fine = 0.01};
    const Option known[] = {
        {"--threads", OF_ALL, 1, 1024, true, &options->threads},
        {"--iteration", 1 << INDEPENDENT, 1e-6, 3600, false, &options->iteration},
        {"--interval", 1 << BARRIER, 1e-6, 3600, false, &options->interval},
        {"--spin", 1 << BARRIER, 0, 0, true, &options->spin},
        {"--imbalance", 1 << BARRIER, 0, 1, false, &options->imbalance},
        {"--coarse", 1 << COEVP, 0, 3600, false, &options->coarse},
        {"--tasks", 1 << COEVP, 1, 1e6, true, &options->tasks},
        {"--fine", 1 << COEVP, 0, 3600, false, &options->fine},
        {"--spread", 1 << COEVP, 0, 3, false, &options->spread},
        {"--wait", 1 << COEVP, 0, 3600, false, &options->wait},
        {"--pin", OF_ALL, 0, 0, true, &options->pin},
        {"--xen-clock", 1 << INDEPENDENT | 1 << COEVP, 0, 0, true, &options->xen_clock},
        {"--seconds", OF_ALL, 1e-3, 1e6, false, &options->seconds},
        {"--iterations", OF_ALL, 1, 1e9, true, &options->iterations},
        {"--seed", OF_ALL, 0, 1e15, true, &options->seed},
        {"--rate", OF_ALL, 1e3, 1e12, false, &options->rate},
        {"--log", OF_ALL, 0, 0, false, &options->log},
        {"--trace", OF_ALL, 0, 0, false, &options->trace},
    };
    const char *why = read_kind(options, count > 1 ? words[1] : NULL);
    for (int at = 2; why == NULL && at < count; at++) {
        const Option *option = known, *end = known + sizeof known / sizeof *known;
        while (option < end && strcmp(option->name, words[at]) != 0)
            option++;
        if (option == end)
            return wrong(words[at], "is no option");
        if ((option->kinds & 1 << options->kind) == 0)
            return wrong(words[at], "is no option of this kind");
        why = read_option(option, at + 1 < count ? words[at + 1] : NULL, &at);
    }
    return why != NULL ? why : complete(options);
}

int main(int count, char **words)
{
    Options options;
    int first = 1, code = 0;
#ifdef WITH_MPI
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    first = rank == 0;
#endif
    const char *why = read_options(&options, count, words);
    if (why != NULL) {
        if (first)
            fprintf(stderr, "work: %s\n", why);
        code = 2;
    } else if (options.kind == RATE) {
        if (first)
            printf("%.0f\n", measured_rate());
    } else {
        code = run_team(&options, work);
    }
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return code;
}
