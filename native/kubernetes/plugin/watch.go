package plugin

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// byGroup is the index of pods by their group.
const byGroup = Name + "/group"

// watch follows pods and nodes.
func (p *plugin) watch(core coreinformers.Interface) error {
	informer := core.Pods().Informer()
	err := informer.AddIndexers(cache.Indexers{byGroup: func(object any) ([]string, error) {
		if pod, is := object.(*v1.Pod); is && groupOf(pod) != "" {
			return []string{groupOf(pod)}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return err
	}
	p.pods = informer.GetIndexer()
	pods, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.podSeen(object) },
		UpdateFunc: func(_, object any) { p.podSeen(object) },
		DeleteFunc: func(object any) { p.podGone(object) },
	})
	if err != nil {
		return err
	}
	nodes, err := core.Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.nodeSeen(nil, object) },
		UpdateFunc: p.nodeSeen,
		DeleteFunc: func(object any) { p.nodeGone(object) },
	})
	if err != nil {
		return err
	}
	p.synced = []cache.InformerSynced{pods.HasSynced, nodes.HasSynced}
	return nil
}

// isAlive says whether a pod has not ended.
func isAlive(pod *v1.Pod) bool {
	return pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// podSeen takes over a pod that has a node: one of ours, or after a restart one of its annotation.
func (p *plugin) podSeen(object any) {
	pod, is := object.(*v1.Pod)
	if !is || pod.Spec.NodeName == "" {
		return
	}
	if !isAlive(pod) {
		p.podGone(pod)
		return
	}
	key := groupOf(pod)
	if key == "" || pod.Spec.SchedulerName != p.handle.ProfileName() {
		return
	}
	p.guarded("podSeen", pod.Name, func() {
		g := p.groups[key]
		if g == nil && gangOf(pod) != "" && placementOf(pod) == nil {
			return // Its PodGroup has no gang policy.
		}
		if g == nil || g.placed == nil {
			g = p.restored(g, key, pod)
		} else if !g.isWhole {
			g = p.begun(g, pod)
		} else if note := placementOf(pod); note != nil && note.Revision > g.placed.Revision {
			p.renew(g, note)
		}
		if seat := g.seatOf(pod.UID); seat < 0 {
			p.seat(g, pod)
		}
		g.bound[pod.UID] = true
		p.sendAway(g, pod)
	})
}

// sendAway lets a group leave as if it were preempted while any of its pods says that `topolane k8s apply` evicts them all.
func (p *plugin) sendAway(g *group, pod *v1.Pod) {
	isSaid := isSentAway(pod)
	if isSaid == g.isSentAway || !isSaid && slices.ContainsFunc(p.members(g.key), isSentAway) {
		return
	}
	g.isSentAway = isSaid
	p.setLeaving(g, isSaid || isPreempted(pod))
}

// isSentAway says whether a pod has a node that it is to leave for another group.
func isSentAway(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Annotations[evictedNote] != ""
}

// unknownPolicy is the policy of a group of which only its pods are known.
const unknownPolicy = "unknown"

// restored is a group as the annotation of one of its pods says; without one, its links are not known.
func (p *plugin) restored(g *group, key string, pod *v1.Pod) *group {
	if g == nil {
		p.lastID++
		g = &group{key: key, id: p.lastID, bound: map[types.UID]bool{}}
		p.groups[key] = g
	}
	g.placed, g.template, g.isWhole, g.refused = placementOf(pod), pod, true, ""
	if g.placed == nil {
		g.placed = &placement{Policy: unknownPolicy, Share: 1, Isolated: true}
	}
	g.isStock = g.placed.Policy == stockPolicy || g.placed.Policy == unknownPolicy
	g.asked = asked{size: len(g.placed.Nodes), policy: g.placed.Policy, share: 1}
	g.seats = make([]types.UID, len(g.placed.Nodes))
	g.isLeaving = isPreempted(pod)
	for seat := range g.seats {
		g.vacate(seat)
	}
	p.keepForAWhile(g)
	p.world.hold(p.logger, g)
	return g
}

// begun is a group of which a pod was bound though the API server did not say so, and which waits to be whole since. It runs, where
// that pod says.
func (p *plugin) begun(g *group, pod *v1.Pod) *group {
	if note := placementOf(pod); note == nil || !slices.Equal(note.Nodes, g.placed.Nodes) {
		p.drop(g, "a member of the group runs elsewhere")
		return p.restored(nil, g.key, pod)
	}
	p.begin(g)
	for seat, member := range g.seats {
		if member == "" {
			g.vacate(seat)
		}
	}
	p.keepForAWhile(g)
	return g
}

// renew takes over a later annotation of a group: seats that have a pod keep its node.
func (p *plugin) renew(g *group, later *placement) {
	for seat, pod := range g.seats {
		if pod != "" && seat < len(later.Nodes) {
			later.Nodes[seat] = g.placed.Nodes[seat]
		}
	}
	if missing := len(later.Nodes) - len(g.seats); missing > 0 {
		g.seats = append(g.seats, make([]types.UID, missing)...)
	}
	later.Nodes = append(later.Nodes, g.placed.Nodes[min(len(later.Nodes), len(g.placed.Nodes)):]...)
	g.placed, g.asked.size = later, len(later.Nodes)
	p.world.hold(p.logger, g)
}

// seat gives a pod that runs its seat, and a new one if another sits there.
func (p *plugin) seat(g *group, pod *v1.Pod) {
	seat := -1
	if placed := placementOf(pod); placed != nil && placed.Rank < len(g.seats) && g.seats[placed.Rank] == "" {
		seat = placed.Rank
	} else {
		for index, node := range g.placed.Nodes {
			if g.seats[index] == "" && (node == pod.Spec.NodeName || node == "") {
				seat = index
				break
			}
		}
	}
	if seat < 0 {
		g.grow(1)
		seat = len(g.seats) - 1
	}
	isNew := g.placed.Nodes[seat] != pod.Spec.NodeName
	g.seats[seat], g.placed.Nodes[seat] = pod.UID, pod.Spec.NodeName
	if isNew {
		p.world.hold(p.logger, g)
	}
}

// podGone takes a pod away that is deleted or has ended. With the last one its group goes.
func (p *plugin) podGone(object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	pod, is := object.(*v1.Pod)
	if !is {
		return
	}
	p.guarded("podGone", pod.Name, func() {
		g := p.groups[groupOf(pod)]
		seat := -1
		if g != nil && g.placed != nil {
			seat = g.seatOf(pod.UID)
		}
		had := seat >= 0 && g.leave(pod.UID)
		if had && pod.Status.Phase == v1.PodSucceeded {
			delete(g.vacated, seat)
		}
		if had && pod.Status.Phase == v1.PodSucceeded && g.asked.most > g.asked.size && g.taken() > 0 {
			// A member of an elastic group that has done its work does not come back.
			g.placed.Nodes[seat] = ""
			p.world.hold(p.logger, g)
		}
		for _, other := range p.groups {
			p.ended(other, pod.UID)
		}
		switch {
		case g != nil && g.placed != nil && !g.isWhole && (had || len(p.members(g.key)) < g.asked.size):
			p.drop(g, "a member of the group is gone")
		case had && g.taken() == 0:
			p.forget(g)
		case had:
			// A pod that comes in its place may have been tried before this was known.
			p.wake(g.key)
			p.keepForAWhile(g)
			p.changed()
		case g != nil && g.placed == nil && len(p.members(g.key)) == 0:
			delete(p.groups, g.key)
		case pod.Spec.NodeName != "":
			p.changed()
		}
	})
}

// forget takes away a group of which no pod is left.
func (p *plugin) forget(g *group) {
	p.world.release(p.logger, g)
	delete(p.groups, g.key)
	p.changed()
}

// nodeSeen takes a node over. What matters to groups that were refused: where it is, what it has, whether it is in service.
func (p *plugin) nodeSeen(old, object any) {
	node, is := object.(*v1.Node)
	if !is {
		return
	}
	p.guarded("nodeSeen", node.Name, func() {
		isMoved := p.world.setNode(node.Name, relevant(node.Labels, p.args.TopologyLabels))
		before, is := old.(*v1.Node)
		if isMoved || !is || before.Spec.Unschedulable != node.Spec.Unschedulable ||
			len(before.Spec.Taints) != len(node.Spec.Taints) || !sameRoom(before, node) {
			p.changed()
		}
	})
}

func sameRoom(one, other *v1.Node) bool {
	if len(one.Status.Allocatable) != len(other.Status.Allocatable) {
		return false
	}
	for name, amount := range one.Status.Allocatable {
		if now := other.Status.Allocatable[name]; amount.Cmp(now) != 0 {
			return false
		}
	}
	return true
}

func (p *plugin) nodeGone(object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	if node, is := object.(*v1.Node); is {
		p.guarded("nodeGone", node.Name, func() {
			p.world.setNode(node.Name, nil)
			clear(p.memos)
		})
	}
}

// EventsToRegister is what may give a place to a pod that waits for us.
func (p *plugin) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	sameGroup := func(_ klog.Logger, pod *v1.Pod, _, object any) (fwk.QueueingHint, error) {
		if other, is := object.(*v1.Pod); is && groupOf(other) == groupOf(pod) {
			return fwk.Queue, nil
		}
		return fwk.QueueSkip, nil
	}
	stock, err := p.stockEvents(ctx)
	return append(stock, []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add}, QueueingHintFn: sameGroup},
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}, QueueingHintFn: p.counted(nil)},
		{Event: fwk.ClusterEvent{
			Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint,
		}, QueueingHintFn: p.counted(nil)},
	}...), err
}
