#define _GNU_SOURCE
#include "choices.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report.h"

/* After a call that took too long, the engine rests REST times as long. So it costs slurmctld at most 2 % of its time. */
enum { REST = 50 };

static uint64_t rest_until;

/* When a call of the engine began. Processor time is read only for a while after a call that was too long by the clock,
 * because reading it takes longer than most calls. Time spent waiting for the processor is not the engine's fault. */
typedef struct {
    uint64_t steady;
    uint64_t thread; /* 0: not read */
} Began;

static uint64_t watched_until;
static const uint64_t WATCHED = 10000000000;

bool choices_rest(void)
{
    return rest_until && steady_time() < rest_until;
}

static Began begun(void)
{
    Began began = {.steady = steady_time()};
    if (began.steady < watched_until)
        began.thread = thread_time();
    return began;
}

/* The processor time since the beginning if it is too long, otherwise 0. */
static uint64_t too_long(Began began)
{
    uint64_t now = steady_time();
    if (now - began.steady <= driver.config.call_nanoseconds)
        return 0;
    watched_until = now + WATCHED;
    uint64_t took = began.thread ? thread_time() - began.thread : 0;
    return took > driver.config.call_nanoseconds ? took : 0;
}

/* The result of a call of the engine. */
static Answer ended(const Question *question, topolane_status status, char *problem, Began began)
{
    uint64_t took = too_long(began);
    if (status != TOPOLANE_STATUS_OK && status != TOPOLANE_STATUS_REFUSED) {
        say(SAY_ENGINE, "job %u: the engine failed: %s", question->job,
            problem ? problem : "it says nothing");
        driver.engine.text_free(problem);
        return ENGINE_FAILED;
    }
    if (took) {
        rest_until = steady_time() + REST * took;
        say(SAY_SLOW, "job %u: the engine took %" PRIu64 " us and is not asked for %" PRIu64 " ms", question->job,
            took / 1000, REST * took / 1000000);
        return ENGINE_SLOW;
    }
    return status == TOPOLANE_STATUS_OK ? CHOSEN : NO_PLACE;
}

/* Fills in a request. Its list of usable nodes is valid until the next call. Returns false without memory. */
static bool requested(const Question *question, uint32_t nodes, topolane_request *request)
{
    driver.engine.request_init(request, sizeof *request);
    request->id = question->job;
    request->slots = nodes;
    request->min_bandwidth = question->terms.min_bandwidth;
    request->shares_nodes = question->shares_nodes;
    request->segment = question->segment;
    request->eligible_bits = driver_bits(question->candidates);
    request->eligible_words = driver.machine_words;
    return request->eligible_bits != NULL;
}

static bitstr_t *map_of(topolane_numbers nodes)
{
    bitstr_t *map = bit_alloc(driver.mapped_nodes);
    for (size_t index = 0; index < nodes.count; index++) {
        uint32_t node = nodes.first[index];
        if (node < driver.machine_nodes && driver.slurm_node[node] < (uint32_t)driver.mapped_nodes)
            bit_set(map, driver.slurm_node[node]);
    }
    return map;
}

Answer choices_place(const Question *question, uint32_t nodes, Choice *choice)
{
    topolane_request request;
    *choice = (Choice){0};
    if (!requested(question, nodes, &request))
        return ENGINE_FAILED;
    char *problem = NULL;
    Began began = begun();
    topolane_status status = driver.engine.state_place(question->state, question->policy, &request,
                                                       &choice->decision, NULL, &problem);
    Answer answer = ended(question, status, problem, began);
    if (answer != CHOSEN) {
        choices_free(choice);
        return answer;
    }
    choice->nodes = map_of(driver.engine.decision_nodes(choice->decision));
    /* Check the engine's answer: exactly the requested number of nodes, only candidates, and no spare nodes. */
    uint32_t count = (uint32_t)bit_set_count(choice->nodes);
    if (count != nodes || !bit_super_set(choice->nodes, question->candidates) ||
        driver.engine.decision_spare(choice->decision).count) {
        say(SAY_ENGINE, "job %u: the engine's answer does not fit: %u nodes, not %u", question->job, count, nodes);
        choices_free(choice);
        return ENGINE_FAILED;
    }
    return CHOSEN;
}

const char *choices_refused(const Question *question)
{
    const char *kind = driver.engine.state_refused(question->state);
    return kind ? kind : "not-now";
}

void choices_free(Choice *choice)
{
    FREE_NULL_BITMAP(choice->nodes);
    driver.engine.decision_free(choice->decision);
    choice->decision = NULL;
}

Answer choices_areas(const Question *question, uint32_t nodes, uint32_t link_use, topolane_areas **areas)
{
    topolane_request request;
    *areas = NULL;
    if (!requested(question, nodes, &request))
        return ENGINE_FAILED;
    char *problem = NULL;
    Began began = begun();
    topolane_status status = driver.engine.state_areas(question->state, &request, link_use, areas, &problem);
    Answer answer = ended(question, status, problem, began);
    if (answer != CHOSEN) {
        driver.engine.areas_free(*areas);
        *areas = NULL;
    }
    return answer;
}

bitstr_t *choices_area(const topolane_areas *areas, size_t index)
{
    return map_of(driver.engine.areas_nodes(areas, index));
}
