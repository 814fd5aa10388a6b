package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// plan chooses nodes for a group, or returns a status that says why it waits. For a pod that is placed alone, both are
// nil.
func (p *plugin) plan(ctx context.Context, key groupKey, pod *v1.Pod, ahead *reading) (*group, *fwk.Status) {
	g := p.groups[key]
	if g == nil {
		want, err := p.read(ctx, pod, ahead)
		if errors.Is(err, errNoGang) {
			return nil, alone(pod)
		}
		if err != nil {
			return nil, waits("group %s: %v", key, err)
		}
		p.lastID++
		g = &group{key: key, id: p.lastID, asked: want, bound: map[types.UID]bool{}, template: pod}
		p.groups[key] = g
		if notes := unheeded(pod); len(notes) > 0 {
			p.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, "NotHeeded", "Scheduling",
				"group %s is placed without regard to %s", key, shown(strings.Join(notes, ", ")))
		}
	}
	members := p.members(key)
	sets, waiting := podsetsNow(key, g.asked, members)
	if waiting != "" {
		return nil, waits("%s", waiting)
	}
	if g.refused != "" && g.refusedAt == p.generation.Load() {
		return nil, waits("%s", g.refused)
	}
	since := time.Now()
	// Set this first, so that changes during the policy's decision count as later.
	g.refusedAt = p.generation.Load()
	// Members that waited for each other are still nominated to the nodes of a place that the group has given up.
	for _, member := range members {
		if member.Spec.NodeName == "" {
			p.handle.DeleteNominatedPodIfExists(member)
		}
	}
	g.template, g.templates = pod, templatesOf(members)
	chosen := p.choose(ctx, g, sets)
	if chosen.status != nil {
		return nil, chosen.status
	}
	placed, refusal, err := chosen.placed, chosen.refusal, chosen.err
	isStock := err != nil && p.mayBeStockIfUnable(g.promised()) || refusal != nil && p.mayBeStockIfRefused(g)
	p.count(refusal, err, isStock, since)
	p.logger.V(2).Info("Decision", "group", key, "policyMicroseconds", p.world.spent.last.Microseconds(),
		"planMicroseconds", time.Since(since).Microseconds())
	var mend inputError
	switch {
	case errors.As(err, &mend):
		return nil, p.refuse(g, fmt.Sprintf("group %s: %v", key, mend), nil)
	case err != nil && !isStock:
		return nil, p.refuseUnable(g, err)
	case err != nil:
		p.logger.Error(err, "The stock choice stands for a group", "group", key)
		p.handle.EventRecorder().Eventf(pod, nil, v1.EventTypeWarning, "StockChoice", "Scheduling",
			"the stock choice stands for group %s: %v", key, err)
	case refusal != nil && !isStock:
		why := p.refusalOf(g, refusal)
		status := p.refuse(g, p.sentence(g, why)+chosen.why.sentence(), why)
		g.preemptsFor = map[string]string{"not-now": forRoom, "would-share-links": forLinks}[refusal.Name]
		return nil, status
	}
	if placed == nil {
		placed = &placement{Policy: stockPolicy, Rule: stockRule(err), LinkUse: unknownLinks, Nodes: make([]string, total(sets)), Share: 1}
		if len(sets) > 1 {
			placed.Podsets = sets
		}
		g.isStock = true
	}
	if !p.take(g, placed) {
		return nil, p.refuse(g, fmt.Sprintf("group %s: the engine does not take its own choice back", key), nil)
	}
	return g, nil
}

// take gives a group its place. It returns false if the engine does not accept the place.
func (p *plugin) take(g *group, placed *placement) bool {
	g.refused, g.placed, g.seats = "", placed, make([]types.UID, len(placed.Nodes))
	g.planned, g.tried = time.Now(), map[types.UID]bool{}
	if !g.isStock {
		p.world.hold(p.logger, g)
		if !g.isHeld {
			g.placed, g.seats = nil, nil
			return false
		}
	}
	p.logger.V(2).Info("Group placed", "group", g.key, "policy", placed.Policy, "nodes", placed.Nodes)
	return true
}

// members returns the pods of a group that have not ended and may be scheduled.
func (p *plugin) members(key groupKey) []*v1.Pod {
	objects, _ := p.pods.ByIndex(byGroup, string(key))
	var members []*v1.Pod
	for _, object := range objects {
		if pod, is := object.(*v1.Pod); is && isAlive(pod) && len(pod.Spec.SchedulingGates) == 0 {
			if pod.DeletionTimestamp == nil || pod.Spec.NodeName != "" {
				members = append(members, pod)
			}
		}
	}
	return members
}

// refuse makes a group wait. why is nil if neither the policy nor the engine is the reason.
func (p *plugin) refuse(g *group, sentence string, why *refusal) *fwk.Status {
	g.refused, g.why, g.preemptsFor = sentence+g.record(why), why, ""
	return waits("%s", g.refused)
}

// drop takes the place away from a group that is not whole. Its waiting pods return to the queue.
func (p *plugin) drop(g *group, why string) {
	p.world.release(p.logger, g)
	for _, pod := range g.seats {
		if waiting := p.handle.GetWaitingPod(pod); waiting != nil {
			waiting.Reject(Name, why)
		}
	}
	delete(p.groups, g.key)
	p.changed()
}

// longest is the longest time for which a place is kept for missing members.
func (p *plugin) longest() time.Duration { return 2 * p.args.timeout() }

// expire drops places that their groups did not take in time.
func (p *plugin) expire() {
	for _, g := range p.groups {
		if g.placed != nil && !g.isWhole && time.Since(g.planned) > p.longest() {
			p.drop(g, "the group was not whole in time")
		}
	}
}

// changed lets refused groups be asked again.
func (p *plugin) changed() {
	p.generation.Add(1)
	for key, g := range p.groups {
		if g.refused != "" {
			p.wake(key)
		}
	}
	if p.keptOff.Swap(false) {
		p.wakeSingle()
	}
}

// wakeSingle is like wake for pods without groups: groups may have given up room from which these pods were excluded.
func (p *plugin) wakeSingle() {
	pods := map[string]*v1.Pod{}
	for _, object := range p.pods.List() {
		pod, is := object.(*v1.Pod)
		if is && pod.Spec.NodeName == "" && pod.Spec.SchedulerName == p.handle.ProfileName() && groupOf(pod) == "" {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	p.handle.Activate(klog.LoggerWithName(p.logger, "wake"), pods)
}

// wake moves the waiting pods of a group to the front of the queue.
func (p *plugin) wake(key groupKey) {
	pods := map[string]*v1.Pod{}
	for _, pod := range p.members(key) {
		if pod.Spec.NodeName == "" {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	p.handle.Activate(klog.LoggerWithName(p.logger, "wake"), pods)
}
