package engine

/*
#include <stdlib.h>
#include "topolane.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// NoBudget is the budget of a candidate that none limits.
const NoBudget = uint32(C.TOPOLANE_NO_BUDGET)

// Candidate is a job that may go. Its nodes have the amounts of each kind that it leaves there, node after node.
type Candidate struct {
	ID           uint64
	Cost         float64
	Rank         uint32
	Budget, Uses uint32
	Nodes        []uint32
	Amounts      []int64
}

// Room is what may go, and what the slots of nodes follow from: what a slot takes of each kind of amount, and what is free, node after
// node.
type Room struct {
	Candidates  []Candidate
	Budgets     []uint32
	Takes, Free []int64
}

// RoomPlan is the candidates that must go, by place, and where the job is then.
type RoomPlan struct {
	Gone     []uint32
	Cost     float64
	Decision *Decision
}

// MakeRoom looks for the cheapest candidates that must go so that the policy places a job; nil if none are found. All slots of the
// request limit the slots of nodes.
func (s *State) MakeRoom(policy *Policy, asked Request, room Room) (*RoomPlan, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	request := asked.inC(&pins)
	defer C.free(unsafe.Pointer(request.segment_level))
	defer C.free(unsafe.Pointer(request.within))
	given := C.topolane_room{size: C.sizeof_topolane_room, kinds: C.size_t(len(room.Takes))}
	given.budgets, given.budget_count = array(&pins, room.Budgets)
	given.takes, given.free = amounts(&pins, room.Takes), amounts(&pins, room.Free)
	rows := make([]C.topolane_candidate, len(room.Candidates))
	for place, one := range room.Candidates {
		row := &rows[place]
		row.id, row.cost, row.rank = C.uint64_t(one.ID), C.double(one.Cost), C.uint32_t(one.Rank)
		row.budget, row.uses = C.uint32_t(one.Budget), C.uint32_t(one.Uses)
		row.nodes, row.node_count = array(&pins, one.Nodes)
		row.amounts = amounts(&pins, one.Amounts)
	}
	if len(rows) > 0 {
		pins.Pin(&rows[0])
		given.candidates, given.candidate_count = &rows[0], C.size_t(len(rows))
	}
	var plan *C.topolane_room_plan
	var decision *C.topolane_decision
	var problem *C.char
	status := C.topolane_state_make_room(s.state, policy.policy, &request, &given, &plan, &decision, &problem)
	defer C.topolane_room_plan_free(plan)
	defer C.topolane_decision_free(decision)
	runtime.KeepAlive(s)
	runtime.KeepAlive(policy)
	if status == C.TOPOLANE_STATUS_REFUSED {
		return nil, nil
	}
	if err := failed(status, problem); err != nil {
		return nil, err
	}
	return &RoomPlan{
		Gone:     copied(C.topolane_room_plan_candidates(plan)),
		Cost:     float64(C.topolane_room_plan_cost(plan)),
		Decision: decisionOf(decision),
	}, nil
}

func amounts(pins *runtime.Pinner, numbers []int64) *C.int64_t {
	if len(numbers) == 0 {
		return nil
	}
	pins.Pin(&numbers[0])
	return (*C.int64_t)(&numbers[0])
}
