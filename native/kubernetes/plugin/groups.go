package plugin

import (
	"encoding/json"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// placement is where a group is: what the annotation on each of its pods says.
type placement struct {
	Policy string `json:"policy"`
	// Nodes in rank order, once per member; empty names where the stock choice stands and no member is yet.
	Nodes []string `json:"nodes"`
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
	key    string
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
	// isHeld says that the engine's state has it.
	isHeld bool
	// template is a member, to reserve room for others like it.
	template *v1.Pod
	// refused is why it waits, and at which generation of the cluster.
	refused   string
	refusedAt uint64
	// mayPreempt says that the policy refused it for what others hold, and searched when victims were looked for.
	mayPreempt bool
	searched   time.Time
	searchedAt uint64
	// awaits has the pods that must end before it may take its place, and the nodes they are on.
	awaits map[types.UID]string
	// isLeaving says that it is preempted: no pod of its joins it any more.
	isLeaving bool
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

// chooseSeat gives a pod its rank: its own if it says one, or the first that is free; -1 if all are taken.
func (g *group) chooseSeat(pod *v1.Pod) int {
	if seat := g.seatOf(pod.UID); seat >= 0 {
		return seat
	}
	if rank, says := rankOf(pod); says && rank < len(g.seats) && g.seats[rank] == "" {
		return rank
	}
	return slices.Index(g.seats, "")
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
	return true
}

// note is the annotation of the pod of a rank.
func (p placement) note(rank int) (string, error) {
	p.Rank = rank
	text, err := json.Marshal(p)
	return string(text), err
}

// placementOf reads the annotation of a pod; nil if it has none that can be read.
func placementOf(pod *v1.Pod) *placement {
	var read placement
	text := pod.Annotations[placementNote]
	if text == "" || json.Unmarshal([]byte(text), &read) != nil {
		return nil
	}
	if read.Rank < 0 || read.Rank >= len(read.Nodes) || !(read.Share > 0 && read.Share <= 1) {
		return nil
	}
	return &read
}
