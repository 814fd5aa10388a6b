package plugin

import (
	"context"
	"fmt"
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

// watch registers the handlers for pods and nodes.
func (p *plugin) watch(core coreinformers.Interface) error {
	informer := core.Pods().Informer()
	err := informer.AddIndexers(cache.Indexers{byGroup: p.indexed})
	if err != nil {
		return err
	}
	p.pods = informer.GetIndexer()
	pods, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.podSeen(object) },
		UpdateFunc: p.podChanged,
		DeleteFunc: func(object any) {
			p.podGone(object)
			if pod := podIn(object); pod != nil {
				p.boundFor.Delete(pod.UID)
			}
		},
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

// indexed returns the group of a pod, for the index.
func (p *plugin) indexed(object any) ([]string, error) {
	if pod, is := object.(*v1.Pod); is {
		if key := p.groupOf(pod); key != "" {
			return []string{string(key)}, nil
		}
	}
	return nil, nil
}

// isAlive reports whether a pod has not ended.
func isAlive(pod *v1.Pod) bool {
	return pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// podSeen records a pod that has a node: one that was bound here or, after a restart, what its annotation proves.
func (p *plugin) podSeen(object any) {
	pod, is := object.(*v1.Pod)
	if !is || pod.Spec.NodeName == "" {
		return
	}
	if !isAlive(pod) {
		p.podGone(pod)
		return
	}
	key := p.groupOf(pod)
	if key == "" || pod.Spec.SchedulerName != p.handle.ProfileName() {
		return
	}
	p.guarded("podSeen", pod.Name, func() {
		g := p.groups[key]
		if g != nil && g.placed != nil && g.bound[pod.UID] {
			p.sendAway(g, pod)
			return // It was recorded before. Later annotations prove nothing.
		}
		note := p.placementOf(pod)
		if g == nil && note == nil && gangOf(pod) != "" && pod.Annotations[placementNote] == "" {
			return // its PodGroup has no gang policy
		}
		switch {
		case g == nil || g.placed == nil:
			g = p.restored(g, key, pod, note)
		case !g.isWhole:
			g = p.begun(g, pod, note)
		case g.isOn(pod): // it was bound here
		case note == nil:
			p.doubt(g, pod)
		case g.placed.Policy == unknownPolicy:
			p.prove(g, note)
		case note.Revision > g.placed.Revision:
			p.renew(g, note)
		}
		if !g.isOn(pod) {
			p.seat(g, pod, note)
		}
		g.bound[pod.UID] = true
		p.sendAway(g, pod)
	})
}

// podChanged records a changed pod. If its group has changed, the pod leaves the former group.
func (p *plugin) podChanged(old, now any) {
	before, isOld := old.(*v1.Pod)
	after, isNew := now.(*v1.Pod)
	// If a pod was deleted and made again between two events, only the new pod is seen.
	if isOld && isNew && (before.UID != after.UID || p.groupOf(before) != p.groupOf(after)) {
		p.podGone(before)
	}
	if isOld && isNew && before.UID != after.UID {
		p.boundFor.Delete(before.UID)
	}
	p.podSeen(now)
}

// sendAway treats a group like a preempted one while any of its pods has the mark with which `topolane k8s apply` evicts
// them all.
func (p *plugin) sendAway(g *group, pod *v1.Pod) {
	isSaid := isSentAway(pod)
	if isSaid == g.isSentAway || !isSaid && slices.ContainsFunc(p.members(g.key), isSentAway) {
		return
	}
	g.isSentAway = isSaid
	p.setLeaving(g, isSaid || isPreempted(pod))
}

// isSentAway reports whether a pod has a node that it must leave for another group.
func isSentAway(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Annotations[evictedNote] != ""
}

// unknownPolicy is the policy of a group of which only the pods are known.
const unknownPolicy = "unknown"

// restored returns a group as the scheduler's annotation on one of its pods describes it. Without such an annotation,
// only the nodes of running pods are known.
func (p *plugin) restored(g *group, key groupKey, pod *v1.Pod, note *placement) *group {
	if g == nil {
		p.lastID++
		g = &group{key: key, id: p.lastID, bound: map[types.UID]bool{}}
		p.groups[key] = g
	}
	g.template, g.isWhole, g.refused, g.isLeaving = pod, true, "", isPreempted(pod)
	if note == nil {
		g.placed = &placement{Policy: unknownPolicy, Rule: ofNothing, Share: 1}
		p.doubt(g, pod)
	} else {
		g.placed = note
	}
	p.takeOver(g)
	return g
}

// takeOver gives a group the empty seats of its placement, and keeps the room on their nodes for a while.
func (p *plugin) takeOver(g *group) {
	g.isStock = g.placed.Policy == stockPolicy || g.placed.Policy == unknownPolicy
	g.asked = asked{size: len(g.placed.Nodes), policy: g.placed.Policy, rule: g.placed.Rule, share: 1}
	g.seats = make([]types.UID, len(g.placed.Nodes))
	for seat := range g.seats {
		g.vacate(seat)
	}
	p.keepForAWhile(g)
	p.world.hold(p.logger, g)
}

// doubt records that nothing proves what a pod of a group has. The group then counts as the owner of all links that it
// may use.
func (p *plugin) doubt(g *group, pod *v1.Pod) {
	if g.isUnproven {
		return
	}
	g.isUnproven, g.placed.Links, g.placed.LinkUse = true, nil, unknownLinks
	p.world.hold(p.logger, g)
	said := fmt.Sprintf("nothing proves where %s placed pod %s: group %s counts as the owner of all links that it may use", Name,
		pod.Name, g.key)
	p.logger.Info("Placement not proved", "group", g.key, "pod", pod.Name)
	p.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, "PlacementNotProved", "Reading", "%s", said)
}

// prove applies the proof of one pod to a group of which only nodes were known. Its links stay unknown.
func (p *plugin) prove(g *group, note *placement) {
	seats, nodes := g.seats, g.placed.Nodes
	g.placed = note
	g.placed.Links, g.placed.LinkUse = nil, unknownLinks
	p.takeOver(g)
	for index, pod := range seats {
		if pod != "" {
			p.sit(g, pod, nodes[index], -1)
		}
	}
}

// begun returns the running group for a pod that was bound although the API server had reported an error, so that its
// group still waited to be whole. The pod's annotation proves where the group is.
func (p *plugin) begun(g *group, pod *v1.Pod, note *placement) *group {
	if note == nil || !slices.Equal(note.Nodes, g.placed.Nodes) {
		p.drop(g, "a member of the group runs elsewhere")
		return p.restored(nil, g.key, pod, note)
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

// renew applies a later annotation of a group. Seats that have a pod keep its node.
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
	if g.isUnproven {
		g.placed.Links, g.placed.LinkUse = nil, unknownLinks
	}
	p.world.hold(p.logger, g)
}

// isOn reports whether a pod has a seat on the node on which it runs.
func (g *group) isOn(pod *v1.Pod) bool {
	seat := g.seatOf(pod.UID)
	return seat >= 0 && g.placed.Nodes[seat] == pod.Spec.NodeName
}

// seat gives a running pod its seat: by the rank that its proof has or, if only nodes of the group are known, by the rank
// that the pod states.
func (p *plugin) seat(g *group, pod *v1.Pod, note *placement) {
	rank := -1
	if note != nil {
		rank = note.Rank
	} else if said, isNumber := number(pod.Annotations[rankNote]); isNumber && g.placed.Policy == unknownPolicy {
		// A stated rank must not create more seats than the group has pods.
		if missing := said + 1 - len(g.seats); missing > 0 && said < p.podsOf(g.key) {
			g.grow(missing)
		}
		rank = said
	}
	if seat := g.seatOf(pod.UID); seat >= 0 {
		g.seats[seat] = ""
	}
	p.sit(g, pod.UID, pod.Spec.NodeName, rank)
}

// podsOf returns the number of pods that name a group.
func (p *plugin) podsOf(key groupKey) int {
	pods, _ := p.pods.IndexKeys(byGroup, string(key))
	return len(pods)
}

// sit gives a running pod a seat: that of its rank, otherwise a free one on its node, otherwise a new one.
func (p *plugin) sit(g *group, pod types.UID, node string, rank int) {
	seat := rank
	if rank < 0 || rank >= len(g.seats) || g.seats[rank] != "" {
		seat = -1
		for index, other := range g.placed.Nodes {
			if g.seats[index] == "" && (other == node || other == "") {
				seat = index
				break
			}
		}
	}
	if seat < 0 {
		g.grow(1)
		seat = len(g.seats) - 1
	}
	isNew := g.placed.Nodes[seat] != node
	g.seats[seat], g.placed.Nodes[seat] = pod, node
	if isNew {
		p.world.hold(p.logger, g)
	}
}

// podGone removes a pod that is deleted or has ended. A group without pods is removed.
func (p *plugin) podGone(object any) {
	pod := podIn(object)
	if pod == nil {
		return
	}
	p.guarded("podGone", pod.Name, func() {
		g := p.groups[p.groupOf(pod)]
		seat := -1
		if g != nil && g.placed != nil {
			seat = g.seatOf(pod.UID)
		}
		had := seat >= 0 && g.leave(pod.UID)
		if had && pod.Status.Phase == v1.PodSucceeded {
			delete(g.vacated, seat)
		}
		if had && pod.Status.Phase == v1.PodSucceeded && g.asked.most > g.asked.size && g.taken() > 0 {
			// A member of an elastic group that has finished its work does not come back.
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
			// A replacement pod may have been tried before this was known.
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

// podIn returns the deleted pod, even if only its last known state is available.
func podIn(object any) *v1.Pod {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	pod, _ := object.(*v1.Pod)
	return pod
}

// forget removes a group without pods.
func (p *plugin) forget(g *group) {
	p.world.release(p.logger, g)
	delete(p.groups, g.key)
	p.changed()
}

// nodeSeen records a node. Refused groups are asked again if its position, its resources or its availability have
// changed.
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

// EventsToRegister returns the events after which a waiting pod may get a place.
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
