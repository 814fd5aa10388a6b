package plugin

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// asking marks the cycle state in which the stock filters are run for a group: our own entry points are then silent.
const asking fwk.StateKey = Name + "/asking"

type mark struct{}

func (m mark) Clone() fwk.StateData { return m }

func isAsking(state fwk.CycleState) bool {
	_, err := state.Read(asking)
	return err == nil
}

// reserved is room on nodes for members of groups that have a place but have not come yet, by node.
type reserved map[string][]fwk.PodInfo

// Clone is for the cycle state: nothing changes it.
func (r reserved) Clone() fwk.StateData { return r }

// keepForAWhile keeps the room of the seats of a group that have just lost their pods, and lets others have what is still empty
// when the time is over.
func (p *plugin) keepForAWhile(g *group) {
	if g.isTimed || len(g.vacated) == 0 {
		return
	}
	g.isTimed = true
	time.AfterFunc(p.longest()+time.Millisecond, func() {
		p.guarded("keepForAWhile", g.key.String(), func() {
			g.isTimed = false
			if p.groups[g.key] != g {
				return
			}
			isFreed := false
			for seat := range g.vacated {
				isTaken := seat >= len(g.seats) || g.seats[seat] != ""
				if isTaken || !g.keeps(seat, p.longest()) {
					delete(g.vacated, seat)
					isFreed = isFreed || !isTaken
				}
			}
			if isFreed {
				p.changed()
			}
			p.keepForAWhile(g)
		})
	})
}

// keeping has what other groups have reserved at the start of the cycle of a pod.
const keeping fwk.StateKey = Name + "/keeping"

// withReserved is a node as if the pods were there for which there is room reserved.
func withReserved(info fwk.NodeInfo, kept reserved) fwk.NodeInfo {
	pods := kept[info.Node().Name]
	if len(pods) == 0 {
		return info
	}
	info = info.Snapshot()
	for _, pod := range pods {
		info.AddPodInfo(pod)
	}
	return info
}

// reservedFor is what other groups have reserved against a pod: those of lower priority have nothing.
func (p *plugin) reservedFor(pod *v1.Pod) reserved {
	kept := reserved{}
	own, priority := p.groupOf(pod), corev1helpers.PodPriority(pod)
	for key, g := range p.groups {
		if key == own || g.placed == nil || g.isStock || corev1helpers.PodPriority(g.template) < priority {
			continue
		}
		for seat, pod := range g.seats {
			if node := g.placed.Nodes[seat]; pod == "" && node != "" && g.keeps(seat, p.longest()) {
				kept[node] = append(kept[node], copyOf(g.templateOf(seat)))
			}
		}
	}
	return kept
}

// reservedSuffix is how the identities end of pods for which room is kept.
const reservedSuffix = "-reserved"

// copyOf is a pod like another, so that several of it can be counted on one node.
func copyOf(pod *v1.Pod) fwk.PodInfo {
	twin := pod.DeepCopy()
	twin.UID = types.UID(string(pod.UID) + reservedSuffix)
	info, _ := framework.NewPodInfo(twin)
	return info
}

// slots is how many pods like this one each node takes: now, and if nothing ran there. The stock filters decide which nodes
// it may use at all, and why not the others. There is no room where pods are taken to be.
func (p *plugin) slots(ctx context.Context, pod *v1.Pod, most int, taken reserved) (
	free, all map[string]uint32, why refusals, status *fwk.Status) {
	state, only, status := p.filtersFor(ctx, pod)
	if !status.IsSuccess() {
		return nil, nil, nil, status
	}
	kept := p.reservedFor(pod)
	for node, pods := range taken {
		kept[node] = append(kept[node], pods...)
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err == nil {
		free, all, why, err = p.countSlots(
			ctx, state, only, pod, nodes, kept, mostOnNode(pod, most), p.memoOf(state, pod))
	}
	if err != nil {
		return nil, nil, nil, fwk.AsStatus(err)
	}
	return free, all, why, nil
}

// filtersFor is the stock filters made ready for a pod, and the nodes that they are limited to.
func (p *plugin) filtersFor(ctx context.Context, pod *v1.Pod) (fwk.CycleState, *fwk.PreFilterResult, *fwk.Status) {
	state := framework.NewCycleState()
	state.Write(asking, mark{})
	only, status, _ := p.handle.RunPreFilterPlugins(ctx, state, pod)
	return state, only, status
}

// mostOnNode is how many pods like this one may be on a node, up to some number.
func mostOnNode(pod *v1.Pod, most int) int {
	if isAlone(pod) {
		return 1
	}
	return most
}

// countSlots is the slots of some nodes, and why there are none on others. Known is what was said of them before, if that counts.
func (p *plugin) countSlots(
	ctx context.Context, state fwk.CycleState, only *fwk.PreFilterResult, pod *v1.Pod, nodes []fwk.NodeInfo, kept reserved, most int,
	known memo) (free, all map[string]uint32, why refusals, err error) {
	free, all, why = make(map[string]uint32, len(nodes)), make(map[string]uint32, len(nodes)), refusals{}
	twin := copyOf(pod)
	var lock sync.Mutex
	p.handle.Parallelizer().Until(ctx, len(nodes), func(index int) {
		// A panic here would end the process: the node is not offered instead.
		defer func() {
			if failure := recover(); failure != nil {
				p.logger.Error(fmt.Errorf("%v", failure), "A node could not be looked at", "stack", string(debug.Stack()))
			}
		}()
		info := nodes[index]
		node := info.Node()
		if node == nil || !only.AllNodes() && !only.NodeNames.Has(node.Name) {
			return
		}
		isLasting := known != nil && len(kept[node.Name]) == 0 && len(p.handle.NominatedPodsForNode(node.Name)) == 0
		lock.Lock()
		said, isKnown := known.recall(info, most)
		lock.Unlock()
		if !isLasting || !isKnown {
			said = p.ask(ctx, state, pod, twin, withReserved(info, kept), most)
		}
		lock.Lock()
		defer lock.Unlock()
		if isLasting && !isKnown {
			known[node.Name] = said
		}
		why.add(said.status)
		free[node.Name], all[node.Name] = uint32(said.now), uint32(max(said.now, said.ever))
	}, Name)
	return free, all, why, ctx.Err()
}

// ask runs the stock filters for a pod on a node, and counts its slots.
func (p *plugin) ask(ctx context.Context, state fwk.CycleState, pod *v1.Pod, twin fwk.PodInfo, info fwk.NodeInfo, most int) answer {
	said := answer{generation: info.GetGeneration(), most: most}
	said.status = p.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
	if said.status.IsSuccess() {
		said.now = p.fits(pod, twin, info, most)
	}
	// A node that does not answer counts as one that runs. One that is cordoned may stay so for days: groups do not wait for it.
	isAway := comesBack(info.Node()) && !info.Node().Spec.Unschedulable
	if said.status.Code() != fwk.UnschedulableAndUnresolvable || isAway {
		empty := framework.NewNodeInfo()
		empty.SetNode(info.Node())
		said.ever = p.fits(pod, twin, empty, most)
	}
	return said
}

// fits is how many pods like this one a node has resources for, up to some number. The twin is one of them.
func (p *plugin) fits(pod *v1.Pod, twin fwk.PodInfo, info fwk.NodeInfo, most int) int {
	if most > 1 {
		info = info.Snapshot()
	}
	count := 0
	for count < most && len(noderesources.Fits(pod, info, p.handle.SharedDRAManager(), p.requests)) == 0 {
		count++
		if count < most {
			info.AddPodInfo(twin)
		}
	}
	return count
}

// isAlone says whether pods like this one may keep off each other: then there is one on a node.
func isAlone(pod *v1.Pod) bool {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.HostPort > 0 {
				return true
			}
		}
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		if len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return true
		}
	}
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		if spread.WhenUnsatisfiable == v1.DoNotSchedule {
			return true
		}
	}
	return false
}

// relevant is the labels of a node that say where it is.
func relevant(labels map[string]string, keys []string) map[string]string {
	kept := map[string]string{}
	for key, value := range labels {
		for _, start := range topologyLabels {
			if strings.HasPrefix(key, start) {
				kept[key] = value
			}
		}
	}
	for _, key := range keys {
		if value, has := labels[key]; has {
			kept[key] = value
		}
	}
	return kept
}

// topologyLabels is how the labels begin that the engine knows by itself.
var topologyLabels = []string{
	"fabric.topograph.run/", "accelerator.topograph.run/", "network.topology.nvidia.com/", "nvidia.com/gpu.clique",
}
