/* Every function of the interface, as a driver uses it: place, claim, release, hold, explain, copy. */
#include "check.h"

int main(void) {
    topolane_machine *machine = NULL;
    topolane_policy *isolated = NULL, *dedicated = NULL;
    topolane_state *state = NULL, *copy = NULL;
    topolane_decision *decision = NULL;
    topolane_refusal *refusal = NULL;

    CHECK(topolane_api_version() >= TOPOLANE_API_VERSION);

    /* A machine, from text as from a file: two switches of two nodes below one. */
    const char *text = "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=top Switches=a,b\n";
    OK(topolane_machine_read("topology.conf", text, strlen(text), &machine, &error));
    CHECK(topolane_machine_nodes(machine) == 4);
    CHECK(strcmp(topolane_machine_node_name(machine, 3), "n3") == 0);
    uint32_t node = 99;
    OK(topolane_machine_node(machine, "n2", &node, &error));
    CHECK(node == 2);
    CHECK(topolane_machine_block(machine, 1) == 0 && topolane_machine_block(machine, 2) == 1);

    /* One machine of two: a node that only the second names hangs on the switch of its neighbours. */
    topolane_machine *named = NULL, *joined = NULL;
    char *notes = NULL;
    const char *names = "SwitchName=x Nodes=n[0-1],new\nSwitchName=y Nodes=n[2-3]\nSwitchName=top Switches=x,y\n";
    OK(topolane_machine_read("topology.conf", names, strlen(names), &named, &error));
    OK(topolane_machine_join(machine, named, &joined, &notes, &error));
    CHECK(topolane_machine_nodes(joined) == 5 && strstr(notes, "does not name node new"));
    topolane_text_free(notes);
    topolane_machine_free(joined);
    topolane_machine_free(named);
    topolane_machine_free(machine);

    OK(topolane_machine_preset("fat-tree(radix=4)", &machine, &error));
    CHECK(topolane_machine_nodes(machine) == 16);
    OK(topolane_policy_new("isolated", 0, &isolated, &error));
    OK(topolane_policy_new("dedicated", 0, &dedicated, &error));
    OK(topolane_state_new(machine, &state, &error));

    /* Segments of two nodes lie on one leaf each; a job of three that has to lie on a leaf never fits. */
    topolane_policy *kueue = NULL, *segments = NULL;
    topolane_state *bare = NULL;
    OK(topolane_policy_new("kueue-tas", 0, &kueue, &error));
    OK(topolane_policy_new("segments", 0, &segments, &error));
    CHECK(topolane_policy_isolates(isolated) == 1 && topolane_policy_isolates(dedicated) == 1);
    CHECK(topolane_policy_isolates(kueue) == 0 && topolane_policy_isolates(segments) == 0);
    CHECK(topolane_policy_isolates(NULL) == 0);
    OK(topolane_state_new(machine, &bare, &error));
    topolane_held taken = {.size = sizeof taken, .id = 1, .bandwidth_share = 1.0};
    uint32_t first[2] = {0, 3};
    taken.nodes = first;
    taken.node_count = 2;
    OK(topolane_state_hold(bare, &taken, &error));
    topolane_request parts = request_of(2, 4);
    parts.segment = 2;
    parts.segment_level = "leaf";
    for (int rule = 0; rule < 2; rule++) {
        OK(topolane_state_place(bare, rule ? kueue : segments, &parts, &decision, NULL, &error));
        topolane_numbers found = topolane_decision_nodes(decision);
        CHECK(found.count == 4 && found.first[0] / 2 == found.first[1] / 2 && found.first[2] / 2 == found.first[3] / 2);
        topolane_decision_free(decision);
    }
    topolane_request wide = request_of(2, 3);
    wide.within = "required:leaf";
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(bare, kueue, &wide, &decision, NULL, &error));
    wide.within = "required:pod";
    OK(topolane_state_place(bare, kueue, &wide, &decision, NULL, &error));
    topolane_decision_free(decision);
    /* A program of version 3 says nothing of it. */
    wide.within = "required:leaf";
    wide.size = offsetof(topolane_request, segment);
    OK(topolane_state_place(bare, kueue, &wide, &decision, NULL, &error));
    topolane_decision_free(decision);
    topolane_state_free(bare);
    topolane_policy_free(kueue);

    /* On a dragonfly a job that spans two groups has the links between them to itself. So has one that ran before. */
    topolane_machine *dragonfly = NULL;
    topolane_policy *apart = NULL;
    OK(topolane_machine_preset("slingshot(nodes=16, groups=2, switches=4, cables=2)", &dragonfly, &error));
    OK(topolane_policy_new("isolated-global", 0, &apart, &error));
    OK(topolane_policy_check(apart, dragonfly, &error));
    BAD(topolane_policy_check(dedicated, dragonfly, &error));
    BAD(topolane_policy_check(apart, machine, &error));
    CHECK(topolane_policy_link_use(apart) == TOPOLANE_LINKS_ISOLATED_GLOBAL && topolane_policy_isolates(apart) == 0);
    CHECK(topolane_policy_link_use(isolated) == TOPOLANE_LINKS_ISOLATED);
    CHECK(topolane_policy_link_use(segments) == TOPOLANE_LINKS_SHARED && topolane_policy_link_use(NULL) == TOPOLANE_LINKS_SHARED);
    OK(topolane_state_new(dragonfly, &bare, &error));
    topolane_request ten = request_of(2, 10), five = request_of(3, 5);
    OK(topolane_state_place(bare, apart, &ten, &decision, NULL, &error));
    CHECK(topolane_decision_link_use(decision) == TOPOLANE_LINKS_ISOLATED_GLOBAL);
    topolane_decision_free(decision);
    uint32_t both[2] = {0, 8};
    topolane_held ran = {.size = sizeof ran, .id = 1, .nodes = both, .node_count = 2, .bandwidth_share = 1.0,
                         .link_use = TOPOLANE_LINKS_ISOLATED_GLOBAL};
    OK(topolane_state_hold(bare, &ran, &error));
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(bare, apart, &ten, &decision, NULL, &error));
    OK(topolane_state_place(bare, apart, &five, &decision, NULL, &error));
    topolane_decision_free(decision);
    topolane_areas *groups = NULL;
    OK(topolane_state_areas(bare, &five, TOPOLANE_LINKS_ISOLATED_GLOBAL, &groups, &error));
    CHECK(topolane_areas_count(groups) == 2 && topolane_areas_nodes(groups, 0).count == 7);
    topolane_areas_free(groups);
    topolane_state_free(bare);
    topolane_policy_free(apart);
    topolane_policy_free(segments);
    topolane_machine_free(dragonfly);

    /* A decision changes nothing until it is claimed; a claimed one is given back by its number. */
    topolane_request three = request_of(7, 3);
    CHECK(topolane_state_refused(state) == NULL);
    OK(topolane_state_place(state, isolated, &three, &decision, &refusal, &error));
    CHECK(refusal == NULL);
    topolane_numbers nodes = topolane_decision_nodes(decision);
    CHECK(nodes.count == 3 && nodes.first[0] < 16);
    CHECK(topolane_decision_links(decision).count == 0);
    CHECK(topolane_decision_spare(decision).count == 0);
    CHECK(topolane_decision_bandwidth_share(decision) == 1.0);
    CHECK(topolane_decision_link_use(decision) == TOPOLANE_LINKS_ISOLATED);
    OK(topolane_state_claim(state, decision, &error));
    BAD(topolane_state_claim(state, decision, &error));
    topolane_decision_free(decision);

    /* Every leaf of two nodes is crossed by a job: one of two nodes more is refused, and hears by which. */
    for (uint32_t leaf = 0; leaf < 8; leaf++) {
        topolane_held held = {.size = sizeof held, .id = 100 + leaf, .bandwidth_share = 1.0};
        uint32_t one = 2 * leaf;
        held.nodes = &one;
        held.node_count = 1;
        char *error = NULL;
        topolane_status status = topolane_state_hold(state, &held, &error);
        /* Job 7 has some of these. */
        CHECK(status == TOPOLANE_STATUS_OK || status == TOPOLANE_STATUS_BAD_INPUT);
        topolane_text_free(error);
    }
    topolane_request two = request_of(8, 2);
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &two, &decision, &refusal, &error));
    CHECK(decision == NULL && refusal != NULL);
    CHECK(strcmp(topolane_state_refused(state), topolane_refusal_name(refusal)) == 0);
    CHECK(strlen(topolane_refusal_name(refusal)) > 0 && strlen(topolane_refusal_text(refusal)) > 0);
    CHECK(topolane_refusal_obstacles(refusal) > 0);
    topolane_obstacle obstacle;
    CHECK(topolane_refusal_obstacle(refusal, 0, &obstacle));
    CHECK(obstacle.job_count > 0 && obstacle.jobs[0] >= 7 && strlen(obstacle.name) > 0);
    CHECK(!topolane_refusal_obstacle(refusal, 1000, &obstacle));
    topolane_refusal_free(refusal);
    /* A caller that wants no reason gets none. */
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &two, &decision, NULL, &error));

    /* What is tried on a copy leaves the state as it was. */
    OK(topolane_state_copy(state, &copy, &error));
    for (uint64_t id = 100; id < 108; id++) {
        char *error = NULL;
        topolane_state_release(copy, id, &error);
        topolane_text_free(error);
    }
    OK(topolane_state_place(copy, isolated, &two, &decision, &refusal, &error));
    topolane_decision_free(decision);
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &two, &decision, NULL, &error));
    topolane_state_free(copy);
    topolane_state_free(state);

    /* Dedicated links come with the nodes; a job that accepts half of them gets half. */
    OK(topolane_state_new(machine, &state, &error));
    topolane_request six = request_of(9, 6);
    OK(topolane_state_place(state, dedicated, &six, &decision, &refusal, &error));
    size_t links = topolane_decision_links(decision).count;
    CHECK(links > 0);
    topolane_decision_free(decision);
    six.min_bandwidth = 0.5;
    OK(topolane_state_place(state, dedicated, &six, &decision, &refusal, &error));
    CHECK(topolane_decision_links(decision).count <= links);
    CHECK(topolane_decision_bandwidth_share(decision) >= 0.5);
    topolane_decision_free(decision);

    /* Nodes out of service, nodes that a job may use, and parts of nodes. */
    OK(topolane_state_set_node(state, 0, false, &error));
    OK(topolane_state_set_link(state, 20, false, &error));
    OK(topolane_state_set_link(state, 20, true, &error));
    uint32_t first_two[] = {0, 1};
    topolane_request one = request_of(10, 1);
    one.eligible = first_two;
    one.eligible_count = 2;
    OK(topolane_state_place(state, isolated, &one, &decision, &refusal, &error));
    CHECK(topolane_decision_nodes(decision).first[0] == 1);
    topolane_decision_free(decision);
    OK(topolane_state_set_node(state, 0, true, &error));
    topolane_amount amounts[] = {{"cores", 2}, {"memory", 1 << 20}};
    topolane_request part = request_of(11, 2);
    part.amounts = amounts;
    part.amount_count = 2;
    part.stacked = true;
    part.members = first_two;
    part.member_count = 1;
    OK(topolane_state_place(state, isolated, &part, &decision, &refusal, &error));
    OK(topolane_state_claim(state, decision, &error));
    topolane_decision_free(decision);
    OK(topolane_state_release(state, 11, &error));

    topolane_state_free(state);

    /* A caller that counts slots itself: several on a node, not now or never, and within one leaf of two nodes. */
    OK(topolane_state_new(machine, &state, &error));
    uint32_t free_slots[16] = {0, 2, 2, 2}, all_slots[16] = {2, 2, 2, 2};
    topolane_request counted = request_of(12, 4);
    counted.shares_nodes = counted.stacked = true;
    counted.free_slots = free_slots;
    counted.all_slots = all_slots;
    counted.slot_count = 16;
    counted.within = "required:leaf";
    OK(topolane_state_place(state, isolated, &counted, &decision, &refusal, &error));
    CHECK(topolane_decision_nodes(decision).first[0] == 2 && topolane_decision_nodes(decision).first[3] == 3);
    topolane_decision_free(decision);
    counted.within = NULL;
    counted.slots = 7;
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &counted, &decision, NULL, &error));
    CHECK(strcmp(topolane_state_refused(state), "not-now") == 0);
    counted.slots = 9;
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &counted, &decision, NULL, &error));
    CHECK(strcmp(topolane_state_refused(state), "never") == 0);
    /* More slots of a job that has some, as near as there is; they need members and counted slots. */
    uint32_t members[] = {5, 4};
    counted.slots = 2;
    counted.members = members;
    counted.member_count = 2;
    OK(topolane_state_place_near(state, isolated, &counted, &decision, &refusal, &error));
    nodes = topolane_decision_nodes(decision);
    CHECK(nodes.count == 4 && nodes.first[0] == 5 && nodes.first[1] == 4 && nodes.first[3] <= 3);
    topolane_decision_free(decision);
    counted.slots = 7;
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place_near(state, isolated, &counted, &decision, NULL, &error));
    CHECK(strcmp(topolane_state_refused(state), "not-now") == 0);
    counted.member_count = 0;
    BAD(topolane_state_place_near(state, isolated, &counted, &decision, &refusal, &error));
    counted.members = NULL;
    counted.within = "required:9";
    BAD(topolane_state_place(state, isolated, &counted, &decision, NULL, &error));
    counted.within = "in a rack";
    BAD(topolane_state_place(state, isolated, &counted, &decision, NULL, &error));
    topolane_state_free(state);

    /* A caller that counts cores itself lets jobs of three uses of links hold nodes that others hold too. A leaf has two
     * nodes, a pod four. Pod 0 is crossed by an isolated job, pod 1 by one that shares links, pod 2 by one that uses none. */
    OK(topolane_state_new(machine, &state, &error));
    uint32_t over[3][2] = {{0, 15}, {4, 14}, {8, 13}};
    uint32_t uses[] = {TOPOLANE_LINKS_ISOLATED, TOPOLANE_LINKS_SHARED, TOPOLANE_LINKS_NONE};
    for (uint64_t id = 0; id < 6; id++) {
        topolane_held held = {.size = sizeof held, .id = id, .nodes = over[id % 3], .node_count = 2, .bandwidth_share = 1.0};
        held.link_use = uses[id % 3];
        held.shares_nodes = true;
        OK(topolane_state_hold(state, &held, &error));
    }
    uint32_t below[] = {1, 5, 9}, third_pod[] = {5, 9, 10, 11};
    topolane_request across = request_of(20, 2);
    across.shares_nodes = true;
    across.eligible = below;
    across.eligible_count = 3;
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &across, &decision, NULL, &error));
    topolane_areas *areas = NULL;
    OK(topolane_state_areas(state, &across, TOPOLANE_LINKS_ISOLATED, &areas, &error));
    CHECK(topolane_areas_count(areas) == 0);
    topolane_areas_free(areas);
    OK(topolane_state_areas(state, &across, TOPOLANE_LINKS_SHARED, &areas, &error));
    CHECK(topolane_areas_count(areas) == 1);
    topolane_numbers area = topolane_areas_nodes(areas, 0);
    CHECK(area.count == 2 && area.first[0] == 5 && area.first[1] == 9);
    CHECK(topolane_areas_nodes(areas, 1).count == 0);
    topolane_areas_free(areas);
    /* The leaf with two nodes alone, then the pod. */
    across.eligible = third_pod;
    across.eligible_count = 4;
    OK(topolane_state_areas(state, &across, TOPOLANE_LINKS_ISOLATED, &areas, &error));
    CHECK(topolane_areas_count(areas) == 2);
    CHECK(topolane_areas_nodes(areas, 0).count == 2 && topolane_areas_nodes(areas, 0).first[0] == 10);
    CHECK(topolane_areas_nodes(areas, 1).count == 3 && topolane_areas_nodes(areas, 1).first[0] == 9);
    topolane_areas_free(areas);
    for (uint64_t id = 0; id < 6; id++)
        OK(topolane_state_release(state, id, &error));
    across.eligible = below;
    across.eligible_count = 3;
    OK(topolane_state_place(state, isolated, &across, &decision, &refusal, &error));
    topolane_decision_free(decision);

    /* A copy of a state without a job answers as if that were gone; the state has it still. */
    uint32_t lower = 0, upper = 8;
    topolane_held single = {.size = sizeof single, .id = 31, .nodes = &lower, .node_count = 1, .bandwidth_share = 1.0};
    OK(topolane_state_hold(state, &single, &error));
    single.id = 32;
    single.nodes = &upper;
    OK(topolane_state_hold(state, &single, &error));
    topolane_request span = request_of(33, 15);
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &span, &decision, NULL, &error));
    uint64_t without[] = {32, 31};
    OK(topolane_state_without(state, without, 2, &copy, &error));
    OK(topolane_state_place(copy, isolated, &span, &decision, NULL, &error));
    topolane_decision_free(decision);
    topolane_state_free(copy);
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_place(state, isolated, &span, &decision, NULL, &error));

    /* One of two jobs has to go: the cheaper one, but never one of a higher rank or beyond its budget. */
    topolane_candidate jobs[] = {
        {.id = 31, .cost = 5, .budget = TOPOLANE_NO_BUDGET},
        {.id = 32, .cost = 3, .budget = TOPOLANE_NO_BUDGET},
    };
    topolane_room room = {.size = sizeof room, .candidates = jobs, .candidate_count = 2};
    topolane_room_plan *plan = NULL;
    for (int row = 0; row < 4; row++) {
        uint32_t budget = row == 2 ? 0 : 9, expected = row == 0 || row == 3;
        jobs[1].rank = row == 1;
        jobs[1].budget = row >= 2 ? 0 : TOPOLANE_NO_BUDGET;
        jobs[1].uses = 9;
        room.budgets = &budget;
        room.budget_count = 1;
        OK(topolane_state_make_room(state, isolated, &span, &room, &plan, &decision, &error));
        CHECK(topolane_room_plan_candidates(plan).count == 1);
        CHECK(topolane_room_plan_candidates(plan).first[0] == expected);
        CHECK(topolane_room_plan_cost(plan) == (expected ? 3 : 5));
        CHECK(topolane_room_plan_least(plan) <= topolane_room_plan_cost(plan));
        CHECK(topolane_decision_nodes(decision).count == 15);
        topolane_room_plan_free(plan);
        topolane_decision_free(decision);
    }
    room.candidate_count = room.budget_count = 0;
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_make_room(state, isolated, &span, &room, &plan, &decision, &error));
    CHECK(plan == NULL && decision == NULL);
    OK(topolane_state_release(state, 31, &error));
    OK(topolane_state_release(state, 32, &error));

    /* A caller that counts slots: three slots of two units each. A job that the state does not have leaves two units on each of two
     * nodes, another one more unit where one is free. */
    int64_t units[16] = {0, 0, 1, 2}, leaves[] = {2, 2}, takes[] = {2}, one_unit[] = {1};
    uint32_t most[16] = {1, 1, 1, 1}, on[] = {0, 1}, third[] = {2};
    topolane_candidate pods[] = {
        {.id = 41, .cost = 2, .budget = TOPOLANE_NO_BUDGET, .nodes = on, .node_count = 2, .amounts = leaves},
        {.id = 42, .cost = 1, .budget = TOPOLANE_NO_BUDGET, .nodes = third, .node_count = 1, .amounts = one_unit},
    };
    topolane_room freed = {.size = sizeof freed, .candidates = pods, .candidate_count = 2, .kinds = 1};
    freed.takes = takes;
    freed.free = units;
    topolane_request slots = request_of(43, 2);
    slots.shares_nodes = slots.stacked = true;
    slots.free_slots = slots.all_slots = most;
    slots.slot_count = 16;
    for (slots.slots = 2; slots.slots <= 4; slots.slots++) {
        OK(topolane_state_make_room(state, isolated, &slots, &freed, &plan, &decision, &error));
        topolane_numbers goes = topolane_room_plan_candidates(plan);
        CHECK(goes.count == (slots.slots == 4 ? 2 : 1) && goes.first[0] == (slots.slots == 2 ? 1 : 0));
        topolane_room_plan_free(plan);
        topolane_decision_free(decision);
    }
    ENDS(TOPOLANE_STATUS_REFUSED, topolane_state_make_room(state, isolated, &slots, &freed, &plan, &decision, &error));

    /* A program of version 1 has shorter structs. */
    topolane_request old = request_of(21, 1);
    topolane_request_init(&old, offsetof(topolane_request, shares_nodes));
    CHECK(old.size == offsetof(topolane_request, shares_nodes));
    OK(topolane_state_place(state, isolated, &old, &decision, &refusal, &error));
    topolane_decision_free(decision);
    topolane_held older = {.size = offsetof(topolane_held, link_use), .id = 22, .bandwidth_share = 1.0};
    older.nodes = below;
    older.node_count = 1;
    older.link_use = 99;
    OK(topolane_state_hold(state, &older, &error));

    topolane_state_free(state);
    topolane_policy_free(isolated);
    topolane_policy_free(dedicated);
    topolane_machine_free(machine);
    puts("ok");
    return 0;
}
