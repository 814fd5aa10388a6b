/* Places, claims and releases POLICY's jobs STEPS times in two threads and prints one thread's decisions:
 * sequence MACHINE POLICY STEPS. The test asks the same of Python. */
#include "check.h"

#include <pthread.h>

struct run {
    const topolane_machine *machine;
    const topolane_policy *policy;
    long steps;
    FILE *out;
};

static void *go(void *given) {
    struct run *run = given;
    topolane_state *state = NULL;
    OK(topolane_state_new(run->machine, &state, &error));
    uint64_t random = 12345, held[4096], count = 0;
    for (long step = 1; step <= run->steps; step++) {
        random = (random * 1103515245 + 12345) & 0x7fffffff;
        if (random % 3 == 0 && count > 0) {
            uint64_t at = (random / 3) % count;
            OK(topolane_state_release(state, held[at], &error));
            held[at] = held[--count];
            continue;
        }
        topolane_request request = request_of((uint64_t)step, 1 + (uint32_t)((random >> 8) % 9));
        topolane_decision *decision = NULL;
        topolane_refusal *refusal = NULL;
        char *error = NULL;
        topolane_status status =
            topolane_state_place(state, run->policy, &request, &decision, &refusal, &error);
        CHECK(status <= TOPOLANE_STATUS_REFUSED && error == NULL);
        if (status == TOPOLANE_STATUS_OK) {
            topolane_numbers nodes = topolane_decision_nodes(decision), links = topolane_decision_links(decision);
            if (run->out) {
                fprintf(run->out, "%ld", step);
                for (size_t i = 0; i < nodes.count; i++) fprintf(run->out, " %u", nodes.first[i]);
                for (size_t i = 0; i < links.count; i++) fprintf(run->out, " l%u", links.first[i]);
                fputc('\n', run->out);
            }
            OK(topolane_state_claim(state, decision, &error));
            topolane_decision_free(decision);
            held[count++] = (uint64_t)step;
        } else {
            if (run->out) {
                fprintf(run->out, "%ld %s", step, topolane_refusal_name(refusal));
                topolane_obstacle obstacle;
                for (size_t i = 0; topolane_refusal_obstacle(refusal, i, &obstacle); i++)
                    for (size_t j = 0; j < obstacle.job_count; j++)
                        fprintf(run->out, " %llu", (unsigned long long)obstacle.jobs[j]);
                fputc('\n', run->out);
            }
            topolane_refusal_free(refusal);
        }
    }
    topolane_state_free(state);
    return NULL;
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    topolane_machine *machine = NULL;
    topolane_policy *policy = NULL;
    OK(topolane_machine_preset(arguments[1], &machine, &error));
    OK(topolane_policy_new(arguments[2], 0, &policy, &error));
    struct run runs[] = {{machine, policy, atol(arguments[3]), stdout}, {machine, policy, atol(arguments[3]), NULL}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, go, &runs[i]) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    topolane_policy_free(policy);
    topolane_machine_free(machine);
    return 0;
}
