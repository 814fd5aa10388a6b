package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// settle returns the seat for a pod that joins a running group: its own if the node still has room for it, otherwise one
// near the others. A group that may grow gets a new seat. The seat is -1 if the pod must wait, and the status says why.
func (p *plugin) settle(ctx context.Context, g *group, pod *v1.Pod, ahead *reading) (int, *fwk.Status) {
	p.remember(ctx, g, pod, ahead)
	seat := g.chooseSeat(pod)
	if seat < 0 {
		if !g.mayGrow(pod) {
			return -1, waits("all %d places of group %s are taken", len(g.seats), g.key)
		}
		seat = len(g.seats)
		g.grow(1)
		if g.placed.Policy == unknownPolicy {
			return seat, nil
		}
		if status := p.seatNear(ctx, g, seat, pod); status != nil {
			g.grow(-1)
			return -1, status
		}
		return seat, nil
	}
	if g.isStock || g.seats[seat] == pod.UID || p.takes(ctx, pod, g.placed.Nodes[seat]) {
		return seat, nil
	}
	if status := p.seatNear(ctx, g, seat, pod); status != nil {
		return -1, status
	}
	return seat, nil
}

// remember reads the request of a group that is known only from the annotations of its pods.
func (p *plugin) remember(ctx context.Context, g *group, pod *v1.Pod, ahead *reading) {
	if g.asked.most > 0 {
		return
	}
	want, err := p.read(ctx, pod, ahead)
	if err != nil {
		p.logger.Error(err, "It is not known what a group asked for", "group", g.key)
		return
	}
	if !g.isStock {
		want.policy = g.placed.Policy
	}
	g.asked = want
}

// mayGrow reports whether a pod may join a group without free seats: the pod is of the last podset, and the group may
// have more members.
func (g *group) mayGrow(pod *v1.Pod) bool {
	sets := g.placed.Podsets
	return len(g.seats) < g.asked.most && (len(sets) == 0 || sets[len(sets)-1].Name == podsetOf(pod))
}

// grow adds free seats to the last podset, or removes them if `by` is negative.
func (g *group) grow(by int) {
	size := len(g.seats) + by
	for len(g.seats) < size {
		g.seats, g.placed.Nodes = append(g.seats, ""), append(g.placed.Nodes, "")
	}
	g.seats, g.placed.Nodes = g.seats[:size], g.placed.Nodes[:size]
	if last := len(g.placed.Podsets) - 1; last >= 0 {
		g.placed.Podsets = slices.Clone(g.placed.Podsets)
		g.placed.Podsets[last].Size += by
	}
}

// takes reports whether a pod fits on a node now.
func (p *plugin) takes(ctx context.Context, pod *v1.Pod, name string) bool {
	if name == "" {
		return false
	}
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return false
	}
	state, only, status := p.filtersFor(ctx, pod)
	if !status.IsSuccess() || !only.AllNodes() && !only.NodeNames.Has(name) {
		return false
	}
	info = p.withoutGone(withReserved(info, p.reservedFor(pod)))
	return p.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info).IsSuccess()
}

// withoutGone returns a node without pods that are gone but that kube-scheduler still counts. The lost member may be one
// of them.
func (p *plugin) withoutGone(info fwk.NodeInfo) fwk.NodeInfo {
	info = info.Snapshot()
	for _, there := range slices.Clone(info.GetPods()) {
		pod := there.GetPod()
		found, isKnown, err := p.pods.GetByKey(pod.Namespace + "/" + pod.Name)
		known, is := found.(*v1.Pod)
		if err == nil && (!isKnown || is && (known.UID != pod.UID || !isAlive(known))) && !strings.HasSuffix(string(pod.UID), reservedSuffix) {
			if err := info.RemovePod(p.logger, pod); err != nil {
				p.logger.Error(err, "A pod that is gone still counts", "pod", pod.Name)
			}
		}
	}
	return info
}

// seatNear finds a node for a seat of a running group, as near to the other members as the policy permits.
func (p *plugin) seatNear(ctx context.Context, g *group, seat int, pod *v1.Pod) *fwk.Status {
	asked := question{slots: 1}
	var status *fwk.Status
	var why refusals
	if asked.free, asked.all, why, status = p.slots(ctx, pod, 1, nil); status != nil {
		return status
	}
	var others []int
	for other, node := range g.placed.Nodes {
		if other != seat && node != "" && (g.seats[other] != "" || p.isInService(node)) {
			others, asked.near = append(others, other), append(asked.near, node)
		}
	}
	err := p.world.refresh(p.logger, p.groups)
	if err != nil {
		return p.unable(g, seat, err)
	}
	p.world.release(p.logger, g)
	placed, refusal, err := p.world.ask(p.world.state, g, asked)
	if err != nil || refusal != nil {
		p.world.hold(p.logger, g)
	}
	switch {
	case err != nil:
		return p.unable(g, seat, err)
	case refusal != nil && !p.mayBeStockIfRefused(g):
		found := p.refusalOf(g, refusal)
		return p.refuse(g, fmt.Sprintf("a pod of %s finds no node near the others: %s", g.key, p.sentence(g, found)+why.sentence()), found)
	case refusal != nil:
		g.leaveToStock(seat, nil)
		return nil
	}
	g.takeNear(seat, others, placed)
	p.world.hold(p.logger, g)
	p.logger.V(2).Info("Member placed near the others", "group", g.key, "rank", seat, "node", g.placed.Nodes[seat])
	return nil
}

// takeNear gives a seat the node of a decision about it and the others. The decision covers the whole group, so its links
// are known now, unless kube-scheduler chose for a member: the node of that one may not be known yet.
func (g *group) takeNear(seat int, others []int, placed *placement) {
	g.refused, g.isUnproven = "", false
	for index, other := range others {
		g.placed.Nodes[other] = placed.Nodes[index]
	}
	g.placed.Nodes[seat] = placed.Nodes[len(placed.Nodes)-1]
	g.placed.Links, g.placed.Share, g.placed.LinkUse = placed.Links, placed.Share, placed.LinkUse
	if g.placed.Policy == stockPolicy {
		g.placed.Links, g.placed.LinkUse = nil, unknownLinks
	}
	g.placed.Machine, g.placed.Revision = placed.Machine, g.placed.Revision+1
}

// unable decides about a seat if the engine cannot answer.
func (p *plugin) unable(g *group, seat int, err error) *fwk.Status {
	switch {
	case errors.As(err, &inputError{}):
		return p.refuse(g, fmt.Sprintf("group %s: %v", g.key, err), nil)
	case !p.mayBeStockIfUnable(g.promised()):
		return p.refuseUnable(g, err)
	}
	p.logger.Error(err, "The stock choice stands for a member", "group", g.key)
	g.leaveToStock(seat, err)
	return nil
}

// leaveToStock lets kube-scheduler choose the node of a seat. The group then counts as the owner of all links that it may
// use, but not as isolated, because others may use these links already. err is why the engine cannot answer.
func (g *group) leaveToStock(seat int, err error) {
	g.refused, g.placed.Nodes[seat] = "", ""
	g.placed.Policy, g.placed.Rule, g.placed.Revision = stockPolicy, stockRule(err), g.placed.Revision+1
	g.placed.Links, g.placed.LinkUse = nil, unknownLinks
}

// isInService reports whether a node exists and accepts pods.
func (p *plugin) isInService(name string) bool {
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name)
	return err == nil && info.Node() != nil && !comesBack(info.Node())
}
