package plugin

import (
	"context"
	"fmt"
	"runtime/debug"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// single is kube-scheduler's preemption for pods without a group. It evicts pods without groups if that is enough,
// otherwise whole groups.
type single struct {
	*defaultpreemption.DefaultPreemption
	takesGroups bool
}

// stockPreemption has the arguments that kube-scheduler uses by default.
var stockPreemption = config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}

func (p *plugin) newSingle(ctx context.Context) (*single, error) {
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	stock, err := defaultpreemption.New(ctx, &stockPreemption, p.handle, features)
	if err != nil {
		return nil, err
	}
	made := &single{DefaultPreemption: stock}
	stock.IsEligiblePod = func(_ fwk.NodeInfo, victim fwk.PodInfo, preemptor *v1.Pod) bool {
		key := p.groupOf(victim.GetPod())
		return key == "" || made.takesGroups && key != p.groupOf(preemptor) &&
			p.highest(key) < corev1helpers.PodPriority(preemptor)
	}
	p.evictPod = stock.Executor.PreemptPod
	stock.Executor.PreemptPod = func(
		ctx context.Context, where preemption.Candidate, by preemption.ExecutorPreemptor, victim *v1.Pod, name string,
	) error {
		for _, pod := range p.wholeOf(victim) {
			if err := p.evictPod(ctx, where, by, pod, name); err != nil {
				return err
			}
		}
		return nil
	}
	return made, nil
}

// PostFilter is kube-scheduler's, with whole groups as victims if other pods are not enough.
func (s *single) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader,
) (result *fwk.PostFilterResult, status *fwk.Status) {
	for _, s.takesGroups = range []bool{false, true} {
		if result, status = s.DefaultPreemption.PostFilter(ctx, state, pod, nodes); status.IsSuccess() {
			return result, status
		}
	}
	if status.Code() == fwk.Unschedulable {
		// After Unschedulable, kube-scheduler's own plugin would try again and evict single members of groups.
		status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, status.Reasons()...)
	}
	return result, status
}

// PreEnqueue makes a pod wait while its victims are being evicted.
func (p *plugin) PreEnqueue(ctx context.Context, pod *v1.Pod) *fwk.Status {
	return p.single.PreEnqueue(ctx, pod)
}

// highest returns the highest priority among the pods of a group.
func (p *plugin) highest(key groupKey) int32 {
	priority := int32(-1 << 31)
	for _, pod := range p.members(key) {
		priority = max(priority, corev1helpers.PodPriority(pod))
	}
	return priority
}

// wholeOf returns the pods that are evicted together with one: the group's pods that have nodes, or only the pod itself.
// It marks the group as leaving.
func (p *plugin) wholeOf(victim *v1.Pod) []*v1.Pod {
	key := p.groupOf(victim)
	if key == "" {
		return []*v1.Pod{victim}
	}
	pods := []*v1.Pod{}
	p.guarded("wholeOf", key.String(), func() {
		if g := p.groups[key]; g != nil && g.placed != nil {
			if !g.isWhole {
				p.drop(g, "a pod of higher priority takes a place")
				return
			}
			if !g.isLeaving {
				preemptions.WithLabelValues(forPod).Inc()
			}
			p.setLeaving(g, true)
		}
		for _, pod := range p.members(key) {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
	})
	return pods
}

// preemptor is a group as kube-scheduler's preemption sees it.
type preemptor struct {
	*v1.Pod
	key  groupKey
	pods []*v1.Pod
}

func (p preemptor) UID() types.UID        { return types.UID(p.key) }
func (p preemptor) SchedulerName() string { return p.Spec.SchedulerName }
func (p preemptor) Obj() runtime.Object   { return p.Pod }
func (p preemptor) Priority() int32       { return corev1helpers.PodPriority(p.Pod) }
func (p preemptor) Type() string          { return "group" }
func (p preemptor) Pods() map[string]*v1.Pod {
	named := map[string]*v1.Pod{}
	for _, pod := range p.pods {
		named[pod.Name] = pod
	}
	return named
}

// place is the node of a victim.
type place struct{ victim *v1.Pod }

func (p place) Victims() *extenderv1.Victims { return &extenderv1.Victims{Pods: []*v1.Pod{p.victim}} }
func (p place) Name() string                 { return p.victim.Spec.NodeName }

// evict deletes the victims of a group as kube-scheduler does, while other pods are scheduled.
func (p *plugin) evict(g *group, victims []*v1.Pod) {
	by := preemptor{g.template, g.key, p.members(g.key)}
	go func() {
		ctx := context.Background()
		p.handle.Parallelizer().Until(ctx, len(victims), func(index int) {
			// A panic here would end the process.
			defer func() {
				if failure := recover(); failure != nil {
					p.logger.Error(fmt.Errorf("%v", failure), "The plugin failed", "entry", "evict", "stack", string(debug.Stack()))
				}
			}()
			victim := victims[index]
			for attempt := 1; attempt <= evictionAttempts; attempt++ {
				err := p.evictPod(ctx, place{victim}, by, victim, Name)
				if err == nil {
					return
				}
				p.logger.Error(err, "A pod could not be preempted", "pod", victim.Name, "by", g.key, "attempt", attempt)
			}
			p.guarded("evict", victim.Name, func() {
				if stays := p.groups[p.groupOf(victim)]; stays != nil && stays.isLeaving {
					if p.groups[g.key] == g && !g.isWhole {
						p.drop(g, "a pod in its place could not be preempted")
					}
					stays.isLeaving = false
					p.world.hold(p.logger, stays)
				}
			})
		}, Name)
	}()
}

const evictionAttempts = 3

// isPreempted reports whether a pod is being deleted because a scheduler preempted it.
func isPreempted(pod *v1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.DisruptionTarget {
			return condition.Status == v1.ConditionTrue && condition.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
	return false
}
