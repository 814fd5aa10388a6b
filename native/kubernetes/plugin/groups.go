package plugin

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// placement is where a group is: what the annotation on each of its pods says.
type placement struct {
	Policy string `json:"policy"`
	// Nodes in rank order, once per member; empty names where the stock choice stands and no member is yet.
	Nodes []string `json:"nodes"`
	// Podsets in rank order, if members are not alike.
	Podsets []podset `json:"podsets,omitempty"`
	// Revision counts changes: of several annotations the one with the highest number is right.
	Revision int `json:"revision,omitempty"`
	// Links that only this group may use, as numbers of the machine.
	Links []uint32 `json:"links,omitempty"`
	// Share of full bandwidth on them.
	Share float64 `json:"share"`
	// Isolated says that no other group may use links that it may use.
	Isolated bool `json:"isolated"`
	// Machine is a checksum of what the engine read: numbers of links are of that machine.
	Machine string `json:"machine,omitempty"`
	// Rank of this pod.
	Rank int `json:"rank"`
}

// group is pods that are placed together.
type group struct {
	key    groupKey
	id     uint64
	asked  asked
	placed *placement
	// isStock says that kube-scheduler chooses the nodes.
	isStock bool
	// seats has the pod of each rank; empty if there is none now.
	seats []types.UID
	// bound says which pods have their nodes for good.
	bound map[types.UID]bool
	// isWhole says that all members had nodes once: from then on pods are bound.
	isWhole bool
	// planned is when the policy chose the nodes, and tried the pods that were sent to theirs since.
	planned time.Time
	tried   map[types.UID]bool
	// vacated is when seats lost their pods since then: their room is kept for a while.
	vacated map[int]time.Time
	// isTimed says that a timer will look at them.
	isTimed bool
	// isHeld says that the engine's state has it.
	isHeld bool
	// template is a member, to reserve room for others like it; templates has one of each podset.
	template  *v1.Pod
	templates map[string]*v1.Pod
	// refused is why it waits, and at which generation of the cluster.
	refused   string
	refusedAt uint64
	// preemptsFor is what others hold, if the policy refused it for that, and searched when victims were looked for.
	preemptsFor string
	searched    time.Time
	searchedAt  uint64
	// awaits has the pods that must end before it may take its place, and the nodes they are on.
	awaits map[types.UID]string
	// isLeaving says that it is preempted: no pod of its joins it any more.
	isLeaving bool
	// isUnproven says that one of its pods runs and nothing proves where the group may lie: the links that it uses are not known.
	isUnproven bool
	// isSentAway says that it leaves because its pods say so.
	isSentAway bool
}

func (g *group) seatOf(pod types.UID) int { return slices.Index(g.seats, pod) }

func (g *group) taken() int {
	taken := 0
	for _, pod := range g.seats {
		if pod != "" {
			taken++
		}
	}
	return taken
}

// seatsOf is the first seat of a podset, and how many it has.
func (g *group) seatsOf(name string) (first, size int) {
	if len(g.placed.Podsets) == 0 {
		return 0, len(g.seats)
	}
	for _, set := range g.placed.Podsets {
		if set.Name == name {
			return first, set.Size
		}
		first += set.Size
	}
	return first, 0
}

// templateOf is a pod like the one of a seat.
func (g *group) templateOf(seat int) *v1.Pod {
	for _, set := range g.placed.Podsets {
		if seat -= set.Size; seat < 0 && g.templates[set.Name] != nil {
			return g.templates[set.Name]
		}
	}
	return g.template
}

// chooseSeat gives a pod its rank: its own if it says one, or the first of its podset that is free; -1 if all are taken.
func (g *group) chooseSeat(pod *v1.Pod) int {
	if seat := g.seatOf(pod.UID); seat >= 0 {
		return seat
	}
	first, size := g.seatsOf(podsetOf(pod))
	if rank, says := rankOf(pod, size); says && rank < size && g.seats[first+rank] == "" {
		return first + rank
	}
	if free := slices.Index(g.seats[first:first+size], ""); free >= 0 {
		return first + free
	}
	return -1
}

// keeps says whether room is kept for a seat without a pod. A group that was whole comes back to a seat at once, or not at all.
func (g *group) keeps(seat int, atMost time.Duration) bool {
	return !g.isWhole || !g.isLeaving && time.Since(g.vacated[seat]) < atMost
}

// vacate begins to keep the room of a seat that lost its pod.
func (g *group) vacate(seat int) {
	if g.vacated == nil {
		g.vacated = map[int]time.Time{}
	}
	g.vacated[seat] = time.Now()
}

// leave takes the seat of a pod away; it says whether the pod had one.
func (g *group) leave(pod types.UID) bool {
	seat := g.seatOf(pod)
	if seat < 0 {
		return false
	}
	g.seats[seat] = ""
	if g.isStock {
		g.placed.Nodes[seat] = ""
	}
	delete(g.bound, pod)
	g.vacate(seat)
	return true
}

// notes is the annotations of the pod of a rank: one for the scheduler, and those that a program may read.
func (p placement) notes(rank int) (map[string]string, error) {
	// Whatever a group counts as here: what no policy chose is not isolated.
	p.Rank, p.Isolated = rank, p.Isolated && p.Policy != stockPolicy && p.Policy != unknownPolicy
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	notes := map[string]string{
		placementNote: string(text), rankNote: strconv.Itoa(rank), worldSizeNote: strconv.Itoa(len(p.Nodes)),
	}
	if nodes := strings.Join(p.Nodes, ","); len(nodes) <= longestVariable {
		notes[nodesNote] = nodes
	}
	return notes, nil
}
