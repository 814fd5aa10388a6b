// Package engine is the engine of Topolane, behind its C interface: docs/reference/c-api.md has the rules.
package engine

/*
#cgo CFLAGS: -I${SRCDIR}/../../../crates/capi/include
#cgo LDFLAGS: -l:libtopolane.a -lpthread -ldl -lm
#include <stdlib.h>
#include "topolane.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// LinkUse says which links a job counts as using: a value of the C interface.
type LinkUse uint32

// The uses of links that are met here.
const (
	Shared   LinkUse = C.TOPOLANE_LINKS_SHARED
	Isolated LinkUse = C.TOPOLANE_LINKS_ISOLATED
	// IsolatedGlobal is about the links between the groups of a dragonfly only.
	IsolatedGlobal LinkUse = C.TOPOLANE_LINKS_ISOLATED_GLOBAL
)

// Machine is the nodes and the switches above them. It never changes.
type Machine struct {
	machine *C.topolane_machine
	Names   []string
	index   map[string]uint32
}

// State says which job holds what. One goroutine at a time may use it.
type State struct {
	state   *C.topolane_state
	machine *Machine
}

// Policy is a rule that chooses nodes. It never changes.
type Policy struct{ policy *C.topolane_policy }

// Isolates says whether the policy promises that no link, or none between the groups of a dragonfly, carries the traffic of two of
// its groups.
func (p *Policy) Isolates() bool {
	use := LinkUse(C.topolane_policy_link_use(p.policy))
	runtime.KeepAlive(p)
	return use != Shared
}

// Request is what a group asks for. The slots are by number of the node.
type Request struct {
	ID           uint64
	Slots        uint32
	MinBandwidth float64
	FreeSlots    []uint32
	AllSlots     []uint32
	Within       string
	// Segment is how many slots each part has that must lie in one group of a level; 0: there are no parts.
	Segment      uint32
	SegmentLevel string
	// Members are nodes that the job has already: the slots are then near them, and the decision is for all.
	Members []uint32
}

// Decision is the nodes in rank order, once per slot, and the links that come with them.
type Decision struct {
	Nodes          []uint32
	Links          []uint32
	BandwidthShare float64
	LinkUse        LinkUse
}

// Refusal says why the policy has no place.
type Refusal struct {
	Name, Text string
	Obstacles  []Obstacle
}

// Obstacle is a group of nodes that stands in the way, and the jobs that hold what is missing there.
type Obstacle struct {
	Name string
	Jobs []uint64
}

// failed turns the status of a call into an error, and frees the text.
func failed(status uint32, text *C.char) error {
	defer C.topolane_text_free(text)
	switch {
	case status == C.TOPOLANE_STATUS_OK:
		return nil
	case text == nil:
		return fmt.Errorf("the engine answered status %d without a reason", status)
	}
	return errors.New(C.GoString(text))
}

// CheckVersion fails if the library does not serve the header that this program was compiled with.
func CheckVersion() error {
	have, want := uint32(C.topolane_api_version()), uint32(C.TOPOLANE_API_VERSION)
	if have < want || have/1000 != want/1000 {
		return fmt.Errorf("the engine has version %d of its interface, not %d", have, want)
	}
	return nil
}

// ReadMachine reads a machine from the text of a file, in any format that the engine knows.
func ReadMachine(source string, content []byte) (*Machine, error) {
	name := C.CString(source)
	defer C.free(unsafe.Pointer(name))
	text := C.CBytes(content)
	defer C.free(text)
	var machine *C.topolane_machine
	var problem *C.char
	status := C.topolane_machine_read(name, (*C.char)(text), C.size_t(len(content)), &machine, &problem)
	if err := failed(status, problem); err != nil {
		return nil, err
	}
	return newMachine(machine), nil
}

// Join is a machine that knows the cables, with the nodes that only another description of it names.
func (m *Machine) Join(tree *Machine) (*Machine, error) {
	var machine *C.topolane_machine
	var notes, problem *C.char
	status := C.topolane_machine_join(m.machine, tree.machine, &machine, &notes, &problem)
	C.topolane_text_free(notes)
	runtime.KeepAlive(m)
	runtime.KeepAlive(tree)
	if err := failed(status, problem); err != nil {
		return nil, err
	}
	return newMachine(machine), nil
}

func newMachine(machine *C.topolane_machine) *Machine {
	made := &Machine{machine: machine, index: map[string]uint32{}}
	for node := range uint32(C.topolane_machine_nodes(machine)) {
		name := C.GoString(C.topolane_machine_node_name(machine, C.uint32_t(node)))
		made.Names = append(made.Names, name)
		made.index[name] = node
	}
	runtime.AddCleanup(made, func(machine *C.topolane_machine) { C.topolane_machine_free(machine) }, machine)
	return made
}

// Node is the number of the node of a name; false if the machine has none of that name.
func (m *Machine) Node(name string) (uint32, bool) {
	node, known := m.index[name]
	return node, known
}

// NewPolicy is the policy of a name.
func NewPolicy(name string, seed uint64) (*Policy, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var policy *C.topolane_policy
	var problem *C.char
	if err := failed(C.topolane_policy_new(text, C.uint64_t(seed), &policy, &problem), problem); err != nil {
		return nil, err
	}
	made := &Policy{policy}
	runtime.AddCleanup(made, func(policy *C.topolane_policy) { C.topolane_policy_free(policy) }, policy)
	return made, nil
}

// Check fails if the policy does not work on the wiring of a machine.
func (p *Policy) Check(machine *Machine) error {
	var problem *C.char
	err := failed(C.topolane_policy_check(p.policy, machine.machine, &problem), problem)
	runtime.KeepAlive(p)
	runtime.KeepAlive(machine)
	return err
}

// NewState is a state in which no job holds anything.
func NewState(machine *Machine) (*State, error) {
	var state *C.topolane_state
	var problem *C.char
	status := C.topolane_state_new(machine.machine, &state, &problem)
	runtime.KeepAlive(machine)
	if err := failed(status, problem); err != nil {
		return nil, err
	}
	made := &State{state, machine}
	runtime.AddCleanup(made, func(state *C.topolane_state) { C.topolane_state_free(state) }, state)
	return made, nil
}

// Without is a state as this one would be if some jobs were gone.
func (s *State) Without(jobs []uint64) (*State, error) {
	var state *C.topolane_state
	var problem *C.char
	status := C.topolane_state_without(s.state, (*C.uint64_t)(unsafe.SliceData(jobs)), C.size_t(len(jobs)), &state, &problem)
	runtime.KeepAlive(s)
	if err := failed(status, problem); err != nil {
		return nil, err
	}
	made := &State{state, s.machine}
	runtime.AddCleanup(made, func(state *C.topolane_state) { C.topolane_state_free(state) }, state)
	return made, nil
}

// Hold lets a job hold nodes and links. Room on nodes is counted by Kubernetes, not here.
func (s *State) Hold(id uint64, nodes, links []uint32, share float64, use LinkUse) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	held := C.topolane_held{
		size: C.sizeof_topolane_held, id: C.uint64_t(id), bandwidth_share: C.double(share),
		link_use: C.uint32_t(use), shares_nodes: true,
	}
	held.nodes, held.node_count = array(&pins, nodes)
	held.links, held.link_count = array(&pins, links)
	var problem *C.char
	status := C.topolane_state_hold(s.state, &held, &problem)
	runtime.KeepAlive(s)
	return failed(status, problem)
}

// Release takes from a job all that it holds.
func (s *State) Release(id uint64) error {
	var problem *C.char
	status := C.topolane_state_release(s.state, C.uint64_t(id), &problem)
	runtime.KeepAlive(s)
	return failed(status, problem)
}

// Place asks a policy. It gives a decision or a refusal or an error, and changes nothing. The state must not hold the job.
func (s *State) Place(policy *Policy, asked Request) (*Decision, *Refusal, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	request := asked.inC(&pins)
	defer C.free(unsafe.Pointer(request.segment_level))
	defer C.free(unsafe.Pointer(request.within))
	var decision *C.topolane_decision
	var refusal *C.topolane_refusal
	var problem *C.char
	var status uint32
	if len(asked.Members) > 0 {
		status = C.topolane_state_place_near(s.state, policy.policy, &request, &decision, &refusal, &problem)
	} else {
		status = C.topolane_state_place(s.state, policy.policy, &request, &decision, &refusal, &problem)
	}
	defer C.topolane_decision_free(decision)
	defer C.topolane_refusal_free(refusal)
	runtime.KeepAlive(s)
	runtime.KeepAlive(policy)
	if status == C.TOPOLANE_STATUS_REFUSED {
		C.topolane_text_free(problem)
		return nil, refusalOf(refusal), nil
	}
	if err := failed(status, problem); err != nil {
		return nil, nil, err
	}
	return decisionOf(decision), nil, nil
}

// inC is the request for a call. The caller frees its texts.
func (r Request) inC(pins *runtime.Pinner) (request C.topolane_request) {
	C.topolane_request_init(&request, C.sizeof_topolane_request)
	request.id, request.slots = C.uint64_t(r.ID), C.uint32_t(r.Slots)
	request.stacked, request.shares_nodes = true, true
	request.min_bandwidth = C.double(r.MinBandwidth)
	request.free_slots, request.slot_count = array(pins, r.FreeSlots)
	request.all_slots, _ = array(pins, r.AllSlots)
	request.segment = C.uint32_t(r.Segment)
	if r.SegmentLevel != "" {
		request.segment_level = C.CString(r.SegmentLevel)
	}
	request.members, request.member_count = array(pins, r.Members)
	if r.Within != "" {
		request.within = C.CString(r.Within)
	}
	return request
}

func decisionOf(decision *C.topolane_decision) *Decision {
	return &Decision{
		Nodes:          copied(C.topolane_decision_nodes(decision)),
		Links:          copied(C.topolane_decision_links(decision)),
		BandwidthShare: float64(C.topolane_decision_bandwidth_share(decision)),
		LinkUse:        LinkUse(C.topolane_decision_link_use(decision)),
	}
}

func refusalOf(refusal *C.topolane_refusal) *Refusal {
	said := &Refusal{
		Name: C.GoString(C.topolane_refusal_name(refusal)),
		Text: C.GoString(C.topolane_refusal_text(refusal)),
	}
	for index := range C.topolane_refusal_obstacles(refusal) {
		var row C.topolane_obstacle
		if !C.topolane_refusal_obstacle(refusal, index, &row) {
			break
		}
		obstacle := Obstacle{Name: C.GoString(row.name)}
		for _, job := range unsafe.Slice(row.jobs, row.job_count) {
			obstacle.Jobs = append(obstacle.Jobs, uint64(job))
		}
		said.Obstacles = append(said.Obstacles, obstacle)
	}
	return said
}

// array is numbers as C wants them, pinned for the time of a call.
func array(pins *runtime.Pinner, numbers []uint32) (*C.uint32_t, C.size_t) {
	if len(numbers) == 0 {
		return nil, 0
	}
	pins.Pin(&numbers[0])
	return (*C.uint32_t)(&numbers[0]), C.size_t(len(numbers))
}

func copied(numbers C.topolane_numbers) []uint32 {
	made := make([]uint32, numbers.count)
	for index, number := range unsafe.Slice(numbers.first, numbers.count) {
		made[index] = uint32(number)
	}
	return made
}
