/* The engine of Topolane for programs in C. Generated from crates/capi by `make header`; do not edit.
 *
 * docs/reference/c-api.md has the rules: who frees what, threads, errors and versions. */

#ifndef TOPOLANE_H
#define TOPOLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The version of this interface. A library serves programs that were compiled for the same version or a lower one: functions
 and members of structs are added, never changed or taken away, or else this number jumps to the next multiple of 1000.
 */
#define TOPOLANE_API_VERSION 8

/*
 The job may use all uplinks of the groups that it crosses, but for those that other jobs own. Isolated jobs keep off them.
 */
#define TOPOLANE_LINKS_SHARED 0

/*
 No other job may use the links that the job may use: those that it owns, or all uplinks of the groups that it crosses.
 */
#define TOPOLANE_LINKS_ISOLATED 1

/*
 The job counts as using no link: it may meet any other job.
 */
#define TOPOLANE_LINKS_NONE 2

/*
 On a dragonfly: no other job may use the links between groups that the job may use. Elsewhere as
 `TOPOLANE_LINKS_SHARED`. Since version 8.
 */
#define TOPOLANE_LINKS_ISOLATED_GLOBAL 3

/*
 The place of a candidate that no budget limits.
 */
#define TOPOLANE_NO_BUDGET UINT32_MAX

/*
 How a call ended.
 */
typedef enum topolane_status {
  /*
   The call did what was asked.
   */
  TOPOLANE_STATUS_OK = 0,
  /*
   The policy refuses the request.
   */
  TOPOLANE_STATUS_REFUSED = 1,
  /*
   The caller gave something that cannot be: the error text says what.
   */
  TOPOLANE_STATUS_BAD_INPUT = 2,
  /*
   The library failed. Nothing was changed, but a state that was to be changed is of no use any more.
   */
  TOPOLANE_STATUS_FAILED = 3,
} topolane_status;

/*
 Sets of free nodes. A job on any nodes of one set keeps off the links of others.
 */
typedef struct topolane_areas topolane_areas;

/*
 The nodes and links for a request. It changes nothing until a state claims it.
 */
typedef struct topolane_decision topolane_decision;

/*
 A machine: its nodes and its switches. It never changes.
 */
typedef struct topolane_machine topolane_machine;

/*
 A rule that chooses nodes. It never changes.
 */
typedef struct topolane_policy topolane_policy;

/*
 A refusal, and the groups that stand in the way.
 */
typedef struct topolane_refusal topolane_refusal;

/*
 The jobs that must go. Since version 7.
 */
typedef struct topolane_room_plan topolane_room_plan;

/*
 Which job holds what on a machine. One thread at a time may use it.
 */
typedef struct topolane_state topolane_state;

/*
 An amount of a counted resource: `cores`, `memory` in bytes, or one that the machine file counts, such as `gpu`.
 */
typedef struct topolane_amount {
  /*
   The name of the resource.
   */
  const char *name;
  /*
   How much of it.
   */
  uint64_t count;
} topolane_amount;

/*
 A request for slots. Set it up with `topolane_request_init`, then fill in what is wanted. The arrays belong to the caller and
 need live only during the call.
 */
typedef struct topolane_request {
  /*
   The size of this struct where it was compiled: `topolane_request_init` sets it.
   */
  size_t size;
  /*
   Identity of the job, unique among those that a state holds.
   */
  uint64_t id;
  /*
   Slots wanted, at least 1: nodes, or parts of nodes if `amounts` are given.
   */
  uint32_t slots;
  /*
   Whether several slots may lie on one node.
   */
  bool stacked;
  /*
   The least share of full bandwidth that the job accepts on dedicated links, over 0 and up to 1.
   */
  double min_bandwidth;
  /*
   What each slot takes from its node; none: the whole node.
   */
  const struct topolane_amount *amounts;
  /*
   How many amounts.
   */
  size_t amount_count;
  /*
   Nodes that it may use.
   */
  const uint32_t *eligible;
  /*
   Entries in `eligible`; `SIZE_MAX` for all nodes of the machine, which is what `topolane_request_init` sets.
   */
  size_t eligible_count;
  /*
   Nodes on which members of the same group run, once per member.
   */
  const uint32_t *members;
  /*
   The number of entries in `members`.
   */
  size_t member_count;
  /*
   Whether a slot takes nothing of what is counted of its node, so that any number of jobs may be on it. `amounts` are
   then not looked at. For a caller that knows itself which nodes have room and names them in `eligible`. Since version 2.
   */
  bool shares_nodes;
  /*
   In place of `eligible`, the nodes that it may use as bits, node 0 in the lowest bit of the first word; NULL: `eligible`
   counts. Since version 3.
   */
  const uint64_t *eligible_bits;
  /*
   How many words of 64 bits; nodes beyond them may not be used. Since version 3.
   */
  size_t eligible_words;
  /*
   Nodes of each part of the job that must lie in one group of `segment_level`; 0: there are no such parts. Since version 4.
   */
  uint32_t segment;
  /*
   `node`, `leaf`, `pod`, `domain`, or the number of a level of the tree; NULL: domains or, where there are none, leaves.
   Only Kueue's rules look at it. Since version 4.
   */
  const char *segment_level;
  /*
   The free slots of each node, for a caller that keeps count of them itself; NULL: the state does. Not looked at
   unless `shares_nodes`. More than one on a node only if `stacked`. Since version 4.
   */
  const uint32_t *free_slots;
  /*
   The slots of each node if nothing ran on it, an entry for each of `free_slots`; NULL: the free ones. They
   distinguish *not now* from *never*. Since version 4.
   */
  const uint32_t *all_slots;
  /*
   The number of entries in `free_slots`; nodes beyond them have no slot. Since version 4.
   */
  size_t slot_count;
  /*
   The group that must hold the job, under every policy: `unconstrained`, `preferred:LEVEL` or `required:LEVEL`, where LEVEL is
   `node`, `leaf`, `pod`, `domain` or the number of a level of the tree; NULL: the policy's own rule. Since version 4.
   */
  const char *within;
} topolane_request;

/*
 Numbers that belong to an object.
 */
typedef struct topolane_numbers {
  /*
   The first; NULL if there are none.
   */
  const uint32_t *first;
  /*
   How many numbers there are.
   */
  size_t count;
} topolane_numbers;

/*
 A group that stands in the way. Its pointers live as long as the refusal.
 */
typedef struct topolane_obstacle {
  /*
   Its name.
   */
  const char *name;
  /*
   Its level: 1 is a leaf.
   */
  uint32_t level;
  /*
   Its index in the level.
   */
  uint32_t group;
  /*
   Slots in it that the request could use if slots were all it needs.
   */
  uint32_t free;
  /*
   How many are missing: of its uplinks if `uplinks` is not 0, else slots.
   */
  uint32_t missing;
  /*
   How many uplinks the group has; 0 where slots are missing.
   */
  uint32_t uplinks;
  /*
   The jobs that hold what is missing, ascending.
   */
  const uint64_t *jobs;
  /*
   The number of entries in `jobs`.
   */
  size_t job_count;
} topolane_obstacle;

/*
 A job that may go, alone or as a whole group. Since version 7.
 */
typedef struct topolane_candidate {
  /*
   Identity of the job. It gives back what the state holds for it, if it holds anything.
   */
  uint64_t id;
  /*
   What it costs that it goes, at least 0.
   */
  double cost;
  /*
   Candidates of a higher rank go only if those of lower ranks are not enough.
   */
  uint32_t rank;
  /*
   Its place in the budgets; `TOPOLANE_NO_BUDGET` for none.
   */
  uint32_t budget;
  /*
   How much of that budget it uses up.
   */
  uint32_t uses;
  /*
   Nodes on which it leaves something, where the caller counts slots.
   */
  const uint32_t *nodes;
  /*
   The number of entries in `nodes`.
   */
  size_t node_count;
  /*
   The amounts of each kind that it leaves, node after node: `node_count` times `kinds`.
   */
  const int64_t *amounts;
} topolane_candidate;

/*
 What may be done to make room. Set it to zero, then `size` to `sizeof(topolane_room)`. The arrays belong to the caller and need
 live only during the call. Since version 7.
 */
typedef struct topolane_room {
  /*
   The size of this struct where it was compiled.
   */
  size_t size;
  /*
   The jobs that may go. Of sets that cost the same, one of earlier candidates is named.
   */
  const struct topolane_candidate *candidates;
  /*
   The number of entries in `candidates`.
   */
  size_t candidate_count;
  /*
   How much of each budget may be used up.
   */
  const uint32_t *budgets;
  /*
   The number of entries in `budgets`.
   */
  size_t budget_count;
  /*
   How many kinds of amounts slots follow from, for a caller that counts slots itself; 0: the state counts.
   */
  size_t kinds;
  /*
   What a slot takes of each kind.
   */
  const int64_t *takes;
  /*
   What is free of each kind now, node after node for all nodes of the machine; below 0 where more is held than there is.
   `free_slots` of the request is then not looked at, and `all_slots` limits the slots of each node.
   */
  const int64_t *free;
  /*
   How often the policy is asked at most; 0: a number that fits the machine.
   */
  uint32_t questions;
} topolane_room;

/*
 What a job holds that runs already.
 */
typedef struct topolane_held {
  /*
   The size of this struct where it was compiled: set it to `sizeof(topolane_held)`.
   */
  size_t size;
  /*
   Identity of the job.
   */
  uint64_t id;
  /*
   Its nodes in rank order, once per slot.
   */
  const uint32_t *nodes;
  /*
   The number of entries in `nodes`.
   */
  size_t node_count;
  /*
   What each slot takes from its node; none: the whole node.
   */
  const struct topolane_amount *amounts;
  /*
   How many amounts.
   */
  size_t amount_count;
  /*
   The cables that only this job may use.
   */
  const uint32_t *links;
  /*
   The number of entries in `links`.
   */
  size_t link_count;
  /*
   The share of full bandwidth on them.
   */
  double bandwidth_share;
  /*
   Which use of links it counts as: `TOPOLANE_LINKS_SHARED` and so on. Since version 2.
   */
  uint32_t link_use;
  /*
   Whether it takes nothing of what is counted of its nodes, so that any number of jobs may be on them. `amounts` are
   then not looked at. For a caller that knows itself which nodes have room. Since version 2.
   */
  bool shares_nodes;
} topolane_held;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the interface that this library has: `TOPOLANE_API_VERSION` when it was built.
 */
uint32_t topolane_api_version(void);

#if defined(TOPOLANE_TEST_PANIC)
/*
 Panics inside the engine, for the tests: answers what every other function would answer then.
 */
enum topolane_status topolane_test_panic(struct topolane_state *state, char **error);
#endif

/*
 The sets of free nodes from which a caller may choose for a request by itself. A job on any nodes of one set keeps off the links
 of isolated jobs if `link_use` is `TOPOLANE_LINKS_SHARED`, of all jobs if it is `TOPOLANE_LINKS_ISOLATED`, and of all jobs
 between groups if it is `TOPOLANE_LINKS_ISOLATED_GLOBAL`. Every set has
 as many nodes as the request has slots; those inside lower groups come first, of one level the smaller ones. Since version 2.
 */
enum topolane_status topolane_state_areas(struct topolane_state *state,
                                          const struct topolane_request *request,
                                          uint32_t link_use,
                                          struct topolane_areas **found,
                                          char **error);

/*
 How many sets there are; 0 for NULL. Since version 2.
 */
size_t topolane_areas_count(const struct topolane_areas *areas);

/*
 The nodes of one set, ascending; none if there is no such one. Since version 2.
 */
struct topolane_numbers topolane_areas_nodes(const struct topolane_areas *areas, size_t index);

/*
 Frees areas. Since version 2.
 */
void topolane_areas_free(struct topolane_areas *areas);

/*
 The nodes in rank order, once per slot; none for NULL.
 */
struct topolane_numbers topolane_decision_nodes(const struct topolane_decision *decision);

/*
 The cables between switches that only this job may use, ascending; none from a policy that dedicates none.
 */
struct topolane_numbers topolane_decision_links(const struct topolane_decision *decision);

/*
 Nodes that the job holds and does not use.
 */
struct topolane_numbers topolane_decision_spare(const struct topolane_decision *decision);

/*
 The share of full bandwidth on its links; 1 where there is nothing to share, and for NULL.
 */
double topolane_decision_bandwidth_share(const struct topolane_decision *decision);

/*
 Which use of links the job counts as, for `link_use` of `topolane_held`; `TOPOLANE_LINKS_SHARED` for NULL. Since version 4.
 */
uint32_t topolane_decision_link_use(const struct topolane_decision *decision);

/*
 Frees a decision. A state that claimed it keeps what it needs.
 */
void topolane_decision_free(struct topolane_decision *decision);

/*
 Frees a text that the library handed out, such as an error.
 */
void topolane_text_free(char *text);

/*
 Reads a machine from the `length` bytes of `content`: Topolane's TOML, Slurm's topology.conf, or what ibnetdiscover prints.
 `source` is the name of the file, for errors and to tell the format. The library reads no file itself.
 */
enum topolane_status topolane_machine_read(const char *source,
                                           const char *content,
                                           size_t length,
                                           struct topolane_machine **machine,
                                           char **error);

/*
 A machine by name: `cab`, `fat-tree(radix=16)`.
 */
enum topolane_status topolane_machine_preset(const char *name,
                                             struct topolane_machine **machine,
                                             char **error);

/*
 One machine of two that describe the same nodes: the cables of `wiring`, and the nodes that only `tree` names on the switches
 of their neighbours. `notes` is set to what was assumed, a sentence a line, or to NULL if nothing was; free it with
 `topolane_text_free`. Since version 3.
 */
enum topolane_status topolane_machine_join(const struct topolane_machine *wiring,
                                           const struct topolane_machine *tree,
                                           struct topolane_machine **machine,
                                           char **notes,
                                           char **error);

/*
 Frees a machine. States made of it live on.
 */
void topolane_machine_free(struct topolane_machine *machine);

/*
 How many nodes a machine has; 0 for NULL. They are numbered from 0.
 */
uint32_t topolane_machine_nodes(const struct topolane_machine *machine);

/*
 The name of a node, or NULL if there is no such node. It lives as long as the machine.
 */
const char *topolane_machine_node_name(const struct topolane_machine *machine, uint32_t node);

/*
 The number of the node of a name.
 */
enum topolane_status topolane_machine_node(const struct topolane_machine *machine,
                                           const char *name,
                                           uint32_t *node,
                                           char **error);

/*
 The number of a node's block: its domain, or its leaf if it is in none; `UINT32_MAX` if there is no such node. The nodes of
 a leaf, of a pod and so on have numbers in a row. Since version 8.
 */
uint32_t topolane_machine_block(const struct topolane_machine *machine,
                                uint32_t node);

/*
 The policy of a name, such as `isolated` or `dedicated`; `seed` matters to those that draw at random.
 */
enum topolane_status topolane_policy_new(const char *name,
                                         uint64_t seed,
                                         struct topolane_policy **made,
                                         char **error);

/*
 Whether a live system can keep what the policy promises on the wiring of a machine. `BadInput`: it cannot; `error` says why.
 Since version 8.
 */
enum topolane_status topolane_policy_check(const struct topolane_policy *policy,
                                           const struct topolane_machine *machine,
                                           char **error);

/*
 1 if the policy promises isolation: no link carries the traffic of two of its jobs. 0 if not, and for NULL. Since version 6.
 */
uint32_t topolane_policy_isolates(const struct topolane_policy *policy);

/*
 Which use of links the policy promises its jobs: `TOPOLANE_LINKS_SHARED` if none, and for NULL. Since version 8.
 */
uint32_t topolane_policy_link_use(const struct topolane_policy *policy);

/*
 Frees a policy.
 */
void topolane_policy_free(struct topolane_policy *policy);

/*
 The kind: `not-now`, `never`, `would-share-links` or `cannot-isolate`; NULL for NULL.
 */
const char *topolane_refusal_name(const struct topolane_refusal *refusal);

/*
 The reason in a sentence; NULL for NULL.
 */
const char *topolane_refusal_text(const struct topolane_refusal *refusal);

/*
 How many groups stand in the way; 0 for NULL.
 */
size_t topolane_refusal_obstacles(const struct topolane_refusal *refusal);

/*
 One of the groups that stand in the way, those with most free slots first; false if there is no such one.
 */
bool topolane_refusal_obstacle(const struct topolane_refusal *refusal,
                               size_t index,
                               struct topolane_obstacle *obstacle);

/*
 Frees a refusal.
 */
void topolane_refusal_free(struct topolane_refusal *refusal);

/*
 Sets a request up for one whole node anywhere, at full bandwidth. `size` is `sizeof(topolane_request)`; members of a newer
 library beyond it are left alone.
 */
void topolane_request_init(struct topolane_request *request,
                           size_t size);

/*
 Looks for jobs that must end so that the policy can place a request. The state does not change.

 `plan` gets the candidates that must go, `decision` the place of the request once they are gone. Of the sets that the search
 finds it takes the cheapest. It names no candidate that need not go, none of a higher rank if those of lower ranks are enough, and
 never more than the budgets allow. `Refused`: it finds no set. Since version 7.
 */
enum topolane_status topolane_state_make_room(struct topolane_state *state,
                                              const struct topolane_policy *policy,
                                              const struct topolane_request *request,
                                              const struct topolane_room *room,
                                              struct topolane_room_plan **plan,
                                              struct topolane_decision **decision,
                                              char **error);

/*
 The places of the candidates that must go, ascending; none for NULL. Since version 7.
 */
struct topolane_numbers topolane_room_plan_candidates(const struct topolane_room_plan *plan);

/*
 What the plan costs; 0 for NULL. Since version 7.
 */
double topolane_room_plan_cost(const struct topolane_room_plan *plan);

/*
 What any plan of candidates of these ranks costs at least: the plan is the cheapest if this is its cost; 0 for NULL. Since
 version 7.
 */
double topolane_room_plan_least(const struct topolane_room_plan *plan);

/*
 Frees a plan. Since version 7.
 */
void topolane_room_plan_free(struct topolane_room_plan *plan);

/*
 A state of a machine: empty, every node and cable in service. It keeps what it needs of the machine.
 */
enum topolane_status topolane_state_new(const struct topolane_machine *machine,
                                        struct topolane_state **state,
                                        char **error);

/*
 A copy of a state, to try things on.
 */
enum topolane_status topolane_state_copy(struct topolane_state *state,
                                         struct topolane_state **copy,
                                         char **error);

/*
 A copy of a state without some of its jobs, to ask what would be if they were gone. Since version 7.
 */
enum topolane_status topolane_state_without(struct topolane_state *state,
                                            const uint64_t *jobs,
                                            size_t job_count,
                                            struct topolane_state **copy,
                                            char **error);

/*
 Frees a state.
 */
void topolane_state_free(struct topolane_state *state);

/*
 Lets a job that runs already hold nodes and cables, also those that are out of service.
 */
enum topolane_status topolane_state_hold(struct topolane_state *state,
                                         const struct topolane_held *held,
                                         char **error);

/*
 Lets a job hold what a decision gives it, under the identity of its request. The decision must come from a state of the same
 machine object.
 */
enum topolane_status topolane_state_claim(struct topolane_state *state,
                                          const struct topolane_decision *decision,
                                          char **error);

/*
 Takes from a job all that it holds.
 */
enum topolane_status topolane_state_release(struct topolane_state *state,
                                            uint64_t id,
                                            char **error);

/*
 Takes a node out of service, or puts it back. Jobs on it keep it.
 */
enum topolane_status topolane_state_set_node(struct topolane_state *state,
                                             uint32_t node,
                                             bool in_service,
                                             char **error);

/*
 Takes a cable between switches out of service, or puts it back. A job that owns it keeps it.
 */
enum topolane_status topolane_state_set_link(struct topolane_state *state,
                                             uint32_t link,
                                             bool in_service,
                                             char **error);

/*
 Asks a policy for nodes; the state stays as it is. `Ok` sets `decision`, `Refused` sets `refusal` unless that is NULL.
 A refusal names what stands in the way: that takes longer than to refuse.
 */
enum topolane_status topolane_state_place(struct topolane_state *state,
                                          const struct topolane_policy *policy,
                                          const struct topolane_request *request,
                                          struct topolane_decision **decision,
                                          struct topolane_refusal **refusal,
                                          char **error);

/*
 Asks a policy for more slots of a job that has some: those of `members`, which the state must not hold. The decision is for
 the whole job: the members in their order, then the new slots, with the links of all. New slots go where the hops to the others
 are fewest and the policy lets the job lie. Only for callers that count slots (`shares_nodes`, `free_slots`). Since version 5.
 */
enum topolane_status topolane_state_place_near(struct topolane_state *state,
                                               const struct topolane_policy *policy,
                                               const struct topolane_request *request,
                                               struct topolane_decision **decision,
                                               struct topolane_refusal **refusal,
                                               char **error);

/*
 The kind of the last refusal of a state, as `topolane_refusal_name` says it; NULL if it has not refused anything. It costs
 nothing, unlike a refusal. Since version 3.
 */
const char *topolane_state_refused(const struct topolane_state *state);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOPOLANE_H */
