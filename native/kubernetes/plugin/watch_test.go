package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// scheduler is a plugin with the real engine: 4 racks with 4 nodes each. The kube-scheduler around it does nothing.
type scheduler struct {
	*plugin
	said *events.FakeRecorder
}

type handle struct {
	framework.Framework
	said *events.FakeRecorder
}

func (h handle) ProfileName() string                       { return "topolane" }
func (h handle) EventRecorder() events.EventRecorderLogger { return h.said }
func (h handle) GetWaitingPod(types.UID) fwk.WaitingPod    { return nil }
func (h handle) Activate(klog.Logger, map[string]*v1.Pod)  {}

const rack, racks = 4, 4

// started returns a scheduler that starts and sees the running pods.
func started(t *testing.T, pods ...*v1.Pod) *scheduler {
	t.Helper()
	said := events.NewFakeRecorder(100)
	args := &args{Policy: "isolated", GroupTimeoutSeconds: 60, CallTimeMilliseconds: 10_000, TopologyLabels: []string{"rack", hostnameLabel}}
	p := &plugin{
		handle: handle{said: said}, args: args, key: signingKey(strings.Repeat("k", keyBytes)), logger: klog.Background(),
		groups: map[groupKey]*group{}, world: newWorld(args), memos: map[string]memo{},
	}
	p.pods = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byGroup: p.indexed})
	for node := range rack * racks {
		name := fmt.Sprintf("n%02d", node)
		p.world.setNode(name, map[string]string{"rack": fmt.Sprintf("r%d", node/rack), hostnameLabel: name})
	}
	if err := p.world.refresh(p.logger, p.groups); err != nil {
		t.Fatal(err)
	}
	s := &scheduler{p, said}
	for _, pod := range pods {
		if err := p.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range pods {
		p.podSeen(pod)
	}
	return s
}

// running returns the pods of a group on nodes, as the scheduler bound them.
func (s *scheduler) running(group string, placed placement) (pods []*v1.Pod) {
	placed.Share, placed.Machine = 1, s.world.checksum
	for rank, node := range placed.Nodes {
		pod := podWith(map[string]string{podGroupLabel: group}, nil)
		pod.Name = fmt.Sprintf("%s-%d", group, rank)
		pod.UID, pod.Spec.SchedulerName = types.UID("uid-"+pod.Name), "topolane"
		pod.Annotations, _ = placed.notes(rank)
		pod.Annotations[proofNote] = s.key.proof(groupOf(pod), pod.UID, pod.Annotations[placementNote])
		pod.Spec.NodeName = node
		pods = append(pods, pod)
	}
	return pods
}

// rewritten returns a pod with a changed placement, as a user who may change the pod can write it.
func rewritten(pod *v1.Pod, change func(*placement)) *v1.Pod {
	made := pod.DeepCopy()
	var placed placement
	_ = json.Unmarshal([]byte(made.Annotations[placementNote]), &placed)
	change(&placed)
	text, _ := json.Marshal(placed)
	made.Annotations[placementNote] = string(text)
	return made
}

func (s *scheduler) of(t *testing.T, name string) *group {
	t.Helper()
	g := s.groups[groupKey("default/"+name+"#PodGroup")]
	if g == nil || g.placed == nil {
		t.Fatalf("group %s is not known; there are %v", name, slices.Collect(maps.Keys(s.groups)))
	}
	return g
}

func (s *scheduler) events() (said []string) {
	for len(s.said.Events) > 0 {
		said = append(said, <-s.said.Events)
	}
	return said
}

// crossing returns the placement of an isolated group in two racks.
func crossing() placement {
	return placement{Policy: "isolated", Nodes: []string{"n00", "n01", "n04", "n05"}, Links: []uint32{0, 1}, LinkUse: isolatedLinks, Revision: 1}
}

// A restarted scheduler accepts what was signed: nodes in rank order, links, and the room of an absent member.
func TestARestartTakesOverWhatWasSigned(t *testing.T) {
	pods := started(t).running("g", crossing())
	s := started(t, pods[3], pods[0], pods[2])
	g := s.of(t, "g")
	if g.isUnproven || !slices.Equal(g.placed.Nodes, crossing().Nodes) || !slices.Equal(g.placed.Links, []uint32{0, 1}) {
		t.Fatalf("%+v", g.placed)
	}
	if g.seats[1] != "" || !g.keeps(1, s.longest()) || g.seats[0] != pods[0].UID || g.seats[3] != pods[3].UID {
		t.Fatalf("seats %v", g.seats)
	}
	if said := s.events(); len(said) > 0 {
		t.Errorf("%v", said)
	}
}

// Text that the scheduler did not sign proves nothing: neither more nodes, nor links, nor a revision, nor an impossible
// size. Only the nodes of the group's running pods count, and an Event says that the links are not known.
func TestWrittenNotesProveNothing(t *testing.T) {
	many := make([]string, 62_000)
	for index := range many {
		many[index] = fmt.Sprintf("n%02d", index%16)
	}
	signed := started(t).running("g", crossing())
	other := started(t).running("h", crossing())
	for what, change := range map[string]func(*placement){
		"many nodes":       func(p *placement) { p.Nodes = many },
		"negative podsets": func(p *placement) { p.Podsets = []podset{{"a", -5}, {"b", 9}} },
		"all links":        func(p *placement) { p.Links = []uint32{0, 1, 2, 3, 4, 5, 6, 7} },
		"a later revision": func(p *placement) { p.Revision = 1 << 40; p.Nodes = many[:8] },
		"a rank":           func(p *placement) { p.Rank = 3 },
	} {
		for kind, pod := range map[string]*v1.Pod{
			"changed":   rewritten(signed[0], change),
			"no proof":  without(rewritten(signed[0], change), proofNote),
			"of others": with(rewritten(signed[0], change), proofNote, other[0].Annotations[proofNote]),
		} {
			s := started(t, pod)
			g := s.of(t, "g")
			if !g.isUnproven || !slices.Equal(g.placed.Nodes, []string{"n00"}) || len(g.placed.Links) > 0 || g.placed.LinkUse != unknownLinks || !g.keepsOff() {
				t.Errorf("%s, %s: %+v", what, kind, g.placed)
			}
			if said := s.events(); len(said) != 1 || !strings.Contains(said[0], "nothing proves where Topolane placed pod g-0: group default/g") {
				t.Errorf("%s, %s: %v", what, kind, said)
			}
		}
	}
	for what, pod := range map[string]*v1.Pod{
		"of another pod": with(with(signed[1], placementNote, signed[0].Annotations[placementNote]), proofNote, signed[0].Annotations[proofNote]),
		"elsewhere":      onNode(signed[0], "n09"),
	} {
		if s := started(t, pod); !s.of(t, "g").isUnproven || len(s.of(t, "g").placed.Nodes) != 1 {
			t.Errorf("%s: %+v", what, s.of(t, "g").placed)
		}
	}
}

// A text of the greatest length that the API server permits costs at most a checksum: it is not parsed.
func TestLongNotesAreNotParsed(t *testing.T) {
	s := started(t)
	work := func(length int) float64 {
		pod := s.running("g", crossing())[0]
		pod.Annotations[placementNote] = `{"nodes":[` + strings.Repeat(`"n",`, length/4) + `"n"]}`
		return testing.AllocsPerRun(5, func() {
			if s.placementOf(pod) != nil {
				t.Error("it is taken for proved")
			}
		})
	}
	if short, long, longest := work(400), work(250*1024), work(2*longestNote); long > short || longest > short {
		t.Errorf("allocations: %v for 400 bytes, %v for 250 KiB, %v for 512 KiB", short, long, longest)
	}
}

// Annotations that change after a pod was recorded have no effect, and a pod stays in the group for which it was bound.
func TestLaterChangesOfPodsAreNotHeard(t *testing.T) {
	pods := started(t).running("g", crossing())
	s := started(t, pods...)
	g := s.of(t, "g")
	moved := rewritten(pods[0], func(p *placement) { p.Revision, p.Nodes, p.Links = 99, append(p.Nodes, "n15"), []uint32{0, 1, 2, 3} })
	moved.Labels = map[string]string{podGroupLabel: "other", tasLabel: "true"}
	delete(moved.Annotations, proofNote)
	s.update(t, pods[0], moved)
	if len(s.groups) != 1 || g.isUnproven || g.placed.Revision != 1 || len(g.placed.Nodes) != 4 || g.seats[0] != pods[0].UID {
		t.Fatalf("%d groups; %+v", len(s.groups), g.placed)
	}
	for _, pod := range append([]*v1.Pod{moved}, pods[1:]...) {
		s.podGone(pod)
	}
	if len(s.groups) > 0 {
		t.Errorf("the group outlives its pods: %v", s.groups)
	}
}

// If a waiting pod is given to another group, nothing of the first group remains.
func TestAGroupWithoutPodsIsForgotten(t *testing.T) {
	s := started(t)
	pod := s.running("g", crossing())[0]
	pod.Spec.NodeName, pod.Annotations = "", nil
	s.groups[groupOf(pod)] = &group{key: groupOf(pod), template: pod, refused: "no room"}
	after := pod.DeepCopy()
	after.Labels[podGroupLabel] = "other"
	s.update(t, pod, after)
	if len(s.groups) > 0 {
		t.Errorf("%v", s.groups)
	}
}

// After an interrupted watch, a pod that was deleted and made again appears as a changed pod: the old pod leaves its
// seat.
func TestAPodThatWasMadeAgainUnseen(t *testing.T) {
	pods := started(t).running("g", crossing())
	s := started(t, pods[0])
	again := pods[0].DeepCopy()
	again.UID, again.Spec.NodeName, again.Annotations = "another", "", nil
	s.update(t, pods[0], again)
	if len(s.groups) > 0 {
		t.Errorf("%+v", s.of(t, "g").seats)
	}
}

// If the annotation of one pod was removed, its node still counts, but no links of the group are known any more.
func TestAPodWithoutProofMakesLinksUnknown(t *testing.T) {
	pods := started(t).running("g", crossing())
	bare := without(without(pods[2], placementNote), proofNote)
	for _, order := range [][]*v1.Pod{{pods[0], bare}, {bare, pods[0]}, {bare, pods[0], pods[1], pods[3]}} {
		s := started(t, order...)
		g := s.of(t, "g")
		seat := g.seatOf(bare.UID)
		if !g.isUnproven || len(g.placed.Links) > 0 || g.placed.LinkUse != unknownLinks || !g.keepsOff() || len(g.seats) != 4 || seat != 2 || g.placed.Nodes[seat] != "n04" {
			t.Errorf("%+v, seats %v", g.placed, g.seats)
		}
	}
}

// A group of an earlier version has annotations without proof: its pods keep their ranks.
func TestAnUpgradeKeepsRanks(t *testing.T) {
	pods := started(t).running("g", crossing())
	for index := range pods {
		pods[index] = without(pods[index], proofNote)
	}
	slices.Reverse(pods)
	g := started(t, pods...).of(t, "g")
	if !g.isUnproven || !slices.Equal(g.placed.Nodes, crossing().Nodes) {
		t.Errorf("%+v", g.placed)
	}
	// A rank that no pod has creates no seats.
	g = started(t, with(pods[0], rankNote, "999999")).of(t, "g")
	if len(g.seats) != 1 {
		t.Errorf("%d seats for one pod", len(g.seats))
	}
}

// A later signed placement is used, but running pods keep their nodes in it.
func TestTheLastSignedRevisionCounts(t *testing.T) {
	first := crossing()
	pods := started(t).running("g", first)
	second := crossing()
	second.Nodes, second.Links, second.Revision = []string{"n00", "n01", "n04", "n06"}, []uint32{2}, 2
	later := started(t).running("g", second)
	g := started(t, pods[0], pods[1], pods[2], later[3]).of(t, "g")
	if g.isUnproven || g.placed.Revision != 2 || !slices.Equal(g.placed.Nodes, second.Nodes) || !slices.Equal(g.placed.Links, second.Links) {
		t.Errorf("%+v", g.placed)
	}
}

// The seal equals the one that the Python readers compute.
func TestSeals(t *testing.T) {
	for _, one := range shared[struct{ What, Key, Starts, Group, Pod, Text, Seal string }](t, "proof_cases.json") {
		if got := signingKey(one.Key).seal(one.Starts, groupKey(one.Group), types.UID(one.Pod), one.Text); got != one.Seal {
			t.Errorf("%s: %s", one.What, got)
		}
	}
}

// What earlier releases signed is read: isolated in place of link_use, and nothing of what kube-scheduler chose.
func TestPlacementsOfEarlierReleases(t *testing.T) {
	for text, use := range map[string]string{
		`{"policy":"isolated","nodes":["n00"],"share":1,"isolated":true,"rank":0}`:   isolatedLinks,
		`{"policy":"first-fit","nodes":["n00"],"share":1,"isolated":false,"rank":0}`: sharedLinks,
		`{"policy":"stock","nodes":["n00"],"share":1,"isolated":true,"rank":0}`:      unknownLinks,
	} {
		s := started(t)
		pod := with(s.running("g", crossing())[0], placementNote, text)
		pod = with(pod, proofNote, string(groupOf(pod))+" "+s.key.seal(earlierStarts, groupOf(pod), pod.UID, text))
		g := started(t, pod).of(t, "g")
		if g.isUnproven || g.placed.LinkUse != use || g.keepsOff() != (use != sharedLinks) {
			t.Errorf("%s: %+v", text, g.placed)
		}
	}
}

// A placement with inconsistent parts is ignored, even if it is signed.
func TestUnsoundPlacements(t *testing.T) {
	for what, change := range map[string]func(*placement){
		"a negative size": func(p *placement) { p.Podsets = []podset{{"a", -1}, {"b", 5}} },
		"too few":         func(p *placement) { p.Podsets = []podset{{"a", 1}} },
		"a rank":          func(p *placement) { p.Rank = 4 },
		"no share":        func(p *placement) { p.Share = 0 },
		"a revision":      func(p *placement) { p.Revision = -1 },
		"no nodes":        func(p *placement) { p.Nodes = nil },
	} {
		placed := crossing()
		placed.Share = 1
		if !placed.isSound() {
			t.Fatal("a sound one is none")
		}
		if change(&placed); placed.isSound() {
			t.Error(what)
		}
	}
}

func (s *scheduler) update(t *testing.T, before, after *v1.Pod) {
	t.Helper()
	if err := s.pods.Update(after); err != nil {
		t.Fatal(err)
	}
	s.podChanged(before, after)
}

func with(pod *v1.Pod, note, text string) *v1.Pod {
	made := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, note, text)
	return made
}

func without(pod *v1.Pod, note string) *v1.Pod {
	made := pod.DeepCopy()
	delete(made.Annotations, note)
	return made
}

func onNode(pod *v1.Pod, node string) *v1.Pod {
	made := pod.DeepCopy()
	made.Spec.NodeName = node
	return made
}
