package plugin

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// search asks the engine for the victims of a group.
type search struct {
	*plugin
	ctx   context.Context
	group *group
	sets  []podset
	nodes []fwk.NodeInfo
	// units may go, as many pods as the budgets allow. Gone is the cluster without them.
	units   []*unit
	allowed []uint32
	gone    *trial
	// isFiltered says that other filters may hold more against a node than those of resources.
	isFiltered bool
}

// chooseVictims is the units without which the policy places a group, and its place then. Budgets are kept if that is possible.
func (p *plugin) chooseVictims(
	ctx context.Context, g *group, nodes []fwk.NodeInfo, found []*unit, allowed []uint32,
) (victims []*unit, placed *placement, err error) {
	if err := p.world.refresh(p.logger, p.groups); err != nil {
		return nil, nil, err
	}
	members := p.members(g.key)
	podsets, waiting := podsetsNow(g.key, g.asked, members)
	if waiting != "" {
		return nil, nil, nil
	}
	g.templates = templatesOf(members)
	s := &search{plugin: p, ctx: ctx, group: g, sets: leastOf(podsets, g.asked.size), nodes: nodes}
	if victims, placed, err = s.among(withinBudgets(found), allowed); err != nil || placed != nil {
		return victims, placed, err
	}
	beyond := beyondBudgets(found, allowed)
	fewest, placed, err := s.among(onlyBeyond(beyond), nil)
	if err != nil || placed == nil {
		return nil, nil, err
	}
	pods := uint32(0)
	for _, one := range fewest {
		pods += uint32(one.cost)
	}
	return s.among(beyond, []uint32{pods})
}

// among looks for victims among some units, and asks the filters and the policy whether these are enough.
func (s *search) among(units []*unit, allowed []uint32) (victims []*unit, placed *placement, err error) {
	s.units, s.allowed = units, allowed
	if s.gone, err = s.without(s.ctx, s.group, s.sets, s.nodes, units); err != nil {
		return nil, nil, err
	}
	if placed, err = s.gone.place(s.sets); err != nil || placed == nil {
		return nil, nil, err
	}
	placed = nil
	// The amounts say all of most clusters. If other filters refuse a plan, each unit on a node is looked at.
	isRefused := false
	for _, s.isFiltered = range []bool{false, true} {
		for _, isAlike := range []bool{false, true}[:min(len(s.sets), 2)] {
			found, err := s.ask(isAlike)
			if err != nil {
				return nil, nil, err
			}
			if found == nil || placed != nil && !isBetter(found, victims) {
				continue
			}
			then, err := s.without(s.ctx, s.group, s.sets, s.nodes, found)
			if err != nil {
				return nil, nil, err
			}
			place, err := then.place(s.sets)
			if err != nil {
				return nil, nil, err
			}
			if isRefused = isRefused || place == nil; place != nil {
				victims, placed = found, place
			}
		}
		if placed != nil || !isRefused {
			break
		}
	}
	return victims, placed, nil
}

// isBetter says whether some victims have a lower rank than others, or cost less.
func isBetter(some, others []*unit) bool {
	of := func(units []*unit) (rank uint32, cost float64) {
		for _, one := range units {
			rank, cost = max(rank, one.rank), cost+one.cost
		}
		return rank, cost
	}
	rank, cost := of(some)
	otherRank, otherCost := of(others)
	return cmp.Or(cmp.Compare(rank, otherRank), cmp.Compare(cost, otherCost)) < 0
}

// ask asks for the victims of one podset after the other, first of the one for which there is least room; or for all at once, each member
// where one of any podset has room. Nil: none are found.
func (s *search) ask(isAlike bool) ([]*unit, error) {
	templates := s.group.templatesFor(s.sets)
	if isAlike || len(s.sets) == 1 {
		victims, _, err := s.askFor(templates, total(s.sets), []*unit{}, nil)
		return victims, err
	}
	alone := make([]question, len(s.sets))
	order := make([]int, len(s.sets))
	for index, set := range s.sets {
		free, all, _, status := s.gone.slots(templates[index], 0, nil)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		alone[index], order[index] = question{slots: set.Size, free: free, all: all}, index
	}
	slices.SortStableFunc(order, func(one, other int) int { return alone[one].compareRoom(alone[other]) })
	victims, taken := []*unit{}, reserved{}
	for _, index := range order {
		more, nodes, err := s.askFor(templates[index:index+1], s.sets[index].Size, victims, taken)
		if err != nil || more == nil {
			return nil, err
		}
		victims = append(victims, more...)
		for _, node := range nodes {
			taken[node] = append(taken[node], copyOf(templates[index]))
		}
	}
	return victims, nil
}

// askFor is the victims that pods need in addition to others, with more pods there, and the nodes of the pods then; nil if none are found.
func (s *search) askFor(pods []*v1.Pod, size int, victims []*unit, taken reserved) (more []*unit, nodes []string, err error) {
	now, err := s.without(s.ctx, s.group, s.sets, s.nodes, victims)
	if err != nil {
		return nil, nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(s.units), func(one *unit) bool { return slices.Contains(victims, one) })
	counted, err := now.amountsOf(pods, taken, s.gone, rest, s.isFiltered)
	if err != nil {
		return nil, nil, err
	}
	room := counted.room(s.world, rest, s.idOf)
	room.Budgets = slices.Clone(s.allowed)
	for _, one := range victims {
		if int(one.budget) < len(room.Budgets) {
			room.Budgets[one.budget] -= one.uses
		}
	}
	plan, err := s.world.makeRoom(now.engine, s.group, question{slots: size, free: counted.slots, all: counted.slots}, room)
	if err != nil || plan == nil {
		return nil, nil, err
	}
	more = []*unit{}
	for _, place := range plan.Gone {
		more = append(more, rest[place])
	}
	for _, node := range plan.Decision.Nodes {
		nodes = append(nodes, s.world.machine.Names[node])
	}
	return more, nodes, nil
}

// unheld is where the numbers begin of units that hold nothing in the engine's state.
const unheld = 1 << 63

func (s *search) idOf(one *unit, place int) uint64 {
	if g := s.groups[one.group]; g != nil && g.isHeld {
		return g.id
	}
	return unheld + uint64(place)
}
