package plugin

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"topolane/scheduler/engine"
)

// unit is what is preempted whole: the pods of a group, or a pod that is in none.
type unit struct {
	group    string
	pods     []fwk.PodInfo
	priority int32
	started  *metav1.Time
	// isEnding says that all its pods are being deleted anyway.
	isEnding bool
	// breaksBudget says that a PodDisruptionBudget would not allow to evict it after those before it.
	breaksBudget bool
}

// units is what has nodes or a place, and may be preempted by a group of a priority, and what is ending: the least important first.
func units(
	nodes []fwk.NodeInfo, waiting []*group, group string, priority int32, budgets []*policyv1.PodDisruptionBudget,
) []*unit {
	byKey := map[string]*unit{}
	for _, info := range nodes {
		for _, member := range info.GetPods() {
			pod := member.GetPod()
			key := groupOf(pod)
			if key == group {
				continue
			}
			place := key
			if key == "" {
				place = string(pod.UID)
			}
			one, known := byKey[place]
			if !known {
				one = &unit{group: key, priority: corev1helpers.PodPriority(pod), started: util.GetPodStartTime(pod), isEnding: true}
				byKey[place] = one
			}
			one.pods = append(one.pods, member)
			one.priority = max(one.priority, corev1helpers.PodPriority(pod))
			one.isEnding = one.isEnding && pod.DeletionTimestamp != nil
			if started := util.GetPodStartTime(pod); started.Before(one.started) {
				one.started = started
			}
		}
	}
	for _, g := range waiting {
		if _, known := byKey[g.key]; !known && g.key != group {
			byKey[g.key] = &unit{group: g.key, priority: corev1helpers.PodPriority(g.template), started: &metav1.Time{Time: g.planned}}
		}
	}
	var found []*unit
	for _, one := range byKey {
		if one.isEnding || one.priority < priority {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, lessImportant)
	markBudgets(found, budgets)
	slices.SortStableFunc(found, lessImportant)
	return found
}

// lessImportant sorts what is evicted first to the front, in the order of kube-scheduler: what breaks no budget, the lower
// priority, pods before groups, what started later.
func lessImportant(one, other *unit) int {
	return cmp.Or(
		-compareBool(one.isEnding, other.isEnding),
		compareBool(one.breaksBudget, other.breaksBudget),
		cmp.Compare(one.priority, other.priority),
		compareBool(one.group != "", other.group != ""),
		other.started.Time.Compare(one.started.Time),
		cmp.Compare(one.name(), other.name()),
	)
}

func compareBool(one, other bool) int {
	switch {
	case one == other:
		return 0
	case one:
		return 1
	}
	return -1
}

// markBudgets marks what exceeds a budget if those before it are evicted.
func markBudgets(sorted []*unit, budgets []*policyv1.PodDisruptionBudget) {
	type left struct {
		*policyv1.PodDisruptionBudget
		selector labels.Selector
		allowed  int32
	}
	var all []*left
	for _, budget := range budgets {
		if selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err == nil && !selector.Empty() {
			all = append(all, &left{budget, selector, budget.Status.DisruptionsAllowed})
		}
	}
	for _, one := range sorted {
		for _, member := range one.pods {
			pod := member.GetPod()
			for _, budget := range all {
				if _, isCounted := budget.Status.DisruptedPods[pod.Name]; isCounted || one.isEnding ||
					budget.Namespace != pod.Namespace || !budget.selector.Matches(labels.Set(pod.Labels)) {
					continue
				}
				budget.allowed--
				one.breaksBudget = one.breaksBudget || budget.allowed < 0
			}
		}
	}
}

// trial is the cluster as it would be without some units, for one group that asks for a place.
type trial struct {
	p          *plugin
	ctx        context.Context
	group      *group
	filters    fwk.CycleState
	only       *fwk.PreFilterResult
	kept       reserved
	most       int
	infos      map[string]fwk.NodeInfo
	free, all  map[string]uint32
	isOutdated map[string]bool
	engine     *engine.State
}

// newTrial is the cluster as it is.
func (p *plugin) newTrial(ctx context.Context, g *group, pod *v1.Pod, nodes []fwk.NodeInfo) (*trial, error) {
	state, err := p.world.state.Copy()
	if err != nil {
		return nil, err
	}
	filters, only, status := p.filtersFor(ctx, pod)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	t := &trial{
		p: p, ctx: ctx, group: g, filters: filters, only: only, kept: p.reservedFor(pod), most: mostOnNode(pod, g.asked.size),
		infos: map[string]fwk.NodeInfo{}, free: map[string]uint32{}, all: map[string]uint32{}, isOutdated: map[string]bool{},
		engine: state,
	}
	for _, info := range nodes {
		if node := info.Node(); node != nil {
			t.infos[node.Name] = info.Snapshot()
			t.isOutdated[node.Name] = true
		}
	}
	return t, nil
}

// remove takes a unit away, restore puts it back.
func (t *trial) remove(one *unit) error {
	for _, member := range one.pods {
		info, known := t.infos[member.GetPod().Spec.NodeName]
		if !known {
			continue
		}
		if err := info.RemovePod(t.p.logger, member.GetPod()); err != nil {
			return err
		}
		t.isOutdated[info.Node().Name] = true
		said := t.p.handle.RunPreFilterExtensionRemovePod(t.ctx, t.filters, t.group.template, member, info)
		if !said.IsSuccess() {
			return said.AsError()
		}
	}
	if g := t.p.groups[one.group]; g != nil && g.isHeld {
		return t.engine.Release(g.id)
	}
	return nil
}

func (t *trial) restore(one *unit) error {
	for _, member := range one.pods {
		info, known := t.infos[member.GetPod().Spec.NodeName]
		if !known {
			continue
		}
		info.AddPodInfo(member)
		t.isOutdated[info.Node().Name] = true
		said := t.p.handle.RunPreFilterExtensionAddPod(t.ctx, t.filters, t.group.template, member, info)
		if !said.IsSuccess() {
			return said.AsError()
		}
	}
	if g := t.p.groups[one.group]; g != nil && g.isHeld {
		_, err := t.p.world.holdIn(t.engine, g)
		return err
	}
	return nil
}

// place asks the policy; nil if it refuses.
func (t *trial) place() (*placement, error) {
	var outdated []fwk.NodeInfo
	for name := range t.isOutdated {
		outdated = append(outdated, t.infos[name])
	}
	free, all, _, err := t.p.countSlots(t.ctx, t.filters, t.only, t.group.template, outdated, t.kept, t.most, nil)
	if err != nil {
		return nil, err
	}
	for name := range t.isOutdated {
		t.free[name], t.all[name] = free[name], all[name]
	}
	t.isOutdated = map[string]bool{}
	placed, _, err := t.p.world.place(t.engine, t.group, t.free, t.all)
	return placed, err
}
