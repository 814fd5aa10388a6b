package plugin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"topolane/scheduler/engine"
)

// lookAgain is the time between two checks of the machine file and of Kueue's Topology.
const lookAgain = 2 * time.Second

// firstAnswer is the longest wait for the API server's first answer to a starting scheduler.
const firstAnswer = time.Minute

// topologyVersions are the versions of Kueue's Topology. A cluster may serve only one of them.
var topologyVersions = []string{"v1beta1", "v1beta2"}

// follow applies changes of the machine file and of Kueue's Topology.
func (p *plugin) follow(ctx context.Context) {
	if p.args.MachineFile == "" && p.args.KueueTopology == "" {
		return
	}
	for said := ""; ctx.Err() == nil; {
		if failure := p.look(ctx); failure == nil {
			said = ""
		} else if failure.Error() != said {
			said = failure.Error()
			p.logger.Error(failure, "The machine stays as it is")
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

func (p *plugin) look(ctx context.Context) error {
	if p.args.MachineFile != "" {
		text, err := os.ReadFile(p.args.MachineFile)
		if err != nil {
			return err
		}
		if !bytes.Equal(text, p.world.file) {
			if _, err := engine.ReadMachine(p.args.MachineFile, text); err != nil {
				return err
			}
			p.guarded("look", p.args.MachineFile, func() {
				p.logger.Info("Machine file changed", "file", p.args.MachineFile)
				p.world.file, p.world.isStale = text, true
				p.changed()
			})
		}
	}
	if p.args.KueueTopology == "" {
		return nil
	}
	keys, err := p.keysOfKueue(ctx)
	if err != nil {
		return err
	}
	p.guarded("look", p.args.KueueTopology, func() {
		if !slices.Equal(keys, p.args.TopologyLabels) {
			p.args.TopologyLabels, p.world.isStale = keys, true
			nodes, _ := p.handle.SharedInformerFactory().Core().V1().Nodes().Lister().List(labels.Everything())
			for _, node := range nodes {
				p.world.setNode(node.Name, relevant(node.Labels, keys))
			}
			p.changed()
		}
	})
	return nil
}

// checkMachine fails if there is no machine, because then no group could be placed as promised. The API server has some
// time to answer.
func (p *plugin) checkMachine(ctx context.Context) error {
	nodes, err := p.listNodes(ctx)
	if err != nil {
		return fmt.Errorf("args of %s: the nodes cannot be read, so there is no machine: %w", Name, err)
	}
	if p.args.KueueTopology != "" {
		if p.args.TopologyLabels, err = p.keysOfKueue(ctx); err != nil {
			return fmt.Errorf("args of %s: %w", Name, err)
		}
	}
	trial := newWorld(p.args)
	for _, node := range nodes {
		trial.setNode(node.Name, relevant(node.Labels, p.args.TopologyLabels))
	}
	if _, _, err := trial.read(); err != nil {
		from := "labels of topograph on its nodes"
		if keys := p.args.TopologyLabels; len(keys) > 0 {
			from = "topologyLabels " + strings.Join(keys, ", ")
		}
		return fmt.Errorf("args of %s: the cluster has %d nodes, and they are no machine by %s: %w", Name, len(nodes), from, err)
	}
	return nil
}

// listNodes returns the nodes of the cluster. It retries for some time if the server does not answer, but not if the
// server refuses.
func (p *plugin) listNodes(ctx context.Context) (nodes []v1.Node, err error) {
	until := time.Now().Add(firstAnswer)
	for {
		found, err := p.handle.ClientSet().CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			return found.Items, nil
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || time.Now().After(until) {
			return nil, err
		}
		p.logger.Error(err, "The nodes cannot be read yet")
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// keysOfKueue returns the levels of the Kueue Topology that the configuration names.
func (p *plugin) keysOfKueue(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var topology *unstructured.Unstructured
	var err error
	for _, version := range topologyVersions {
		kind := schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: version, Resource: "topologies"}
		topology, err = p.client.Resource(kind).Get(ctx, p.args.KueueTopology, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("kueueTopology %s: %w", p.args.KueueTopology, err)
	}
	levels, _, err := unstructured.NestedSlice(topology.Object, "spec", "levels")
	if err != nil {
		return nil, fmt.Errorf("kueueTopology %s: %w", p.args.KueueTopology, err)
	}
	var keys []string
	for _, level := range levels {
		if row, is := level.(map[string]any); is {
			keys = append(keys, fmt.Sprint(row["nodeLabel"]))
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("kueueTopology %s has no levels", p.args.KueueTopology)
	}
	return keys, nil
}

// read makes the machine from labels, from the file, or from both. If they contradict each other, the file is used, and
// the warning says where.
func (w *world) read() (machine *engine.Machine, warning string, err error) {
	if w.args.KueueTopology != "" && len(w.args.TopologyLabels) == 0 {
		return nil, "", fmt.Errorf("the levels of Topology %s of Kueue are not known", w.args.KueueTopology)
	}
	if w.file == nil {
		machine, err = w.readLabels()
		return machine, "", err
	}
	machine, err = engine.ReadMachine(w.args.MachineFile, w.file)
	if err != nil || len(w.args.TopologyLabels) == 0 {
		return machine, "", err
	}
	tree, err := w.readLabels()
	if err != nil {
		return machine, fmt.Sprintf("the labels are no machine, so %s counts alone: %v", w.args.MachineFile, err), nil
	}
	joined, err := machine.Join(tree)
	if err != nil {
		return machine, fmt.Sprintf("the labels of nodes contradict %s, which counts: %v", w.args.MachineFile, err), nil
	}
	return joined, "", nil
}

// outside returns the number of nodes of the cluster that are not in the machine, and the name of one.
func (w *world) outside() (count int, first string) {
	for name := range w.labels {
		if _, known := w.machine.Node(name); !known {
			count++
			if first == "" || name < first {
				first = name
			}
		}
	}
	return count, first
}

// warn reports what is wrong with the machine, in the log and as Events of the nodes that the sentence names.
func (p *plugin) warn(said string) {
	p.logger.Error(nil, "The machine is not what it should be", "because", said)
	nodes := p.handle.SharedInformerFactory().Core().V1().Nodes().Lister()
	for _, word := range strings.FieldsFunc(said, func(letter rune) bool { return strings.ContainsRune(" ,:;()\"'", letter) }) {
		if node, err := nodes.Get(word); err == nil {
			p.handle.EventRecorder().Eventf(node, nil, v1.EventTypeWarning, "TopologyContradicts", "Reading", "%s", said)
		}
	}
}
