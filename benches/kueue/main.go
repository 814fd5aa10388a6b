// Reads states of machines, one per line, and prints the answer of Kueue's topology-aware scheduling to each. It calls the
// function of Kueue's scheduler on a snapshot of the nodes from Kueue's own cache. states.rs describes the format.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	cache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/resources"
)

// cluster is the API server from the view of Kueue's cache, which only lists nodes.
type cluster struct {
	client.Client
	nodes []corev1.Node
}

func (c *cluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if nodes, ok := list.(*corev1.NodeList); ok {
		nodes.Items = c.nodes
	}
	return nil
}

// machine is a Kueue with one queue and one flavor, on a topology with `levels`.
type machine struct {
	levels  []string
	cluster *cluster
	cache   *cache.Cache
}

var lastProfile string

const (
	topology = "topology"
	flavor   = "flavor"
	queue    = "queue"
)

func newMachine(ctx context.Context, depth int) (*machine, error) {
	made := &machine{cluster: &cluster{}}
	spec := kueue.TopologySpec{}
	for level := depth - 1; level > 0; level-- {
		made.levels = append(made.levels, fmt.Sprintf("level-%d", level))
	}
	made.levels = append(made.levels, corev1.LabelHostname)
	for _, key := range made.levels {
		spec.Levels = append(spec.Levels, kueue.TopologyLevel{NodeLabel: key})
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	name := kueue.TopologyReference(topology)
	made.cache = cache.New(made.cluster)
	made.cache.AddOrUpdateTopology(logr.Discard(), &kueue.Topology{ObjectMeta: named(topology), Spec: spec})
	made.cache.AddOrUpdateResourceFlavor(logr.Discard(), &kueue.ResourceFlavor{
		ObjectMeta: named(flavor), Spec: kueue.ResourceFlavorSpec{TopologyName: &name},
	})
	quota := kueue.FlavorQuotas{Name: flavor, Resources: []kueue.ResourceQuota{
		{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("1000000")},
	}}
	group := kueue.ResourceGroup{
		CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []kueue.FlavorQuotas{quota},
	}
	return made, made.cache.AddClusterQueue(ctx, &kueue.ClusterQueue{
		ObjectMeta: named(queue), Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{group}},
	})
}

// grow turns nested lists of free slots into nodes with a label for each level. Names sort in the order of the nodes.
func (m *machine) grow(tree any, labels map[string]string, next map[int]int, depth int) {
	if free, ok := tree.(float64); ok {
		name := fmt.Sprintf("n%06d", len(m.cluster.nodes))
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		for key, value := range labels {
			node.Labels[key] = value
		}
		node.Labels[corev1.LabelHostname] = name
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:  *resource.NewQuantity(int64(free), resource.DecimalSI),
			corev1.ResourcePods: resource.MustParse("1000"),
		}
		m.cluster.nodes = append(m.cluster.nodes, node)
		return
	}
	for _, child := range tree.([]any) {
		if _, isNode := child.(float64); !isNode {
			labels[m.levels[depth]] = fmt.Sprintf("g%d-%06d", depth, next[depth])
			next[depth]++
		}
		m.grow(child, labels, next, depth+1)
	}
}

func depthOf(tree any) int {
	list, ok := tree.([]any)
	if !ok || len(list) == 0 {
		return 0
	}
	return 1 + depthOf(list[0])
}

// level returns the label of a level; levels are counted from the nodes up.
func (m *machine) level(number string) (*string, error) {
	up, err := strconv.Atoi(number)
	if err != nil || up < 0 || up >= len(m.levels) {
		return nil, fmt.Errorf("no level %q", number)
	}
	return &m.levels[len(m.levels)-1-up], nil
}

func (m *machine) request(within, slice string) (*kueue.PodSetTopologyRequest, error) {
	request := &kueue.PodSetTopologyRequest{}
	var err error
	switch kind, level, _ := strings.Cut(within, ":"); kind {
	case "required":
		request.Required, err = m.level(level)
	case "preferred":
		request.Preferred, err = m.level(level)
	default:
		if yes := true; slice == "-" {
			request.Unconstrained = &yes
		}
	}
	if err != nil || slice == "-" {
		return request, err
	}
	size, level, _ := strings.Cut(slice, ":")
	slots, err := strconv.Atoi(size)
	if err != nil {
		return nil, err
	}
	number := int32(slots)
	request.PodSetSliceSize = &number
	request.PodSetSliceRequiredTopology, err = m.level(level)
	return request, err
}

// setProfile sets the feature gates, unless they are set already: they log every change.
func setProfile(profile string) error {
	if profile == lastProfile {
		return nil
	}
	lastProfile = profile
	mixed := features.SetEnable(features.TASProfileMixed, profile == "mixed")
	if err := features.SetEnable(features.TASProfileLeastFreeCapacity, profile == "least-free"); err != nil {
		return err
	}
	return mixed
}

func answer(ctx context.Context, machines map[int]*machine, line string) (string, error) {
	words := strings.Fields(line)
	if len(words) != 5 {
		return "", fmt.Errorf("five words are wanted: profile, level, slice, slots, tree")
	}
	var tree any
	if err := json.Unmarshal([]byte(words[4]), &tree); err != nil {
		return "", err
	}
	count, err := strconv.Atoi(words[3])
	if err != nil {
		return "", err
	}
	depth := depthOf(tree)
	m := machines[depth]
	if m == nil {
		if m, err = newMachine(ctx, depth); err != nil {
			return "", err
		}
		machines[depth] = m
	}
	if err := setProfile(words[0]); err != nil {
		return "", err
	}
	m.cluster.nodes = m.cluster.nodes[:0]
	m.grow(tree, map[string]string{}, map[int]int{}, 0)
	snapshot, err := m.cache.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	topologyRequest, err := m.request(words[1], words[2])
	if err != nil {
		return "", err
	}
	found := snapshot.ClusterQueue(queue).TASFlavors[flavor].FindTopologyAssignmentsForFlavor(cache.FlavorTASRequests{{
		PodSet:            &kueue.PodSet{Name: "main", Count: int32(count), TopologyRequest: topologyRequest},
		SinglePodRequests: resources.Requests{corev1.ResourceCPU: 1000},
		Count:             int32(count),
		Flavor:            flavor,
	}})["main"]
	if found.FailureReason != "" {
		return "-", nil
	}
	var given []string
	for _, domain := range found.TopologyAssignment.Domains {
		name := domain.Values[len(domain.Values)-1]
		index, err := strconv.Atoi(name[1:])
		if err != nil {
			return "", err
		}
		given = append(given, fmt.Sprintf("%d:%d", index, domain.Count))
	}
	return strings.Join(given, ","), nil
}

func run(in io.Reader, out io.Writer) error {
	ctx := logr.NewContext(context.Background(), logr.Discard())
	machines := map[int]*machine{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	written := bufio.NewWriter(out)
	for number := 1; lines.Scan(); number++ {
		given, err := answer(ctx, machines, lines.Text())
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		fmt.Fprintln(written, given)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return written.Flush()
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}
