package plugin

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"topolane/scheduler/engine"
)

// unit is what is preempted whole: the pods of a group, or a pod that is in none.
type unit struct {
	group    groupKey
	pods     []fwk.PodInfo
	priority int32
	// isEnding says that all its pods go anyway: they are being deleted, or a preemption has named their group.
	isEnding bool
	// cost is what it has done: the shares of nodes of its pods, times the seconds since they got them; at least 1, but 0 if it is ending.
	cost float64
	// rank says which units go only if others are not enough.
	rank uint32
	// budget is the place of the PodDisruptionBudget that limits it, and uses how many of its pods that counts.
	budget, uses uint32
	// isOver says that its eviction is more than the budgets allow.
	isOver bool
}

// units is what has nodes or a place, and may be preempted by a group of a priority, and what is ending: the least important first.
func (p *plugin) units(nodes []fwk.NodeInfo, waiting []*group, group groupKey, priority int32, now time.Time) []*unit {
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
				one = &unit{group: key, priority: corev1helpers.PodPriority(pod), isEnding: true, budget: engine.NoBudget}
				byKey[place] = one
			}
			one.pods = append(one.pods, member)
			one.priority = max(one.priority, corev1helpers.PodPriority(pod))
			one.isEnding = one.isEnding && (pod.DeletionTimestamp != nil || p.isNamed(key))
			one.cost += shareOf(member, info) * max(now.Sub(placedAt(pod)).Seconds(), 0)
		}
	}
	for _, g := range waiting {
		if _, known := byKey[string(g.key)]; !known && g.key != group {
			byKey[string(g.key)] = &unit{group: g.key, priority: corev1helpers.PodPriority(g.template), budget: engine.NoBudget}
		}
	}
	var found []*unit
	for _, one := range byKey {
		if one.cost = max(one.cost, 1); one.isEnding {
			one.cost = 0
		}
		if one.isEnding || one.priority < priority {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, lessImportant)
	for place, one := range found {
		if place > 0 {
			one.rank = found[place-1].rank
			if compareRanks(found[place-1], one) != 0 {
				one.rank++
			}
		}
	}
	return found
}

// isNamed says whether a preemption has named a group. Until the API server has marked its pods, a second search must not name others.
// The mark of `topolane k8s apply` is no such name: that command evicts, within the budgets, and anyone may write the mark.
func (p *plugin) isNamed(key groupKey) bool {
	g := p.groups[key]
	return g != nil && g.isLeaving && !g.isSentAway
}

// compareRanks sorts what goes only if others are not enough to the end, as kube-scheduler does: the higher priority, and of one
// priority groups.
func compareRanks(one, other *unit) int {
	return cmp.Or(
		-compareBool(one.isEnding, other.isEnding),
		cmp.Compare(one.priority, other.priority),
		compareBool(one.group != "", other.group != ""),
	)
}

// lessImportant sorts what is evicted first to the front. Of sets that cost the same the engine takes the one of earlier units.
func lessImportant(one, other *unit) int {
	return cmp.Or(
		compareRanks(one, other),
		cmp.Compare(one.cost, other.cost),
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

// shareOf is the largest share of its node that a pod asks for, of any resource.
func shareOf(member fwk.PodInfo, info fwk.NodeInfo) float64 {
	asks, has, share := member.CalculateResource().Resource, info.GetAllocatable(), 0.0
	for _, kind := range kindsOf(asks) {
		if all := kind.of(has); all > 0 {
			share = max(share, float64(kind.of(asks))/float64(all))
		}
	}
	return min(share, 1)
}

// placedAt is when a pod got its node.
func placedAt(pod *v1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue && !condition.LastTransitionTime.IsZero() {
			return condition.LastTransitionTime.Time
		}
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// budgets is how many pods PodDisruptionBudgets still allow to evict. It notes for each unit which of them limits it. A unit is over what
// they allow if its pods alone are too many, or if several budgets limit it: the engine counts one for each.
func budgets(found []*unit, given []*policyv1.PodDisruptionBudget) (allowed []uint32) {
	for place, budget := range given {
		allowed = append(allowed, uint32(max(budget.Status.DisruptionsAllowed, 0)))
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			continue
		}
		for _, one := range found {
			uses := uint32(0)
			for _, member := range one.pods {
				pod := member.GetPod()
				if one.isEnding || budget.Namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
					continue
				}
				if _, isCounted := budget.Status.DisruptedPods[pod.Name]; !isCounted {
					uses++
				}
			}
			if uses > 0 {
				one.isOver = one.isOver || one.budget != engine.NoBudget || uses > allowed[place]
				one.budget, one.uses = uint32(place), uses
			}
		}
	}
	return allowed
}

// withinBudgets is the units that budgets allow to evict.
func withinBudgets(found []*unit) []*unit {
	return slices.DeleteFunc(slices.Clone(found), func(one *unit) bool { return one.isOver })
}

// beyondBudgets is all units, where one budget counts the pods by which units exceed theirs once the less important units under it are
// evicted.
func beyondBudgets(found []*unit, allowed []uint32) []*unit {
	left := slices.Clone(allowed)
	made := make([]*unit, len(found))
	for place, one := range found {
		copied := *one
		made[place] = &copied
		if one.budget == engine.NoBudget {
			continue
		}
		if one.isOver || one.uses > left[one.budget] {
			copied.budget, copied.uses = 0, max(one.uses, left[one.budget]+1)-left[one.budget]
			continue
		}
		left[one.budget] -= one.uses
		copied.budget, copied.uses = engine.NoBudget, 0
	}
	return made
}

// onlyBeyond is units that cost the pods by which they exceed their budget, and nothing else.
func onlyBeyond(found []*unit) []*unit {
	made := make([]*unit, len(found))
	for place, one := range found {
		copied := *one
		copied.cost, copied.rank, copied.budget, copied.uses = float64(one.uses), 0, engine.NoBudget, 0
		made[place] = &copied
	}
	return made
}
