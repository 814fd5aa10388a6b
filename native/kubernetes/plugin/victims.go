package plugin

import (
	"cmp"
	"context"
	"maps"
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
	group    groupKey
	pods     []fwk.PodInfo
	priority int32
	started  *metav1.Time
	// isEnding says that all its pods are being deleted anyway.
	isEnding bool
	// breaksBudget says that a PodDisruptionBudget would not allow to evict it after those before it.
	breaksBudget bool
}

// units is what has nodes or a place, and may be preempted by a group of a priority, and what is ending: the least important first.
func (p *plugin) units(
	nodes []fwk.NodeInfo, waiting []*group, group groupKey, priority int32, budgets []*policyv1.PodDisruptionBudget,
) []*unit {
	byKey := map[string]*unit{}
	for _, info := range nodes {
		for _, member := range info.GetPods() {
			pod := member.GetPod()
			key := p.groupOf(pod)
			if key == group {
				continue
			}
			place := string(key)
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
		if _, known := byKey[string(g.key)]; !known && g.key != group {
			byKey[string(g.key)] = &unit{group: g.key, priority: corev1helpers.PodPriority(g.template), started: &metav1.Time{Time: g.planned}}
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
	*plugin
	ctx    context.Context
	group  *group
	sets   []podset
	infos  map[string]fwk.NodeInfo
	engine *engine.State
	// looks has for one pod of each podset what the filters say of the nodes.
	looks map[*v1.Pod]*look
}

// look is what the filters say of the nodes for pods that are alike.
type look struct {
	filters    fwk.CycleState
	only       *fwk.PreFilterResult
	kept       reserved
	most       int
	free, all  map[string]uint32
	isOutdated map[string]bool
}

// newTrial is the cluster as it is.
func (p *plugin) newTrial(ctx context.Context, g *group, sets []podset, nodes []fwk.NodeInfo) (*trial, error) {
	state, err := p.world.state.Copy()
	if err != nil {
		return nil, err
	}
	t := &trial{
		plugin: p, ctx: ctx, group: g, sets: sets, infos: map[string]fwk.NodeInfo{}, engine: state, looks: map[*v1.Pod]*look{},
	}
	for _, info := range nodes {
		if node := info.Node(); node != nil {
			t.infos[node.Name] = info.Snapshot()
		}
	}
	templates := []*v1.Pod{g.template}
	if len(sets) > 1 {
		templates = nil
		for _, set := range sets {
			templates = append(templates, g.templates[set.Name])
		}
	}
	for _, pod := range templates {
		filters, only, status := p.filtersFor(ctx, pod)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		made := &look{
			filters: filters, only: only, kept: p.reservedFor(pod), most: mostOnNode(pod, total(sets)), free: map[string]uint32{},
			all: map[string]uint32{}, isOutdated: map[string]bool{},
		}
		for name := range t.infos {
			made.isOutdated[name] = true
		}
		t.looks[pod] = made
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
		if err := info.RemovePod(t.logger, member.GetPod()); err != nil {
			return err
		}
		for pod, look := range t.looks {
			look.isOutdated[info.Node().Name] = true
			said := t.handle.RunPreFilterExtensionRemovePod(t.ctx, look.filters, pod, member, info)
			if !said.IsSuccess() {
				return said.AsError()
			}
		}
	}
	if g := t.groups[one.group]; g != nil && g.isHeld {
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
		for pod, look := range t.looks {
			look.isOutdated[info.Node().Name] = true
			said := t.handle.RunPreFilterExtensionAddPod(t.ctx, look.filters, pod, member, info)
			if !said.IsSuccess() {
				return said.AsError()
			}
		}
	}
	if g := t.groups[one.group]; g != nil && g.isHeld {
		_, err := t.world.holdIn(t.engine, g)
		return err
	}
	return nil
}

// place asks the policy; nil if it refuses.
func (t *trial) place() (*placement, error) {
	chosen := t.chooseAll(t, t.group, t.sets)
	if chosen.status != nil {
		return nil, chosen.status.AsError()
	}
	return chosen.placed, chosen.err
}

func (t *trial) state() *engine.State { return t.engine }

// slots asks the filters of nodes that changed since they were asked, and of those with pods that are taken to be there.
func (t *trial) slots(pod *v1.Pod, _ int, taken reserved) (free, all map[string]uint32, why refusals, status *fwk.Status) {
	look := t.looks[pod]
	if err := t.count(pod, look, slices.Collect(maps.Keys(look.isOutdated)), look.kept, look.free, look.all); err != nil {
		return nil, nil, nil, fwk.AsStatus(err)
	}
	clear(look.isOutdated)
	if len(taken) == 0 {
		return look.free, look.all, nil, nil
	}
	free, all, kept := maps.Clone(look.free), maps.Clone(look.all), maps.Clone(look.kept)
	for node, pods := range taken {
		kept[node] = slices.Concat(kept[node], pods)
	}
	if err := t.count(pod, look, slices.Collect(maps.Keys(taken)), kept, free, all); err != nil {
		return nil, nil, nil, fwk.AsStatus(err)
	}
	return free, all, nil, nil
}

// count counts the slots of some nodes.
func (t *trial) count(pod *v1.Pod, look *look, names []string, kept reserved, free, all map[string]uint32) error {
	var nodes []fwk.NodeInfo
	for _, name := range names {
		nodes = append(nodes, t.infos[name])
	}
	now, ever, _, err := t.countSlots(t.ctx, look.filters, look.only, pod, nodes, kept, look.most, nil)
	if err != nil {
		return err
	}
	for _, name := range names {
		free[name], all[name] = now[name], ever[name]
	}
	return nil
}
