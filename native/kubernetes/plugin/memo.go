package plugin

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// localFilters depend only on the pod and on the node with its pods, so their answers are valid until the node changes.
var localFilters = []string{
	Name, names.NodeAffinity, names.NodeDeclaredFeatures, names.NodeName, names.NodePorts, names.NodeResourcesFit,
	names.NodeUnschedulable, names.TaintToleration,
}

// answer is the answer of the filters for a node at one generation of the node.
type answer struct {
	generation int64
	most       int
	now, ever  int
	status     *fwk.Status
}

// memo has the answers by node for pods of one shape. Most groups change few nodes, so only few nodes need new answers.
type memo map[string]answer

// shapesKept is the most memos that are kept.
const shapesKept = 16

// memoOf returns the memo for pods like this one; nil if a remaining filter depends on more than one node.
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

// shapeOf returns everything in a pod on which local filters depend. Volumes are not included: either their filters are
// skipped, or there is no memo.
func shapeOf(pod *v1.Pod) (string, error) {
	spec := pod.Spec
	spec.Volumes, spec.Hostname = nil, ""
	spec.Containers, spec.InitContainers = bare(spec.Containers), bare(spec.InitContainers)
	text, err := json.Marshal(spec)
	return string(text), err
}

// bare returns containers without the fields that differ from pod to pod.
func bare(containers []v1.Container) []v1.Container {
	made := slices.Clone(containers)
	for index := range made {
		made[index].Env, made[index].Args, made[index].Command, made[index].VolumeMounts = nil, nil, nil, nil
	}
	return made
}

// recall returns the stored answer for a node, if it is still valid for `most` pods.
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
