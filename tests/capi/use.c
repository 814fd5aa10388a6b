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
    topolane_machine_free(machine);

    OK(topolane_machine_preset("fat-tree(radix=4)", &machine, &error));
    CHECK(topolane_machine_nodes(machine) == 16);
    OK(topolane_policy_new("isolated", 0, &isolated, &error));
    OK(topolane_policy_new("dedicated", 0, &dedicated, &error));
    OK(topolane_state_new(machine, &state, &error));

    /* A decision changes nothing until it is claimed; a claimed one is given back by its number. */
    topolane_request three = request_of(7, 3);
    OK(topolane_state_place(state, isolated, &three, &decision, &refusal, &error));
    CHECK(refusal == NULL);
    topolane_numbers nodes = topolane_decision_nodes(decision);
    CHECK(nodes.count == 3 && nodes.first[0] < 16);
    CHECK(topolane_decision_links(decision).count == 0);
    CHECK(topolane_decision_spare(decision).count == 0);
    CHECK(topolane_decision_bandwidth_share(decision) == 1.0);
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
    topolane_policy_free(isolated);
    topolane_policy_free(dedicated);
    topolane_machine_free(machine);
    puts("ok");
    return 0;
}
