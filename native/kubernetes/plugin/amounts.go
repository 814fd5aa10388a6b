package plugin

import (
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"topolane/scheduler/engine"
)

// kind is a resource that a node counts for its pods.
type kind v1.ResourceName

func (k kind) of(resource fwk.Resource) int64 {
	switch v1.ResourceName(k) {
	case v1.ResourceCPU:
		return resource.GetMilliCPU()
	case v1.ResourceMemory:
		return resource.GetMemory()
	case v1.ResourceEphemeralStorage:
		return resource.GetEphemeralStorage()
	}
	return resource.GetScalarResources()[v1.ResourceName(k)]
}

// kindsOf is the resources of which some is asked for.
func kindsOf(asks fwk.Resource) (kinds []kind) {
	all := []kind{kind(v1.ResourceCPU), kind(v1.ResourceMemory), kind(v1.ResourceEphemeralStorage)}
	for _, name := range slices.Sorted(maps.Keys(asks.GetScalarResources())) {
		all = append(all, kind(name))
	}
	return slices.DeleteFunc(all, func(one kind) bool { return one.of(asks) <= 0 })
}

// amounts is what the slots of nodes follow from: the resources that a pod asks for, then the number of pods, and last the slots that
// other filters leave next to a unit.
type amounts struct {
	kinds []kind
	takes []int64
	// slots is the most of each node.
	slots map[string]uint32
	// free is by node, and left by unit and node.
	free map[string][]int64
	left []map[string][]int64
}

// satisfied is free of the last kind where no unit on a node is in the way of other filters.
const satisfied = math.MaxInt64 / 2

// amountsOf is what the slots follow from that take a pod of any podset, in a cluster with more pods; gone is the cluster without all the
// units. If filters may hold more against a node than those of resources, each unit on it is looked at.
func (t *trial) amountsOf(
	podsets []*v1.Pod, taken reserved, gone *trial, units []*unit, isFiltered bool,
) (*amounts, error) {
	most, err := gone.least(podsets, taken)
	if err != nil {
		return nil, err
	}
	made := &amounts{slots: most, free: map[string][]int64{}, left: make([]map[string][]int64, len(units))}
	largest := map[kind]int64{}
	for _, pod := range podsets {
		asks := copyOf(pod).CalculateResource().Resource
		for _, one := range kindsOf(asks) {
			largest[one] = max(largest[one], one.of(asks))
		}
	}
	made.kinds = slices.Sorted(maps.Keys(largest))
	for _, one := range made.kinds {
		made.takes = append(made.takes, largest[one])
	}
	made.takes = append(made.takes, 1, 1)
	for place, one := range units {
		made.left[place] = made.leftBy(one)
	}
	kept := t.looks[podsets[0]].with(taken)
	for name, info := range t.infos {
		made.free[name] = made.freeOn(withReserved(info, kept))
		if isFiltered {
			if err := made.filter(name, podsets, taken, gone, units); err != nil {
				return nil, err
			}
		}
	}
	return made, nil
}

// filter notes which units are in the way of filters on a node.
func (a *amounts) filter(name string, podsets []*v1.Pod, taken reserved, gone *trial, units []*unit) error {
	last := len(a.takes) - 1
	free := int64(a.slots[name])
	for place, one := range units {
		left := a.left[place][name]
		if left == nil {
			continue
		}
		withBack, err := gone.withBack(one, name, podsets, taken)
		if err != nil {
			return err
		}
		left[last] = int64(a.slots[name]) - min(int64(withBack), int64(a.slots[name]))
		free -= left[last]
	}
	a.free[name][last] = free
	return nil
}

// withBack is the slots of a node with one unit back on it.
func (t *trial) withBack(one *unit, name string, podsets []*v1.Pod, taken reserved) (uint32, error) {
	least := ^uint32(0)
	for _, pod := range podsets {
		look, info := t.looks[pod], t.infos[name].Snapshot()
		with := *look
		with.filters = look.filters.Clone()
		for _, member := range one.pods {
			if member.GetPod().Spec.NodeName == name {
				info.AddPodInfo(member)
				said := t.handle.RunPreFilterExtensionAddPod(t.ctx, with.filters, pod, member, info)
				if !said.IsSuccess() {
					return 0, said.AsError()
				}
			}
		}
		free, _, err := t.count(pod, &with, []fwk.NodeInfo{info}, look.with(taken))
		if err != nil {
			return 0, err
		}
		least = min(least, free[name])
	}
	return least, nil
}

// least is the slots of each node for the pods of the podset for which it has least.
func (t *trial) least(podsets []*v1.Pod, taken reserved) (map[string]uint32, error) {
	least := map[string]uint32{}
	for place, pod := range podsets {
		free, _, _, status := t.slots(pod, 0, taken)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		for node := range t.infos {
			if place == 0 || free[node] < least[node] {
				least[node] = free[node]
			}
		}
	}
	return least, nil
}

// leftBy is what a unit leaves on each of its nodes.
func (a *amounts) leftBy(one *unit) map[string][]int64 {
	left := map[string][]int64{}
	for _, member := range one.pods {
		name, asks := member.GetPod().Spec.NodeName, member.CalculateResource().Resource
		if left[name] == nil {
			left[name] = make([]int64, len(a.takes))
		}
		for place, kind := range a.kinds {
			left[name][place] += max(kind.of(asks), 0)
		}
		left[name][len(a.kinds)]++
	}
	return left
}

func (a *amounts) freeOn(info fwk.NodeInfo) (free []int64) {
	for _, kind := range a.kinds {
		free = append(free, kind.of(info.GetAllocatable())-kind.of(info.GetRequested()))
	}
	return append(free, int64(info.GetAllocatable().GetAllowedPodNumber()-len(info.GetPods())), satisfied)
}

// room is the same for the engine, which knows nodes by number.
func (a *amounts) room(w *world, units []*unit, ids func(*unit, int) uint64) engine.Room {
	room := engine.Room{Takes: a.takes}
	for _, name := range w.machine.Names {
		free := a.free[name]
		if free == nil {
			free = make([]int64, len(a.takes))
		}
		room.Free = append(room.Free, free...)
	}
	for place, one := range units {
		row := engine.Candidate{ID: ids(one, place), Cost: one.cost, Rank: one.rank, Budget: one.budget, Uses: one.uses}
		for _, name := range slices.Sorted(maps.Keys(a.left[place])) {
			if node, known := w.machine.Node(name); known {
				row.Nodes, row.Amounts = append(row.Nodes, node), append(row.Amounts, a.left[place][name]...)
			}
		}
		room.Candidates = append(room.Candidates, row)
	}
	return room
}
