package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// searchAgain is how long a group waits before victims are looked for again, if nothing has changed.
const searchAgain = 5 * time.Second

// PostFilter looks for victims of lower priority, so that a pod or a group that was refused gets a place.
func (p *plugin) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	said, isOurs := "", false
	p.guarded("PostFilter", pod.Name, func() {
		g := p.groups[groupOf(pod)]
		if groupOf(pod) == "" || g != nil && g.placed != nil && (g.isStock || g.isWhole) {
			return
		}
		isOurs = true
		if g != nil && g.placed == nil && g.preemptsFor != "" &&
			(g.searchedAt != p.generation.Load() || time.Since(g.searched) > searchAgain) {
			g.searched, g.searchedAt = time.Now(), p.generation.Load()
			said = p.preempt(ctx, g)
		}
	})
	if isOurs {
		status := fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
		if said != "" {
			status.AppendReason(said)
		}
		return nil, status
	}
	return p.single.PostFilter(ctx, state, pod, nodes)
}

// preempt evicts what must go so that the policy places a group, and keeps the place for it; it says what it did.
func (p *plugin) preempt(ctx context.Context, g *group) string {
	priority, isAllowed := p.rank(g)
	if !isAllowed {
		return "it does not preempt: preemptionPolicy is Never."
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return ""
	}
	given, err := p.handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		return ""
	}
	found := p.units(nodes, p.waiting(), g.key, priority, time.Now())
	if len(found) == 0 {
		return ""
	}
	victims, placed, err := p.chooseVictims(ctx, g, nodes, found, budgets(found, given))
	if err != nil {
		p.logger.Error(err, "No victims are looked for", "group", g.key)
	}
	if err != nil || placed == nil {
		return ""
	}
	return p.succeed(g, placed, victims)
}

// waiting is the groups that have a place, and not all of their members yet.
func (p *plugin) waiting() (found []*group) {
	for _, g := range p.groups {
		if g.placed != nil && !g.isWhole {
			found = append(found, g)
		}
	}
	return found
}

// rank is the priority of a group, that of its least member, and whether it may preempt.
func (p *plugin) rank(g *group) (priority int32, mayPreempt bool) {
	priority, mayPreempt = corev1helpers.PodPriority(g.template), true
	for _, pod := range p.members(g.key) {
		priority = min(priority, corev1helpers.PodPriority(pod))
		if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == v1.PreemptNever {
			mayPreempt = false
		}
	}
	return priority, mayPreempt
}

// succeed gives a group the place of its victims. It takes it when they have ended.
func (p *plugin) succeed(g *group, placed *placement, victims []*unit) string {
	awaits, evicted, names := map[types.UID]string{}, []*v1.Pod(nil), []string(nil)
	var leaving []*group
	var grace int64
	for _, one := range victims {
		names = append(names, one.name())
		if v := p.groups[one.group]; v != nil && v.placed != nil {
			if !v.isWhole {
				p.drop(v, "a group of higher priority takes the place")
				continue
			}
			if !v.isLeaving {
				leaving = append(leaving, v)
				p.setLeaving(v, true)
			}
		}
		for _, member := range one.pods {
			pod := member.GetPod()
			awaits[pod.UID] = pod.Spec.NodeName
			if pod.DeletionTimestamp == nil {
				evicted = append(evicted, pod)
			}
			if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
				grace = max(grace, *seconds)
			}
		}
	}
	if !p.take(g, placed) {
		for _, v := range leaving {
			p.setLeaving(v, false)
		}
		return ""
	}
	preemptions.WithLabelValues(g.preemptsFor).Add(float64(len(leaving)))
	if len(victims) == 0 {
		p.wake(g.key)
		return ""
	}
	g.awaits, g.planned = awaits, g.planned.Add(time.Duration(grace)*time.Second)
	p.evict(g, evicted)
	p.logger.Info("Group preempts", "group", g.key, "victims", names, "pods", len(evicted))
	return fmt.Sprintf("It takes the place of %s.", shortened(names))
}

// Why groups are evicted.
const (
	forRoom  = "room"
	forLinks = "links"
	forPod   = "pod"
)

// setLeaving says whether a group that runs is to leave, and lets the engine know.
func (p *plugin) setLeaving(g *group, isLeaving bool) {
	g.isLeaving = isLeaving
	p.world.hold(p.logger, g)
}

func (u *unit) name() string {
	if u.group != "" {
		return u.group.String()
	}
	pod := u.pods[0].GetPod()
	return pod.Namespace + "/" + pod.Name
}

// shortened is some names, and how many more there are.
func shortened(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// awaited is how many pods must still end before a group may take its place.
func (p *plugin) awaited(g *group) int {
	for pod, node := range g.awaits {
		info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(node)
		if err != nil || !slices.ContainsFunc(info.GetPods(), func(on fwk.PodInfo) bool { return on.GetPod().UID == pod }) {
			p.ended(g, pod)
		}
	}
	return len(g.awaits)
}

// ended notes that a pod that a group waits for is gone. With the last one its time begins.
func (p *plugin) ended(g *group, pod types.UID) {
	if _, is := g.awaits[pod]; !is {
		return
	}
	delete(g.awaits, pod)
	if len(g.awaits) == 0 {
		g.planned = time.Now()
		p.wake(g.key)
	}
}
