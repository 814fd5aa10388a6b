package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"topolane/scheduler/engine"
)

// The annotations and labels of pods that the plugin reads. The reference explains each.
const (
	podGroupLabel  = "scheduling.x-k8s.io/pod-group"
	sizeNote       = "topolane.io/group-size"
	policyNote     = "topolane.io/policy"
	bandwidthNote  = "topolane.io/min-bandwidth-share"
	requiredNote   = "kueue.x-k8s.io/podset-required-topology"
	preferredNote  = "kueue.x-k8s.io/podset-preferred-topology"
	unconstrained  = "kueue.x-k8s.io/podset-unconstrained-topology"
	placementNote  = "topolane.io/placement"
	podsetNote     = "topolane.io/podset"
	jobSetLabel    = "jobset.sigs.k8s.io/jobset-name"
	jobSetPodset   = "jobset.sigs.k8s.io/replicatedjob-name"
	jobSetReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"
	jobSetJob      = "jobset.sigs.k8s.io/job-index"
	jobSetOrder    = "jobset.sigs.k8s.io/job-global-index"
	completionNote = "batch.kubernetes.io/job-completion-index"
	podIndexLabel  = "apps.kubernetes.io/pod-index"
	kubeflowType   = "training.kubeflow.org/replica-type"
	kubeflowRole   = "training.kubeflow.org/job-role"
	kubeflowIndex  = "training.kubeflow.org/replica-index"
	hostnameLabel  = "kubernetes.io/hostname"
	rankNote       = "topolane.io/rank"
	worldSizeNote  = "topolane.io/size"
	nodesNote      = "topolane.io/nodes"
	evictedNote    = "topolane.io/evicted-for"
	largestGroup   = 1_000_000
	// Linux does not start a program with a longer environment variable.
	longestVariable = 128*1024 - 64
)

var (
	podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	// gangVersions are the versions of Kubernetes' own PodGroups, behind the feature gate GenericWorkload: of 1.37, and of 1.36.
	// The fields that the plugin reads are the same.
	gangVersions = []string{"v1beta1", "v1alpha3", "v1alpha2"}
)

// errNoGang is the error for a PodGroup of Kubernetes whose pods are placed one by one.
var errNoGang = errors.New("the PodGroup has no gang policy")

// asked is the request of a group.
type asked struct {
	// size is the number of members that the group needs, and most the number that it may have; most is 0 if not known yet.
	size, most int
	// podsets are those that the annotation names, in rank order; empty if it gives a single number.
	podsets []podset
	policy  string
	// rule is what gave the group its policy.
	rule   string
	share  float64
	within string
	// required is the key of the level that a PodGroup of Kubernetes names.
	required string
	// segment is the number of members in each part that must lie together, and segmentLevel the level; segment is 0 if
	// there are no parts.
	segment      int
	segmentLevel string
}

// readAsked returns the request of a pod's group, or an error with a sentence that says why it cannot be read.
func readAsked(ctx context.Context, pod *v1.Pod, args *args, client dynamic.Interface) (asked, error) {
	want := asked{policy: args.Policy, rule: ofScheduler, share: 1}
	var err error
	if gangOf(pod) != "" {
		err = want.readGang(ctx, pod, client)
	} else {
		want.podsets, want.most, err = sizeOf(ctx, pod, client)
	}
	if err != nil {
		return want, err
	}
	for _, set := range want.podsets {
		want.size += set.Size
	}
	if want.podsets[0].Name == "" {
		want.podsets = nil
	}
	if policy := pod.Annotations[policyNote]; policy != "" {
		if len(policy) > longestWord {
			return want, fmt.Errorf("%s is %s, which is no policy", policyNote, shown(policy))
		}
		if !args.allows(policy) {
			return want, fmt.Errorf("%s is %s; this scheduler allows %s", policyNote, shown(policy), strings.Join(args.GroupsMay, ", "))
		}
		// Only existing policies may become labels of metrics.
		if _, err := engine.NewPolicy(policy, args.Seed); err != nil {
			return want, err
		}
		want.policy, want.rule = policy, "annotation "+policyNote
	}
	if text := pod.Annotations[bandwidthNote]; text != "" {
		var err error
		if len(text) <= longestWord {
			want.share, err = strconv.ParseFloat(text, 64)
		}
		if len(text) > longestWord || err != nil || !(want.share > 0 && want.share <= 1) {
			return want, fmt.Errorf("%s is over 0 and up to 1, not %s", bandwidthNote, shown(text))
		}
	}
	if err := want.readSegment(pod, args); err != nil {
		return want, err
	}
	want.within, err = withinOf(pod, args.TopologyLabels, want.required)
	return want, err
}

// reading is the request of a pod's group, read before the lock is taken because that may need calls of the API server.
type reading struct {
	asked asked
	err   error
}

// readAhead reads the request of a pod's group. It returns nil if the request is known or the pod is in no group.
func (p *plugin) readAhead(ctx context.Context, pod *v1.Pod) *reading {
	key := groupOf(pod)
	if key == "" {
		return nil
	}
	var now args
	isKnown := false
	p.guarded("readAhead", pod.Name, func() {
		g := p.groups[key]
		isKnown = g != nil && (g.placed == nil || g.asked.most > 0)
		now = *p.args
	})
	if isKnown {
		return nil
	}
	var ahead reading
	ahead.asked, ahead.err = readAsked(ctx, pod, &now, p.client)
	return &ahead
}

// read returns the request of a pod's group. It uses what was read ahead, or reads it now if the group was forgotten
// since.
func (p *plugin) read(ctx context.Context, pod *v1.Pod, ahead *reading) (asked, error) {
	if ahead != nil {
		return ahead.asked, ahead.err
	}
	return readAsked(ctx, pod, p.args, p.client)
}

// sizeOf returns the podsets of a group, and the most members that it may have.
func sizeOf(ctx context.Context, pod *v1.Pod, client dynamic.Interface) ([]podset, int, error) {
	if text := pod.Annotations[sizeNote]; text != "" {
		return readSizes(text)
	}
	name := pod.Labels[podGroupLabel]
	if name == "" {
		size, err := sizeOfJob(ctx, pod, client)
		return []podset{{Size: size}}, size, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	group, err := client.Resource(podGroups).Namespace(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, fmt.Errorf("neither %s nor a PodGroup %s says how large the group is: %w", sizeNote, name, err)
	}
	size, found, err := unstructured.NestedInt64(group.Object, "spec", "minMember")
	if err != nil || !found || size < 1 || size > largestGroup {
		return nil, 0, fmt.Errorf("minMember of PodGroup %s is no number from 1 to %d", name, largestGroup)
	}
	return []podset{{Size: int(size)}}, largestGroup, nil
}

// readGang reads the PodGroup of Kubernetes that a pod refers to.
func (a *asked) readGang(ctx context.Context, pod *v1.Pod, client dynamic.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var group *unstructured.Unstructured
	var err error
	for _, version := range gangVersions {
		kind := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: version, Resource: "podgroups"}
		group, err = client.Resource(kind).Namespace(pod.Namespace).Get(ctx, gangOf(pod), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("PodGroup %s cannot be read: %w", gangOf(pod), err)
	}
	_, isGang, err := unstructured.NestedMap(group.Object, "spec", "schedulingPolicy", "gang")
	if err != nil {
		return fmt.Errorf("PodGroup %s cannot be read: %w", gangOf(pod), err)
	}
	if !isGang {
		return errNoGang
	}
	constraints, _, _ := unstructured.NestedSlice(group.Object, "spec", "schedulingConstraints", "topology")
	if len(constraints) > 0 {
		if first, is := constraints[0].(map[string]any); is {
			a.required, _, _ = unstructured.NestedString(first, "key")
		}
	}
	if text := pod.Annotations[sizeNote]; text != "" {
		a.podsets, a.most, err = readSizes(text)
		return err
	}
	least, _, err := unstructured.NestedInt64(group.Object, "spec", "schedulingPolicy", "gang", "minCount")
	if err != nil || least < 1 || least > largestGroup {
		return fmt.Errorf("minCount of PodGroup %s is no number from 1 to %d", gangOf(pod), largestGroup)
	}
	a.podsets, a.most = []podset{{Size: int(least)}}, largestGroup
	return nil
}

// withinOf converts Kueue's annotations to the engine's words, in which levels are counted from the nodes up. gang is the
// key of a level that the PodGroup requires.
func withinOf(pod *v1.Pod, keys []string, gang string) (string, error) {
	levels := switches(keys)
	for _, row := range []struct{ note, key, word string }{
		{requiredNote, pod.Annotations[requiredNote], "required"},
		{"the topology of its PodGroup", gang, "required"},
		{preferredNote, pod.Annotations[preferredNote], "preferred"},
	} {
		key := row.key
		if key == "" {
			continue
		}
		if key == hostnameLabel {
			return row.word + ":0", nil
		}
		place := slices.Index(levels, key)
		if place < 0 {
			return "", fmt.Errorf("%s is %s; topologyLabels of this scheduler are %s", row.note, shown(key), strings.Join(keys, ", "))
		}
		return fmt.Sprintf("%s:%d", row.word, len(levels)-place), nil
	}
	if pod.Annotations[unconstrained] == "true" {
		return "unconstrained", nil
	}
	return "", nil
}

// switches returns the topology labels of the levels above nodes.
func switches(keys []string) []string {
	if last := len(keys) - 1; last >= 0 && keys[last] == hostnameLabel {
		return keys[:last]
	}
	return keys
}
