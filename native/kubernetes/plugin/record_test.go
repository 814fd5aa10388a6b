package plugin

import (
	"strings"
	"testing"
	"time"

	"topolane/scheduler/engine"
)

// Once kube-scheduler chose for a member, a later decision about another does not make the links of the group known.
func TestAStockMemberKeepsOthersOff(t *testing.T) {
	for name, isStock := range map[string]bool{"a stock member": true, "none": false} {
		g := &group{placed: &placement{Policy: "dedicated", Nodes: []string{"n0", "n1", "n2"}, LinkUse: sharedLinks}}
		if isStock {
			g.leaveToStock(0, nil)
		}
		g.takeNear(2, []int{1}, &placement{Nodes: []string{"n1", "n3"}, Links: []uint32{4}, Share: 0.5, LinkUse: sharedLinks})
		if g.placed.Nodes[2] != "n3" || g.keepsOff() != isStock || (len(g.placed.Links) == 0) != isStock {
			t.Errorf("%s: %+v", name, g.placed)
		}
	}
}

// The records are those that the one reader of all hosts reads: tests/cluster/test_decided.py.
func TestRecords(t *testing.T) {
	p := &plugin{world: newWorld(&args{}), groups: map[groupKey]*group{"default/a#Job.1": {id: 7}}}
	g := &group{key: "default/g#Job.2", asked: asked{size: 5, policy: "isolated", rule: "annotation " + policyNote, share: 0.5}}
	refused := p.refusalOf(g, &engine.Refusal{Name: "would-share-links", Text: "no: 5 wanted, 6 free",
		Obstacles: []engine.Obstacle{{Name: "r0", Jobs: []uint64{7}}, {Name: "r1"}}})
	placed := placement{Policy: "dedicated", Rule: ofScheduler, LinkUse: isolatedLinks, Nodes: []string{"n0", "n1"},
		Links: []uint32{3, 5}, Share: 0.5, Machine: "0badcafe", Revision: 2}
	ofStock := placement{Policy: stockPolicy, Rule: stockRule(nil), LinkUse: unknownLinks, Nodes: []string{"n0", ""}, Share: 1}
	made := map[string]string{
		"a refused group": strings.TrimPrefix(g.record(refused), recordStarts),
		"a group without an answer": strings.TrimPrefix(g.record(&refusal{Kind: noEngine, Wanted: 5, Why: "it \"rests\". now"}),
			recordStarts),
	}
	for what, placed := range map[string]placement{"a member with links": placed, "the choice of kube-scheduler": ofStock} {
		notes, err := placed.notes(1)
		if err != nil {
			t.Fatal(err)
		}
		made[what] = notes[placementNote]
	}
	seen := 0
	for _, one := range shared[struct{ Host, What, Text string }](t, "../cluster/record_cases.json") {
		if one.Host == "kubernetes" {
			seen++
			if made[one.What] != one.Text {
				t.Errorf("%s: %s", one.What, made[one.What])
			}
		}
	}
	if seen != len(made) {
		t.Errorf("%d of %d", seen, len(made))
	}
}

// A message has the sentence first, and its record does not outlive the refusal.
func TestAMessageEndsWithItsRecord(t *testing.T) {
	p := &plugin{world: newWorld(&args{}), groups: map[groupKey]*group{}}
	g := &group{key: "default/g#Job.2", asked: asked{size: 5, policy: "isolated", share: 1}, planned: time.Now()}
	status := p.refuse(g, "group default/g waits", &refusal{Kind: "not-now", Wanted: 5})
	if said := status.Message(); !strings.HasPrefix(said, "group default/g waits topolane={") || !strings.HasSuffix(said, "}") {
		t.Errorf("%s", said)
	}
	if said := p.refuse(g, "group default/g: bad", nil).Message(); said != "group default/g: bad" || g.why != nil {
		t.Errorf("%s", said)
	}
}
