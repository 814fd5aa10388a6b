package plugin

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// localFilters look at nothing but the pod and the node with its pods: what they say holds until the node changes.
var localFilters = []string{
	Name, names.NodeAffinity, names.NodeDeclaredFeatures, names.NodeName, names.NodePorts, names.NodeResourcesFit,
	names.NodeUnschedulable, names.TaintToleration,
}

// answer is what the filters said of a node at a generation of it.
type answer struct {
	generation int64
	most       int
	now, ever  int
	status     *fwk.Status
}

// memo has the answers for pods of one shape by node. Most groups change few nodes, so that few are asked again.
type memo map[string]answer

// shapesKept is how many memos there are at most.
const shapesKept = 16

// memoOf is the memo for pods like this one; nil if the filters that are left look at more than one node.
func (p *plugin) memoOf(state fwk.CycleState, pod *v1.Pod) memo {
	skipped := state.GetSkipFilterPlugins()
	for _, filter := range p.handle.ListPlugins().Filter.Enabled {
		if !skipped.Has(filter.Name) && !slices.Contains(localFilters, filter.Name) {
			return nil
		}
	}
	shape, err := shapeOf(pod)
	if err != nil {
		return nil
	}
	found, known := p.memos[shape]
	if !known {
		if len(p.memos) >= shapesKept {
			clear(p.memos)
		}
		found = memo{}
		p.memos[shape] = found
	}
	return found
}

// shapeOf is all of a pod that local filters look at. Volumes are not: their filters are skipped, or there is no memo.
func shapeOf(pod *v1.Pod) (string, error) {
	spec := pod.Spec
	spec.Volumes, spec.Hostname = nil, ""
	spec.Containers, spec.InitContainers = bare(spec.Containers), bare(spec.InitContainers)
	text, err := json.Marshal(spec)
	return string(text), err
}

// bare is containers without what is of one pod.
func bare(containers []v1.Container) []v1.Container {
	made := slices.Clone(containers)
	for index := range made {
		made[index].Env, made[index].Args, made[index].Command, made[index].VolumeMounts = nil, nil, nil, nil
	}
	return made
}

// recall is the kept answer for a node, if that still holds for `most` pods.
func (m memo) recall(info fwk.NodeInfo, most int) (answer, bool) {
	said, known := m[info.Node().Name]
	if !known || said.generation != info.GetGeneration() {
		return answer{}, false
	}
	if most > said.most && (said.now == said.most || said.ever == said.most) {
		return answer{}, false
	}
	said.now, said.ever = min(said.now, most), min(said.ever, most)
	return said, true
}
