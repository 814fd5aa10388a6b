package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"topolane/scheduler/engine"
)

// world has the engine's machine and state. Both are rebuilt when nodes or their labels change.
type world struct {
	args     *args
	machine  *engine.Machine
	checksum string
	state    *engine.State
	policies map[string]*engine.Policy
	// file is the text of the machine file, if there is one.
	file []byte
	// labels has the labels of nodes by name, for machines made of labels.
	labels map[string]map[string]string
	// warning says what is wrong with the machine; warn reports it.
	warning string
	warn    func(said string)
	isStale bool
	// unread is the reason why there is no machine, until the nodes or the file change.
	unread error
	spent  spent
}

func newWorld(args *args) *world {
	return &world{
		args: args, file: args.machineText, policies: map[string]*engine.Policy{}, labels: map[string]map[string]string{},
		isStale: true,
	}
}

// setNode records a node's labels; nil if the node is gone. It reports whether that changes anything.
func (w *world) setNode(name string, labels map[string]string) bool {
	old, known := w.labels[name]
	if known == (labels != nil) && maps.Equal(old, labels) {
		return false
	}
	if labels == nil {
		delete(w.labels, name)
	} else {
		w.labels[name] = labels
	}
	w.isStale = w.isStale || w.file == nil || len(w.args.TopologyLabels) > 0
	return true
}

// readLabels makes a machine from the labels of nodes.
func (w *world) readLabels() (*engine.Machine, error) {
	text, err := w.labelsText()
	if err != nil {
		return nil, err
	}
	return engine.ReadMachine("nodes", text)
}

// labelsText returns the labels of nodes in the format that the engine reads.
func (w *world) labelsText() ([]byte, error) {
	type object struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     any               `json:"spec,omitempty"`
	}
	var items []object
	if keys := w.args.TopologyLabels; len(keys) > 0 {
		var levels []map[string]string
		for _, key := range keys {
			levels = append(levels, map[string]string{"nodeLabel": key})
		}
		items = append(items, object{"Topology", metav1.ObjectMeta{Name: "labels"}, map[string]any{"levels": levels}})
	}
	for _, name := range slices.Sorted(maps.Keys(w.labels)) {
		items = append(items, object{Kind: "Node", Metadata: metav1.ObjectMeta{Name: name, Labels: w.labels[name]}})
	}
	return json.MarshalIndent(map[string]any{"kind": "List", "items": items}, "", " ")
}

// refresh rebuilds the machine and the state if they are outdated.
func (w *world) refresh(logger klog.Logger, groups map[groupKey]*group) error {
	if !w.isStale {
		return w.unread
	}
	w.machine, w.state, w.unread = nil, nil, nil
	machine, warning, err := w.read()
	if err != nil {
		w.unread, w.isStale = err, false
		return err
	}
	if warning != w.warning && warning != "" {
		w.warn(warning)
	}
	w.warning = warning
	sum, err := w.sum()
	if err != nil {
		return err
	}
	state, err := engine.NewState(machine)
	if err != nil {
		return err
	}
	w.machine, w.state, w.checksum, w.isStale = machine, state, sum, false
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		groups[key].isHeld = false
		w.hold(logger, groups[key])
	}
	logger.Info("Machine read", "nodes", len(machine.Names), "checksum", w.checksum)
	return nil
}

// sum returns a checksum of the input from which the machine was read.
func (w *world) sum() (string, error) {
	text := w.file
	if w.file == nil || len(w.args.TopologyLabels) > 0 {
		labels, err := w.labelsText()
		if err != nil {
			return "", err
		}
		text = slices.Concat(w.file, labels)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// hold adds a group with nodes to the engine's state. A group whose links are not known counts as the owner of all links
// that it may use.
func (w *world) hold(logger klog.Logger, g *group) {
	if w.state == nil || g.placed == nil {
		return
	}
	if g.isHeld {
		w.release(logger, g)
	}
	isHeld, err := w.holdIn(w.state, g)
	if err != nil {
		logger.Error(err, "The engine does not take over a group that runs", "group", g.key)
	}
	g.isHeld = isHeld
}

// holdIn adds a group to a state. It returns false if the machine knows none of its nodes.
func (w *world) holdIn(state *engine.State, g *group) (bool, error) {
	var nodes []uint32
	for _, name := range g.placed.Nodes {
		if node, known := w.machine.Node(name); known {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return false, nil
	}
	links, use := g.placed.Links, engine.Shared
	// In the state, the links of a leaving group belong to its successor. Other groups avoid them until it is gone.
	if len(links) > 0 && (g.placed.Machine != w.checksum || g.isLeaving) {
		links = nil
		use = engine.Isolated
	}
	if g.placed.LinkUse == isolatedGlobalLinks {
		use = engine.IsolatedGlobal
	} else if g.keepsOff() {
		use = engine.Isolated
	}
	err := state.Hold(g.id, nodes, links, g.placed.Share, use)
	if err != nil && len(links) > 0 {
		// Another group has these links now, for example if the annotation is outdated.
		err = state.Hold(g.id, nodes, nil, 1, engine.Isolated)
	}
	return err == nil, err
}

func (w *world) release(logger klog.Logger, g *group) {
	if !g.isHeld || w.state == nil {
		return
	}
	g.isHeld = false
	if err := w.state.Release(g.id); err != nil {
		logger.Error(err, "The engine's state will be rebuilt", "group", g.key)
		w.isStale = true
	}
}

var errResting = errors.New("the engine was too slow twice within ten seconds, and is not asked for a while")

// question is the input for a group's policy.
type question struct {
	slots int
	// free and all are the slots of nodes by name.
	free, all map[string]uint32
	// near has the nodes that the group has already.
	near []string
}

// ask asks the policy of a group, which must not be in the state.
func (w *world) ask(state *engine.State, g *group, asked question) (*placement, *engine.Refusal, error) {
	policy, err := w.policyOf(g)
	if err != nil {
		return nil, nil, err
	}
	request := w.requestOf(g, asked)
	for _, name := range asked.near {
		node, known := w.machine.Node(name)
		if !known {
			return nil, nil, fmt.Errorf("the machine does not have node %s, on which the group runs", name)
		}
		request.Members = append(request.Members, node)
	}
	var decision *engine.Decision
	var refusal *engine.Refusal
	w.spent.measure(time.Duration(w.args.CallTimeMilliseconds)*time.Millisecond, func() {
		decision, refusal, err = state.Place(policy, request)
	})
	if err != nil {
		w.isStale = true
		return nil, nil, err
	}
	if refusal != nil {
		return nil, refusal, nil
	}
	if wanted := asked.slots + len(asked.near); len(decision.Nodes) != wanted {
		return nil, nil, fmt.Errorf("the engine gave %d nodes, not %d", len(decision.Nodes), wanted)
	}
	placed := &placement{
		Policy: g.asked.policy, Rule: g.asked.rule, LinkUse: sharedLinks, Links: decision.Links,
		Share: decision.BandwidthShare, Machine: w.checksum,
	}
	switch decision.LinkUse {
	case engine.Isolated:
		placed.LinkUse = isolatedLinks
	case engine.IsolatedGlobal:
		placed.LinkUse = isolatedGlobalLinks
	}
	for _, node := range decision.Nodes {
		placed.Nodes = append(placed.Nodes, w.machine.Names[node])
	}
	return placed, nil, nil
}

// makeRoom asks which units must go so that the policy of a group places it; nil if none are found.
func (w *world) makeRoom(state *engine.State, g *group, asked question, room engine.Room) (*engine.RoomPlan, error) {
	policy, err := w.policyOf(g)
	if err != nil {
		return nil, err
	}
	plan, err := state.MakeRoom(policy, w.requestOf(g, asked), room)
	w.isStale = w.isStale || err != nil
	return plan, err
}

// policyOf is the policy of a group, if the engine is asked at all.
func (w *world) policyOf(g *group) (*engine.Policy, error) {
	policy, known := w.policies[g.asked.policy]
	if !known {
		made, err := engine.NewPolicy(g.asked.policy, w.args.Seed)
		if err != nil {
			return nil, inputError{err}
		}
		policy, w.policies[g.asked.policy] = made, made
	}
	if err := policy.Check(w.machine); err != nil {
		return nil, inputError{err}
	}
	if w.spent.isResting(time.Now()) {
		return nil, errResting
	}
	return policy, nil
}

// requestOf is a question in the engine's words.
func (w *world) requestOf(g *group, asked question) engine.Request {
	request := engine.Request{
		ID: g.id, Slots: uint32(asked.slots), MinBandwidth: g.asked.share, Within: g.asked.within,
		Segment: uint32(g.asked.segment), SegmentLevel: g.asked.segmentLevel,
		FreeSlots: make([]uint32, len(w.machine.Names)), AllSlots: make([]uint32, len(w.machine.Names)),
	}
	for node, name := range w.machine.Names {
		request.FreeSlots[node], request.AllSlots[node] = asked.free[name], asked.all[name]
	}
	return request
}

// inputError is an error that the group's user must fix.
type inputError struct{ error }

// comesBack reports whether a node is out of service only for a while, for example cordoned or not answering.
func comesBack(node *v1.Node) bool {
	if node.Spec.Unschedulable {
		return true
	}
	return slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool {
		return len(taint.Key) > len(nodeTaints) && taint.Key[:len(nodeTaints)] == nodeTaints
	})
}

const nodeTaints = "node.kubernetes.io/"
