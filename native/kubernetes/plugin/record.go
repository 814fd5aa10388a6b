package plugin

import (
	"encoding/json"
	"fmt"
	"strings"

	"topolane/scheduler/engine"
)

// Uses of links in records: docs/reference/outputs.md lists the keys and words that all hosts publish.
const (
	isolatedLinks = "isolated"
	// isolatedGlobalLinks is about the links between the groups of a dragonfly only.
	isolatedGlobalLinks = "isolated-global"
	sharedLinks         = "shared"
	// unknownLinks means that it is not known which links a group uses, so no other group gets them.
	unknownLinks = "unknown"
)

// What gave a group its policy, if no annotation did.
const (
	ofScheduler = "policy of the scheduler's configuration"
	ofUnable    = "the engine could not answer when it was placed"
	ofRefusal   = "its policy had no place, and whenRefused is Stock"
	ofNothing   = "nothing proves where its pods were placed"
)

// noEngine is the kind of refusal of a group that waits because the engine cannot answer.
const noEngine = "no-engine"

// kinds describes the kinds of refusals, in the words of `topolane slurm explain`.
var kinds = map[string]string{
	"not-now":           "does not fit now",
	"never":             "never fits, even on the empty machine",
	"would-share-links": "would share links",
	"cannot-isolate":    "never has links of its own, even on the empty machine",
	noEngine:            "needs the engine, which cannot answer",
}

// recordStarts is what stands before the record in the message of a waiting pod.
const recordStarts = " topolane="

// refusal is why a group waits.
type refusal struct {
	Kind     string     `json:"kind"`
	Wanted   int        `json:"wanted"`
	Why      string     `json:"why,omitempty"`
	InTheWay []inTheWay `json:"in_the_way,omitempty"`
}

// inTheWay is a group of nodes in which something is missing, and the groups that hold it.
type inTheWay struct {
	At   string   `json:"at"`
	Jobs []string `json:"jobs"`
}

// refusalOf returns the engine's refusal with the names of the groups in the way.
func (p *plugin) refusalOf(g *group, said *engine.Refusal) *refusal {
	_, numbers, _ := strings.Cut(said.Text, ": ")
	names := map[uint64]string{}
	for key, other := range p.groups {
		names[other.id] = key.String()
	}
	const most = 3
	made := &refusal{Kind: said.Name, Wanted: g.asked.size, Why: numbers}
	for _, obstacle := range said.Obstacles[:min(len(said.Obstacles), most)] {
		var holders []string
		for _, job := range obstacle.Jobs[:min(len(obstacle.Jobs), most)] {
			holders = append(holders, names[job])
		}
		if len(holders) > 0 {
			made.InTheWay = append(made.InTheWay, inTheWay{obstacle.Name, holders})
		}
	}
	return made
}

// sentence says why the policy refuses a group, and which groups are in the way.
func (p *plugin) sentence(g *group, why *refusal) string {
	said := fmt.Sprintf("group %s asks for %d pods under %s and %s (%s)", g.key, g.asked.size, g.asked.policy, kinds[why.Kind], why.Why)
	if count, first := p.world.outside(); count > 0 {
		said += fmt.Sprintf("; not in the machine and without groups: %s", first)
		if count > 1 {
			said += fmt.Sprintf(" and %d more nodes", count-1)
		}
	}
	for _, place := range why.InTheWay {
		said += fmt.Sprintf("; in the way at %s: %s", place.At, strings.Join(place.Jobs, ", "))
	}
	return said
}

// record returns the record of a refused group, for the end of its message; empty without a refusal.
func (g *group) record(why *refusal) string {
	if why == nil {
		return ""
	}
	text, err := json.Marshal(struct {
		Policy  string   `json:"policy"`
		Rule    string   `json:"rule"`
		Share   float64  `json:"share"`
		Refusal *refusal `json:"refusal"`
	}{g.asked.policy, g.asked.rule, g.asked.share, why})
	if err != nil {
		return ""
	}
	return recordStarts + string(text)
}
