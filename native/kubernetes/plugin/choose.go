package plugin

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"topolane/scheduler/engine"
)

// choice is the result of asking for a whole group: a placement, a refusal, a status of the stock filters, or an error.
type choice struct {
	placed  *placement
	refusal *engine.Refusal
	status  *fwk.Status
	err     error
	// why counts the reasons for which the stock filters refuse nodes.
	why refusals
}

// view is a cluster in which nodes are searched: the present one, or one without some pods.
type view interface {
	// slots returns how many pods like this one fit on each node, up to `most`: free now, and all if nothing ran there.
	slots(pod *v1.Pod, most int, taken reserved) (free, all map[string]uint32, why refusals, status *fwk.Status)
	// state returns the engine's state.
	state() *engine.State
}

// present is the view of the present cluster.
type present struct {
	*plugin
	ctx context.Context
}

func (v present) slots(pod *v1.Pod, most int, taken reserved) (free, all map[string]uint32, why refusals, status *fwk.Status) {
	return v.plugin.slots(v.ctx, pod, most, taken)
}

func (v present) state() *engine.State { return v.world.state }

// choose asks for nodes for all podsets. If the last podset may have fewer members, it first asks for all that exist, and
// then for the least number that the group needs.
func (p *plugin) choose(ctx context.Context, g *group, sets []podset) choice {
	if err := p.world.refresh(p.logger, p.groups); err != nil {
		return choice{err: err}
	}
	chosen := p.chooseAll(present{p, ctx}, g, sets)
	if total(sets) > g.asked.size && chosen.refusal != nil {
		return p.chooseAll(present{p, ctx}, g, leastOf(sets, g.asked.size))
	}
	return chosen
}

// leastOf returns the podsets with the last one reduced so that they have `size` members in total.
func leastOf(sets []podset, size int) []podset {
	fewer := slices.Clone(sets)
	fewer[len(fewer)-1].Size -= max(total(sets)-size, 0)
	return fewer
}

func (p *plugin) chooseAll(v view, g *group, sets []podset) choice {
	if len(sets) > 1 {
		return p.chooseUnlike(v, g, sets)
	}
	asked := question{slots: sets[0].Size}
	var made choice
	asked.free, asked.all, made.why, made.status = v.slots(g.template, asked.slots, nil)
	if made.status == nil {
		made.placed, made.refusal, made.err = p.world.ask(v.state(), g, asked)
	}
	return made
}

// chooseUnlike asks for one podset after the other: first for the podset with the least room, then for the others near it
// on the remaining nodes. Each answer covers all podsets so far. If one is refused, it asks for all members at once, each
// on a node where a member of any podset fits.
func (p *plugin) chooseUnlike(v view, g *group, sets []podset) choice {
	alone := make([]question, len(sets))
	order := make([]int, len(sets))
	whys := make([]refusals, len(sets))
	for index, set := range sets {
		free, all, why, status := v.slots(g.templates[set.Name], total(sets), nil)
		if status != nil {
			return choice{status: status}
		}
		alone[index], order[index], whys[index] = question{slots: set.Size, free: free, all: all}, index, why
	}
	slices.SortStableFunc(order, func(one, other int) int { return alone[one].compareRoom(alone[other]) })
	nodes := make([][]string, len(sets))
	taken := reserved{}
	var placed *placement
	var refused choice
	for step, index := range order {
		set, asked := sets[index], alone[index]
		if step > 0 {
			var status *fwk.Status
			if asked.free, asked.all, _, status = v.slots(g.templates[set.Name], set.Size, taken); status != nil {
				return choice{status: status}
			}
			asked.near = placed.Nodes
		}
		answer, refusal, err := p.world.ask(v.state(), g, asked)
		if err != nil {
			return choice{err: err}
		}
		if refusal != nil {
			refused, placed = choice{refusal: refusal, why: whys[index]}, nil
			break
		}
		placed, nodes[index] = answer, answer.Nodes[len(answer.Nodes)-set.Size:]
		for _, node := range nodes[index] {
			taken[node] = append(taken[node], copyOf(g.templates[set.Name]))
		}
	}
	if placed != nil {
		placed.Nodes = slices.Concat(nodes...)
	} else if placed = p.chooseAsIfAlike(v, g, alone); placed == nil {
		return refused
	}
	placed.Podsets = sets
	return choice{placed: placed}
}

// chooseAsIfAlike asks for all members at once, on nodes where a member of any podset fits; nil if that is refused. The
// members then fit in any order, because each takes at most as much of a node as the largest.
func (p *plugin) chooseAsIfAlike(v view, g *group, alone []question) *placement {
	all := question{free: map[string]uint32{}, all: map[string]uint32{}}
	for _, asked := range alone {
		all.slots += asked.slots
	}
	for node := range alone[0].free {
		free, ever := alone[0].free[node], alone[0].all[node]
		for _, asked := range alone[1:] {
			free, ever = min(free, asked.free[node]), min(ever, asked.all[node])
		}
		all.free[node], all.all[node] = free, ever
	}
	placed, _, err := p.world.ask(v.state(), g, all)
	if err != nil {
		p.logger.Error(err, "The engine did not answer for podsets at once", "group", g.key)
		return nil
	}
	return placed
}

// compareRoom is negative if there is less room for this question than for the other: fewer nodes, or on equally many
// nodes, less room relative to the request.
func (q question) compareRoom(other question) int {
	room := func(asked question) (nodes int, share float64) {
		for _, slots := range asked.free {
			if slots > 0 {
				nodes++
				share += float64(slots) / float64(asked.slots)
			}
		}
		return nodes, share
	}
	nodes, share := room(q)
	otherNodes, otherShare := room(other)
	return cmp.Or(cmp.Compare(nodes, otherNodes), cmp.Compare(share, otherShare))
}

// templatesOf returns one pod of each podset.
func templatesOf(members []*v1.Pod) map[string]*v1.Pod {
	templates := map[string]*v1.Pod{}
	for _, pod := range members {
		if templates[podsetOf(pod)] == nil {
			templates[podsetOf(pod)] = pod
		}
	}
	return templates
}
