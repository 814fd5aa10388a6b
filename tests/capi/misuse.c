/* What a caller gets wrong is BAD_INPUT with a sentence, and a panic is FAILED: never the end of the process. */
#define TOPOLANE_TEST_PANIC
#include "check.h"

int main(void) {
    topolane_machine *machine = NULL, *other = NULL;
    topolane_policy *policy = NULL;
    topolane_state *state = NULL, *small = NULL;
    topolane_decision *decision = NULL;
    topolane_refusal *refusal = NULL;
    uint32_t node;

    /* NULL everywhere, with and without a place for the error. */
    BAD(topolane_machine_preset(NULL, &machine, &error));
    BAD(topolane_machine_preset("cab", NULL, &error));
    CHECK(topolane_machine_preset(NULL, NULL, NULL) == TOPOLANE_STATUS_BAD_INPUT);
    BAD(topolane_machine_read(NULL, "", 0, &machine, &error));
    char *notes = NULL;
    BAD(topolane_machine_join(NULL, NULL, &machine, &notes, &error));
    CHECK(topolane_state_refused(NULL) == NULL);
    BAD(topolane_machine_read("x.toml", NULL, 5, &machine, &error));
    BAD(topolane_policy_new(NULL, 0, &policy, &error));
    BAD(topolane_state_new(NULL, &state, &error));
    BAD(topolane_state_copy(NULL, &state, &error));
    BAD(topolane_state_hold(NULL, NULL, &error));
    BAD(topolane_state_claim(NULL, NULL, &error));
    BAD(topolane_state_release(NULL, 1, &error));
    BAD(topolane_state_set_node(NULL, 0, true, &error));
    BAD(topolane_state_set_link(NULL, 0, true, &error));
    BAD(topolane_state_place(NULL, NULL, NULL, &decision, &refusal, &error));
    CHECK(topolane_machine_nodes(NULL) == 0 && topolane_machine_node_name(NULL, 0) == NULL);
    CHECK(topolane_machine_block(NULL, 0) == UINT32_MAX);
    CHECK(topolane_decision_nodes(NULL).count == 0 && topolane_decision_nodes(NULL).first == NULL);
    CHECK(topolane_decision_links(NULL).count == 0 && topolane_decision_spare(NULL).count == 0);
    CHECK(topolane_decision_bandwidth_share(NULL) == 1.0);
    CHECK(topolane_refusal_name(NULL) == NULL && topolane_refusal_text(NULL) == NULL);
    CHECK(topolane_refusal_obstacles(NULL) == 0 && !topolane_refusal_obstacle(NULL, 0, NULL));
    topolane_machine_free(NULL);
    topolane_policy_free(NULL);
    topolane_state_free(NULL);
    topolane_decision_free(NULL);
    topolane_refusal_free(NULL);
    topolane_text_free(NULL);
    topolane_request_init(NULL, sizeof(topolane_request));

    /* Names and texts that cannot be. */
    BAD(topolane_machine_preset("no such machine", &machine, &error));
    BAD(topolane_machine_preset("\xff\xfe", &machine, &error));
    BAD(topolane_machine_read("x.toml", "name = [", 8, &machine, &error));
    BAD(topolane_machine_read("x.toml", "\xff", 1, &machine, &error));
    BAD(topolane_machine_read("x", "nothing known", 13, &machine, &error));
    BAD(topolane_policy_new("no such policy", 0, &policy, &error));
    CHECK(machine == NULL && policy == NULL);

    OK(topolane_machine_preset("fat-tree(radix=4)", &machine, &error));
    OK(topolane_policy_new("isolated", 0, &policy, &error));
    OK(topolane_state_new(machine, &state, &error));
    BAD(topolane_machine_node(machine, "absent", &node, &error));
    CHECK(topolane_machine_node_name(machine, 16) == NULL);

    /* Requests that cannot be. */
    topolane_request request = request_of(1, 0);
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    request = request_of(1, 2);
    request.size = 8;
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    double shares[] = {0.0, -1.0, 1.5, 0.0 / 0.0};
    for (int i = 0; i < 4; i++) {
        request = request_of(1, 2);
        request.min_bandwidth = shares[i];
        BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    }
    uint32_t wrong[] = {16};
    request = request_of(1, 2);
    request.eligible = wrong;
    request.eligible_count = 1;
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    request.eligible = NULL;
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    request = request_of(1, 2);
    request.members = wrong;
    request.member_count = 1;
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    request.member_count = (size_t)-1 / 2;
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    topolane_amount amounts[] = {{NULL, 1}};
    request = request_of(1, 2);
    request.amounts = amounts;
    request.amount_count = 1;
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    amounts[0].name = "no such resource";
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    amounts[0] = (topolane_amount){"cores", UINT64_MAX};
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    const char *levels[] = {"rack", "", "9", "domain", "required:9", "required:domain", "leaf:required"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        request = request_of(1, 2);
        request.segment = 1;
        request.segment_level = levels[i];
        BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
        request = request_of(1, 2);
        request.within = levels[i];
        BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    }
    request = request_of(1, UINT32_MAX);
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, policy, &request, &decision, NULL, &error));

    /* Areas that cannot be. */
    topolane_areas *areas = NULL;
    request = request_of(1, 2);
    BAD(topolane_state_areas(NULL, &request, TOPOLANE_LINKS_SHARED, &areas, &error));
    BAD(topolane_state_areas(state, NULL, TOPOLANE_LINKS_SHARED, &areas, &error));
    BAD(topolane_state_areas(state, &request, TOPOLANE_LINKS_SHARED, NULL, &error));
    BAD(topolane_state_areas(state, &request, TOPOLANE_LINKS_NONE, &areas, &error));
    CHECK(areas == NULL && topolane_areas_count(NULL) == 0 && topolane_areas_nodes(NULL, 0).count == 0);
    topolane_areas_free(NULL);

    /* Room that cannot be made. */
    topolane_room_plan *plan = NULL;
    uint64_t nothing[] = {5};
    BAD(topolane_state_without(NULL, nothing, 0, &small, &error));
    BAD(topolane_state_without(state, nothing, 1, &small, &error));
    BAD(topolane_state_without(state, NULL, 1, &small, &error));
    BAD(topolane_state_without(state, nothing, 0, NULL, &error));
    CHECK(small == NULL);
    topolane_candidate candidate = {.id = 9, .budget = TOPOLANE_NO_BUDGET};
    topolane_room good = {.size = sizeof good, .candidates = &candidate, .candidate_count = 1}, room = good;
    request = request_of(1, 2);
    BAD(topolane_state_make_room(NULL, policy, &request, &room, &plan, &decision, &error));
    BAD(topolane_state_make_room(state, NULL, &request, &room, &plan, &decision, &error));
    BAD(topolane_state_make_room(state, policy, NULL, &room, &plan, &decision, &error));
    BAD(topolane_state_make_room(state, policy, &request, NULL, &plan, &decision, &error));
    BAD(topolane_state_make_room(state, policy, &request, &room, NULL, &decision, &error));
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, NULL, &error));
    room.size = 8;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    topolane_candidate twice[] = {candidate, candidate};
    room = good;
    room.candidates = twice;
    room.candidate_count = 2;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    room = good;
    room.candidates = NULL;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    room = good;
    candidate.budget = 0;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    candidate.budget = TOPOLANE_NO_BUDGET;
    double costs[] = {-1.0, 0.0 / 0.0, 1.0 / 0.0};
    for (int i = 0; i < 3; i++) {
        candidate.cost = costs[i];
        BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    }
    candidate.cost = 0;
    /* Slots that follow from amounts: limits, kinds, nodes and amounts that cannot be. */
    int64_t takes[] = {1}, free[16] = {0}, below[] = {-1}, most_of_all[16];
    uint32_t all_slots[16] = {0}, wrong_node[] = {16};
    for (int i = 0; i < 16; i++)
        most_of_all[i] = INT64_MAX;
    room.kinds = 1;
    room.takes = takes;
    room.free = free;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    request.shares_nodes = true;
    request.free_slots = request.all_slots = all_slots;
    request.slot_count = 16;
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    room.kinds = SIZE_MAX;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    room.kinds = 1;
    room.free = NULL;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    room.free = free;
    candidate.nodes = wrong_node;
    candidate.node_count = 1;
    candidate.amounts = takes;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    wrong_node[0] = 1;
    candidate.amounts = below;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    candidate.amounts = NULL;
    BAD(topolane_state_make_room(state, policy, &request, &room, &plan, &decision, &error));
    /* The largest numbers do not overflow. */
    for (int i = 0; i < 16; i++)
        all_slots[i] = UINT32_MAX;
    room.free = candidate.amounts = most_of_all;
    request.slots = 1000;
    request.stacked = true;
    topolane_status status = topolane_state_make_room(state, policy, &request, &room, &plan, &decision, NULL);
    CHECK(status == TOPOLANE_STATUS_REFUSED || status == TOPOLANE_STATUS_OK);
    topolane_room_plan_free(plan);
    topolane_decision_free(decision);
    CHECK(topolane_room_plan_candidates(NULL).count == 0 && topolane_room_plan_cost(NULL) == 0);
    CHECK(topolane_room_plan_least(NULL) == 0);
    topolane_room_plan_free(NULL);

    /* Jobs that cannot be. */
    topolane_held held = {.size = sizeof held, .id = 5, .bandwidth_share = 1.0};
    BAD(topolane_state_hold(state, &held, &error));
    held.nodes = wrong;
    held.node_count = 1;
    BAD(topolane_state_hold(state, &held, &error));
    uint32_t first = 0, no_link = UINT32_MAX;
    held.nodes = &first;
    held.links = &no_link;
    held.link_count = 1;
    BAD(topolane_state_hold(state, &held, &error));
    held.link_count = 0;
    held.bandwidth_share = 2.0;
    BAD(topolane_state_hold(state, &held, &error));
    held.bandwidth_share = 1.0;
    held.link_use = TOPOLANE_LINKS_ISOLATED_GLOBAL + 1;
    BAD(topolane_state_hold(state, &held, &error));
    held.link_use = TOPOLANE_LINKS_SHARED;
    held.size = 8;
    BAD(topolane_state_hold(state, &held, &error));
    held.size = sizeof held;
    OK(topolane_state_hold(state, &held, &error));
    BAD(topolane_state_hold(state, &held, &error));
    held.id = 6;
    BAD(topolane_state_hold(state, &held, &error));
    BAD(topolane_state_release(state, 6, &error));
    BAD(topolane_state_set_node(state, 16, true, &error));
    BAD(topolane_state_set_link(state, UINT32_MAX, true, &error));

    /* A decision for another machine, smaller or larger, and one whose node another job took first. */
    OK(topolane_machine_preset("fat-tree(radix=2)", &other, &error));
    OK(topolane_state_new(other, &small, &error));
    OK(topolane_state_release(state, 5, &error));
    request = request_of(1, 2);
    OK(topolane_state_place(small, policy, &request, &decision, &refusal, &error));
    BAD(topolane_state_claim(state, decision, &error));
    topolane_decision_free(decision);
    request = request_of(1, 9);
    OK(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    BAD(topolane_state_claim(small, decision, &error));
    held.id = 6;
    uint32_t taken = topolane_decision_nodes(decision).first[0];
    held.nodes = &taken;
    OK(topolane_state_hold(state, &held, &error));
    BAD(topolane_state_claim(state, decision, &error));
    topolane_decision_free(decision);

    /* A panic: the process lives, the state says that it is of no use, others work on. */
    ENDS(TOPOLANE_STATUS_FAILED, topolane_test_panic(state, &error));
    CHECK(topolane_test_panic(small, NULL) == TOPOLANE_STATUS_FAILED);
    request = request_of(2, 1);
    BAD(topolane_state_place(state, policy, &request, &decision, &refusal, &error));
    BAD(topolane_state_copy(state, &small, &error));
    topolane_state *fresh = NULL;
    OK(topolane_state_new(machine, &fresh, &error));
    OK(topolane_state_place(fresh, policy, &request, &decision, &refusal, &error));
    topolane_decision_free(decision);

    topolane_state_free(fresh);
    topolane_state_free(small);
    topolane_state_free(state);
    topolane_policy_free(policy);
    topolane_machine_free(other);
    topolane_machine_free(machine);
    puts("ok");
    return 0;
}
