package plugin

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// inOrder does one piece of work after the other.
type inOrder struct{}

func (inOrder) Until(_ context.Context, pieces int, do workqueue.DoWorkPieceFunc, _ string) {
	for piece := range pieces {
		do(piece)
	}
}

// filtering is a handle whose filters look at resources and at ports of the node.
type filtering struct{ handle }

func (f filtering) Parallelizer() fwk.Parallelizer            { return inOrder{} }
func (f filtering) SharedDRAManager() fwk.SharedDRAManager    { return nil }
func (f filtering) NominatedPodsForNode(string) []fwk.PodInfo { return nil }
func (f filtering) RunPreFilterExtensionRemovePod(
	context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo,
) *fwk.Status {
	return nil
}

func (f filtering) RunPreFilterExtensionAddPod(
	context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo,
) *fwk.Status {
	return nil
}

func (f filtering) RunPreFilterPlugins(
	context.Context, fwk.CycleState, *v1.Pod,
) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	return nil, nil, nil
}

func (f filtering) RunFilterPluginsWithNominatedPods(_ context.Context, _ fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	opens := func(one *v1.Pod) bool { return len(one.Spec.Containers[0].Ports) > 0 }
	for _, other := range info.GetPods() {
		if opens(pod) && opens(other.GetPod()) {
			return fwk.NewStatus(fwk.Unschedulable, "the port is taken")
		}
	}
	if len(noderesources.Fits(pod, info, nil, noderesources.ResourceRequestsOptions{})) > 0 {
		return fwk.NewStatus(fwk.Unschedulable, "too little is left")
	}
	return nil
}

const gpu = "nvidia.com/gpu"

var policiesHere = []string{"first-fit", "isolated", "dedicated", "kueue-tas", "segments"}

// crowd is a scheduler with many pods, and the group that waits.
type crowd struct {
	*scheduler
	draw    *rand.Rand
	now     time.Time
	infos   []fwk.NodeInfo
	waits   *group
	sets    []podset
	budgets []*policyv1.PodDisruptionBudget
	least   int32
}

// podOf is a pod that asks for GPUs and cores, and may open a port.
func podOf(name string, gpus, cores int64, opens bool, priority int32) *v1.Pod {
	pod := podWith(map[string]string{"name": name}, map[string]string{})
	pod.Name, pod.UID, pod.Spec.Priority = name, types.UID("uid-"+name), &priority
	asks := v1.ResourceList{"cpu": *resource.NewQuantity(cores, resource.DecimalSI)}
	if gpus > 0 {
		asks[gpu] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: asks}}}
	if opens {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
	}
	return pod
}

// emptyCrowd is 16 nodes without pods.
func emptyCrowd(t *testing.T, seed uint64, cores, gpus string) *crowd {
	s := started(t)
	s.plugin.handle = filtering{handle{said: s.said}}
	c := &crowd{scheduler: s, draw: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_900_000_000, 0)}
	for _, name := range s.world.machine.Names {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Allocatable = v1.ResourceList{
			"cpu": resource.MustParse(cores), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("10"), gpu: resource.MustParse(gpus),
		}
		info := framework.NewNodeInfo()
		info.SetNode(node)
		c.infos = append(c.infos, info)
	}
	return c
}

// budgetOf is a PodDisruptionBudget of the pods with a label.
func budgetOf(label string, allowed int32) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: label, Namespace: "default"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"budget": label}}
	budget.Status.DisruptionsAllowed = allowed
	return budget
}

// wait lets a group wait, with the pods that are made for it.
func (c *crowd) wait(t *testing.T, policy string, size int, priority int32, made func(rank int) *v1.Pod) {
	c.least = priority
	c.waits = &group{key: "default/waits#PodGroup", id: 1 << 40, asked: asked{size: size, most: size, policy: policy, share: 1}}
	for rank := range size {
		pod := made(rank)
		pod.Name, pod.UID, pod.Labels[podGroupLabel] = fmt.Sprint("waits-", rank), types.UID(fmt.Sprint("uid-waits-", rank)), "waits"
		if err := c.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		c.waits.template = pod
	}
	c.groups[c.waits.key] = c.waits
	c.waits.templates = templatesOf(c.members(c.waits.key))
	found, waiting := podsetsNow(c.waits.key, c.waits.asked, c.members(c.waits.key))
	if waiting != "" {
		t.Fatal(waiting)
	}
	c.sets = found
}

// crowded draws groups and single pods on 16 nodes until few have room, budgets for some, and a group of higher priority that waits; nil
// if that has a place, or none whoever leaves.
func crowded(t *testing.T, seed uint64) *crowd {
	c := emptyCrowd(t, seed, "8", "4")
	policy := policiesHere[c.draw.IntN(len(policiesHere))]
	for number := range 8 + c.draw.IntN(12) {
		priority := int32(10 * c.draw.IntN(3))
		if c.draw.IntN(3) == 0 {
			c.runs(fmt.Sprintf("alone%02d", number), "", 1, priority)
		} else {
			c.runs(fmt.Sprintf("group%02d", number), policy, 1+c.draw.IntN(7), priority)
		}
	}
	for number := range c.draw.IntN(3) {
		c.budgets = append(c.budgets, budgetOf(fmt.Sprint(number), int32(c.draw.IntN(6))))
	}
	priority := int32(10 * (1 + c.draw.IntN(3)))
	size, opens, gpus := 1+c.draw.IntN(10), c.draw.IntN(5) == 0, int64(1+c.draw.IntN(4))
	c.wait(t, policy, size, priority, func(rank int) *v1.Pod {
		pod := podOf("waits", gpus, 1+gpus, opens, priority)
		if size > 2 && seed%7 == 0 {
			pod.Annotations[podsetNote] = "worker"
			if rank == 0 {
				pod = podOf("waits", 0, 2, false, priority)
				pod.Annotations[podsetNote] = "launcher"
			}
		}
		return pod
	})
	if c.placeWithout(t, nil) != nil || c.placeWithout(t, c.found()) == nil {
		return nil
	}
	return c
}

// runs places a group, or a single pod if it has no policy, where there is room.
func (c *crowd) runs(name, policy string, size int, priority int32) {
	gpus := int64(c.draw.IntN(5))
	cores, opens := 1+gpus, c.draw.IntN(8) == 0
	template := podOf(name, gpus, cores, opens, priority)
	c.lastID++
	g := &group{key: groupKey("default/" + name + "#PodGroup"), id: c.lastID, template: template, isWhole: true}
	g.asked = asked{size: size, most: size, policy: policy, share: 1}
	asked := question{slots: size, free: map[string]uint32{}, all: map[string]uint32{}}
	for _, info := range c.infos {
		if c.handle.RunFilterPluginsWithNominatedPods(context.Background(), nil, template, info).IsSuccess() {
			most := size
			if opens {
				most = 1
			}
			asked.free[info.Node().Name] = uint32(c.fits(template, copyOf(template), info, most))
		}
		asked.all[info.Node().Name] = 4
	}
	if policy == "" {
		g.asked.policy = "first-fit"
	}
	placed, _, err := c.world.ask(c.world.state, g, asked)
	if err != nil || placed == nil {
		return
	}
	since := metav1.NewTime(c.now.Add(-time.Duration(c.draw.IntN(20)) * time.Minute))
	budget, phase := fmt.Sprint(c.draw.IntN(5)), c.draw.IntN(15)
	for rank, node := range placed.Nodes {
		pod := podOf(fmt.Sprintf("%s-%d", name, rank), gpus, cores, opens, priority)
		pod.Spec.NodeName, pod.Labels["budget"] = node, budget
		pod.Status.StartTime = &since
		if policy != "" {
			pod.Labels[podGroupLabel] = name
		}
		if phase == 0 {
			pod.DeletionTimestamp = &since
		}
		made, _ := framework.NewPodInfo(pod)
		c.infoOf(node).AddPodInfo(made)
	}
	if policy != "" {
		g.placed, g.seats = placed, make([]types.UID, len(placed.Nodes))
		c.groups[g.key] = g
		c.world.hold(c.logger, g)
	}
}

func (c *crowd) infoOf(node string) fwk.NodeInfo {
	return c.infos[slices.IndexFunc(c.infos, func(info fwk.NodeInfo) bool { return info.Node().Name == node })]
}

// found is all that may go.
func (c *crowd) found() []*unit {
	found := c.units(c.infos, nil, c.waits.key, c.least, c.now)
	budgets(found, c.budgets)
	return found
}

// placeWithout is where the waiting group would be without some units; nil if nowhere.
func (c *crowd) placeWithout(t *testing.T, gone []*unit) *placement {
	then, err := c.plugin.without(context.Background(), c.waits, c.sets, c.infos, gone)
	if err != nil {
		t.Fatal(err)
	}
	placed, err := then.place(c.sets)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}

// breaks is how many pods more are evicted than budgets allow.
func (c *crowd) breaks(gone []*unit) (pods int) {
	for _, budget := range c.budgets {
		used := 0
		for _, one := range gone {
			for _, member := range one.pods {
				if !one.isEnding && member.GetPod().Labels["budget"] == budget.Name {
					used++
				}
			}
		}
		pods += max(used-int(budget.Status.DisruptionsAllowed), 0)
	}
	return pods
}

// Victims are enough, none of them is superfluous, and all have a lower priority than the group that takes their place. Budgets are
// broken only where nothing else is enough.
func TestVictimsAreEnoughAndNoneIsSuperfluous(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(1_000) {
		c := crowded(t, seed)
		if c == nil {
			continue
		}
		found := c.found()
		allowed := budgets(c.found(), c.budgets)
		victims, placed, err := c.chooseVictims(context.Background(), c.waits, c.infos, found, allowed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		seen[fmt.Sprintf("%s, %d podsets, found %v", c.waits.asked.policy, len(c.sets), placed != nil)]++
		if placed == nil {
			if len(c.sets) == 1 {
				t.Errorf("seed %d: no victims are found", seed)
			}
			continue
		}
		if again := c.placeWithout(t, victims); again == nil || !slices.Equal(again.Nodes, placed.Nodes) {
			t.Errorf("seed %d: the victims are not enough", seed)
		}
		for place, one := range victims {
			if !one.isEnding && one.priority >= c.least {
				t.Errorf("seed %d: %s has priority %d", seed, one.name(), one.priority)
			}
			fewer := slices.Delete(slices.Clone(victims), place, place+1)
			if len(c.sets) == 1 && c.placeWithout(t, fewer) != nil {
				t.Errorf("seed %d: %s need not go", seed, one.name())
			}
		}
		if c.breaks(victims) > 0 {
			seen["breaks a budget"]++
			if len(c.sets) == 1 {
				if _, kept, _ := (&search{plugin: c.plugin, ctx: context.Background(), group: c.waits, sets: c.sets, nodes: c.infos}).among(
					withinBudgets(found), allowed); kept != nil {
					t.Errorf("seed %d: a budget need not be broken", seed)
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%4d %s", seen[what], what)
	}
}

// A search that is made again, before the pods of the victims are marked as deleted, names no group beyond those that leave already.
func TestASecondSearchNamesNoOtherGroups(t *testing.T) {
	asked := 0
	for seed := range uint64(300) {
		c := crowded(t, seed)
		if c == nil {
			continue
		}
		first, placed, err := c.chooseVictims(context.Background(), c.waits, c.infos, c.found(), budgets(c.found(), c.budgets))
		if err != nil || placed == nil || slices.ContainsFunc(first, func(one *unit) bool { return one.group == "" }) {
			continue
		}
		names := map[groupKey]bool{}
		for _, one := range first {
			names[one.group] = true
			if g := c.groups[one.group]; g != nil {
				c.setLeaving(g, true)
			}
		}
		// What was cheap to evict is dear by now.
		c.now = c.now.Add(time.Hour)
		found := c.found()
		for _, one := range found {
			if names[one.group] && !one.isEnding && c.groups[one.group] != nil {
				t.Fatalf("seed %d: %s leaves, and is not taken as ending", seed, one.name())
			}
		}
		again, placed, err := c.chooseVictims(context.Background(), c.waits, c.infos, found, budgets(found, c.budgets))
		if err != nil || placed == nil {
			t.Fatalf("seed %d: no victims are found again: %v", seed, err)
		}
		asked++
		for _, one := range again {
			if !one.isEnding && !names[one.group] {
				t.Errorf("seed %d: %s is to go as well", seed, one.name())
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d states have groups as victims", asked)
	}
}

// A group that `topolane k8s apply` sends away is no victim for one that may not preempt it: its pods go within the budgets, or stay.
func TestTheMarkOfApplyMakesNoVictim(t *testing.T) {
	asked := 0
	for seed := range uint64(100) {
		c := crowded(t, seed)
		if c == nil {
			continue
		}
		before := c.found()
		for _, g := range c.groups {
			if g.isWhole && g.placed != nil && !g.isLeaving {
				g.isSentAway = true
				c.setLeaving(g, true)
				asked++
			}
		}
		after := c.found()
		if len(before) != len(after) {
			t.Fatalf("seed %d: %d units may go, and %d after the mark", seed, len(before), len(after))
		}
		for place, one := range after {
			if one.group != before[place].group || one.isEnding != before[place].isEnding {
				t.Errorf("seed %d: the mark makes %s one that ends", seed, one.name())
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d groups run", asked)
	}
}

// The scheduler names the victims that `topolane k8s plan` names for the same state: tests/kubernetes/test_same_victims.py asks it.
func TestVictimsAreThoseOfThePlan(t *testing.T) {
	for number, one := range shared[struct {
		Waits struct {
			Size   int
			Policy string
		}
		Budgets []struct {
			App     string
			Allowed int32
		}
		Victims []string
		Units   []struct {
			Name     string
			Nodes    []int
			Gpus     int64
			Seconds  int
			Priority int32
			App      string
			Policy   string
		}
	}](t, "victim_cases.json") {
		c := emptyCrowd(t, 0, "64", "8")
		for _, unit := range one.Units {
			placed := &placement{Policy: unit.Policy, Share: 1, LinkUse: sharedLinks}
			if unit.Policy == "isolated" {
				placed.LinkUse = isolatedLinks
			}
			var template *v1.Pod
			since := metav1.NewTime(c.now.Add(-time.Duration(unit.Seconds) * time.Second))
			for rank, node := range unit.Nodes {
				name := unit.Name
				if unit.Policy != "" {
					name = fmt.Sprintf("%s-%d", unit.Name, rank)
				}
				pod := podOf(name, unit.Gpus, 4*unit.Gpus, false, unit.Priority)
				placed.Nodes = append(placed.Nodes, c.world.machine.Names[node])
				pod.Spec.NodeName, pod.Labels["budget"], pod.Status.StartTime = placed.Nodes[rank], unit.App, &since
				if unit.Policy != "" {
					pod.Labels[podGroupLabel] = unit.Name
				}
				made, _ := framework.NewPodInfo(pod)
				c.infoOf(placed.Nodes[rank]).AddPodInfo(made)
				template = pod
			}
			if unit.Policy != "" {
				c.lastID++
				key := groupKey("default/" + unit.Name + "#PodGroup")
				g := &group{key: key, id: c.lastID, placed: placed, seats: make([]types.UID, len(placed.Nodes)), isWhole: true, template: template}
				c.groups[key] = g
				c.world.hold(c.logger, g)
			}
		}
		for _, each := range one.Budgets {
			c.budgets = append(c.budgets, budgetOf(each.App, each.Allowed))
		}
		c.wait(t, one.Waits.Policy, one.Waits.Size, 20, func(int) *v1.Pod { return podOf("waits", 8, 32, false, 20) })
		found := c.found()
		victims, _, err := c.chooseVictims(context.Background(), c.waits, c.infos, found, budgets(c.found(), c.budgets))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, unit := range victims {
			names = append(names, strings.TrimPrefix(unit.name(), "default/"))
		}
		if slices.Sort(names); !slices.Equal(names, one.Victims) {
			t.Errorf("case %d: %v instead of %v", number, names, one.Victims)
		}
	}
}
