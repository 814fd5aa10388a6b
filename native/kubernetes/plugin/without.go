package plugin

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"topolane/scheduler/engine"
)

// trial is the cluster as it would be without some units, for one group that asks for a place.
type trial struct {
	*plugin
	ctx    context.Context
	group  *group
	infos  map[string]fwk.NodeInfo
	engine *engine.State
	// looks has for one pod of each podset what the filters say of the nodes.
	looks map[*v1.Pod]*look
}

// look is what the filters say of the nodes for pods that are alike.
type look struct {
	filters   fwk.CycleState
	only      *fwk.PreFilterResult
	kept      reserved
	most      int
	isCounted bool
	free, all map[string]uint32
}

// without is the cluster without some units.
func (p *plugin) without(ctx context.Context, g *group, sets []podset, nodes []fwk.NodeInfo, gone []*unit) (*trial, error) {
	var held []uint64
	for _, one := range gone {
		if of := p.groups[one.group]; of != nil && of.isHeld {
			held = append(held, of.id)
		}
	}
	state, err := p.world.state.Without(held)
	if err != nil {
		return nil, err
	}
	t := &trial{plugin: p, ctx: ctx, group: g, infos: map[string]fwk.NodeInfo{}, engine: state, looks: map[*v1.Pod]*look{}}
	for _, info := range nodes {
		if node := info.Node(); node != nil {
			t.infos[node.Name] = info.Snapshot()
		}
	}
	for _, pod := range g.templatesFor(sets) {
		filters, only, status := p.filtersFor(ctx, pod)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		t.looks[pod] = &look{filters: filters, only: only, kept: p.reservedFor(pod), most: mostOnNode(pod, total(sets))}
	}
	for _, one := range gone {
		if err := t.remove(one); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// templatesFor is a pod of each podset.
func (g *group) templatesFor(sets []podset) (templates []*v1.Pod) {
	if len(sets) == 1 {
		return []*v1.Pod{g.template}
	}
	for _, set := range sets {
		templates = append(templates, g.templates[set.Name])
	}
	return templates
}

// remove takes a unit away from the nodes.
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
			said := t.handle.RunPreFilterExtensionRemovePod(t.ctx, look.filters, pod, member, info)
			if !said.IsSuccess() {
				return said.AsError()
			}
		}
	}
	return nil
}

func (t *trial) state() *engine.State { return t.engine }

// slots asks the filters once, and then of nodes with pods that are taken to be there.
func (t *trial) slots(pod *v1.Pod, _ int, taken reserved) (free, all map[string]uint32, why refusals, status *fwk.Status) {
	look := t.looks[pod]
	var err error
	if !look.isCounted {
		look.free, look.all, err = t.count(pod, look, slices.Collect(maps.Values(t.infos)), look.kept)
		look.isCounted = err == nil
	}
	free, all = look.free, look.all
	if err == nil && len(taken) > 0 {
		var nodes []fwk.NodeInfo
		for name := range taken {
			nodes = append(nodes, t.infos[name])
		}
		var now, ever map[string]uint32
		now, ever, err = t.count(pod, look, nodes, look.with(taken))
		free, all = maps.Clone(free), maps.Clone(all)
		for name := range taken {
			free[name], all[name] = now[name], ever[name]
		}
	}
	if err != nil {
		return nil, nil, nil, fwk.AsStatus(err)
	}
	return free, all, nil, nil
}

// with is what is reserved, and more pods.
func (l *look) with(taken reserved) reserved {
	kept := maps.Clone(l.kept)
	for node, pods := range taken {
		kept[node] = slices.Concat(kept[node], pods)
	}
	return kept
}

func (t *trial) count(pod *v1.Pod, look *look, nodes []fwk.NodeInfo, kept reserved) (free, all map[string]uint32, err error) {
	free, all, _, err = t.countSlots(t.ctx, look.filters, look.only, pod, nodes, kept, look.most, nil)
	return free, all, err
}

// place asks the policy; nil if it refuses.
func (t *trial) place(sets []podset) (*placement, error) {
	chosen := t.chooseAll(t, t.group, sets)
	if chosen.status != nil {
		return nil, chosen.status.AsError()
	}
	return chosen.placed, chosen.err
}
