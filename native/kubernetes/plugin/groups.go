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

// placement is the place of a group, as the annotation on each of its pods records it.
type placement struct {
	Policy string `json:"policy"`
	// Rule is what gave the group its policy.
	Rule string `json:"rule,omitempty"`
	// Nodes in rank order, once per member. A name is empty if kube-scheduler chooses the node and the member has none yet.
	Nodes []string `json:"nodes"`
	// Podsets in rank order, if members differ.
	Podsets []podset `json:"podsets,omitempty"`
	// Revision counts changes: of several annotations, the one with the highest revision is valid.
	Revision int `json:"revision,omitempty"`
	// Links that only this group may use, by the machine's numbers.
	Links []uint32 `json:"links,omitempty"`
	// Share of full bandwidth on these links.
	Share float64 `json:"share"`
	// LinkUse says whether other groups may use links that this group may use.
	LinkUse string `json:"link_use"`
	// Machine is a checksum of the engine's input. Links are numbered by that machine.
	Machine string `json:"machine,omitempty"`
	// Rank of the annotated pod.
	Rank int `json:"rank"`
}

// group is a set of pods that are placed together.
type group struct {
	key    groupKey
	id     uint64
	asked  asked
	placed *placement
	// isStock is true if kube-scheduler chooses the nodes.
	isStock bool
	// seats has the UID of the pod of each rank; empty if there is none now.
	seats []types.UID
	// bound has the pods whose nodes are final.
	bound map[types.UID]bool
	// isWhole is true once all members had nodes. From then on pods are bound.
	isWhole bool
	// planned is the time at which the policy chose the nodes; tried has the pods that were sent to their nodes since.
	planned time.Time
	tried   map[types.UID]bool
	// vacated has the time at which each seat lost its pod. Its room is kept for a while.
	vacated map[int]time.Time
	// isTimed is true while a timer is set to check the vacated seats.
	isTimed bool
	// isHeld is true if the group is in the engine's state.
	isHeld bool
	// template is a member, used to reserve room for others like it; templates has one for each podset.
	template  *v1.Pod
	templates map[string]*v1.Pod
	// refused is the message that says why the group waits, why the refusal in it, and refusedAt the generation of the
	// cluster at that time.
	refused   string
	why       *refusal
	refusedAt uint64
	// preemptsFor is what the group lacks because others hold it, and searched the time when victims were last searched.
	preemptsFor string
	searched    time.Time
	searchedAt  uint64
	// awaits has the pods that must end before the group may take its place, with their nodes.
	awaits map[types.UID]string
	// isLeaving is true if the group is being preempted, so that no new pod joins it.
	isLeaving bool
	// isUnproven is true if a running pod has no proof of the group's place, so that the links it uses are not known.
	isUnproven bool
	// isSentAway is true if the group leaves because its pods have an annotation that says so.
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

// seatsOf returns the first seat of a podset and its number of seats.
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

// templateOf returns a pod of the same podset as a seat.
func (g *group) templateOf(seat int) *v1.Pod {
	for _, set := range g.placed.Podsets {
		if seat -= set.Size; seat < 0 && g.templates[set.Name] != nil {
			return g.templates[set.Name]
		}
	}
	return g.template
}

// chooseSeat returns the rank for a pod: its own if it states one, otherwise the first free one of its podset; -1 if all
// are taken.
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

// keeps reports whether room is kept for a seat without a pod. After a group was whole, a seat's room is kept only for a
// limited time.
func (g *group) keeps(seat int, atMost time.Duration) bool {
	return !g.isWhole || !g.isLeaving && time.Since(g.vacated[seat]) < atMost
}

// vacate starts to keep the room of a seat that lost its pod.
func (g *group) vacate(seat int) {
	if g.vacated == nil {
		g.vacated = map[int]time.Time{}
	}
	g.vacated[seat] = time.Now()
}

// leave removes a pod from its seat. It reports whether the pod had one.
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

// notes returns the annotations for the pod of a rank: one for the scheduler, and those for programs.
func (p placement) notes(rank int) (map[string]string, error) {
	p.Rank = rank
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
