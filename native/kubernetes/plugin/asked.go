package plugin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// What pods say. The reference explains each.
const (
	podGroupLabel  = "scheduling.x-k8s.io/pod-group"
	sizeNote       = "topolane.io/group-size"
	policyNote     = "topolane.io/policy"
	bandwidthNote  = "topolane.io/min-bandwidth-share"
	requiredNote   = "kueue.x-k8s.io/podset-required-topology"
	preferredNote  = "kueue.x-k8s.io/podset-preferred-topology"
	unconstrained  = "kueue.x-k8s.io/podset-unconstrained-topology"
	placementNote  = "topolane.io/placement"
	completionNote = "batch.kubernetes.io/job-completion-index"
	podIndexLabel  = "apps.kubernetes.io/pod-index"
	hostnameLabel  = "kubernetes.io/hostname"
	largestGroup   = 1_000_000
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// asked is what a group asks for.
type asked struct {
	size   int
	policy string
	share  float64
	within string
	// segment is how many members each part has that must lie together, and the level to lie in; 0: there are no parts.
	segment      int
	segmentLevel string
}

// groupOf is namespace and name of the group of a pod; empty for a pod that is in none.
func groupOf(pod *v1.Pod) string {
	if isPlacedByKueue(pod) {
		return ""
	}
	if name := pod.Labels[podGroupLabel]; name != "" {
		return pod.Namespace + "/" + name
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && (pod.Annotations[sizeNote] != "" || isOfKueueJob(pod)) {
		return pod.Namespace + "/" + owner.Name
	}
	return ""
}

// rankOf is the rank that a pod says it has; false if it says none.
func rankOf(pod *v1.Pod) (int, bool) {
	for _, text := range []string{
		pod.Annotations[completionNote], pod.Labels[completionNote], pod.Labels[podIndexLabel],
	} {
		if rank, err := strconv.Atoi(text); err == nil && rank >= 0 {
			return rank, true
		}
	}
	return 0, false
}

// readAsked is what the group of a pod asks for, or a sentence that says why it cannot be read.
func readAsked(ctx context.Context, pod *v1.Pod, args *args, client dynamic.Interface) (asked, error) {
	want := asked{policy: args.Policy, share: 1}
	size, err := sizeOf(ctx, pod, client)
	if err != nil {
		return want, err
	}
	want.size = size
	if policy := pod.Annotations[policyNote]; policy != "" {
		if !args.allows(policy) {
			return want, fmt.Errorf("%s is %q; this scheduler allows %s", policyNote, policy, strings.Join(args.GroupsMay, ", "))
		}
		want.policy = policy
	}
	if text := pod.Annotations[bandwidthNote]; text != "" {
		want.share, err = strconv.ParseFloat(text, 64)
		if err != nil || !(want.share > 0 && want.share <= 1) {
			return want, fmt.Errorf("%s is over 0 and up to 1, not %q", bandwidthNote, text)
		}
	}
	if err := want.readSegment(pod, args); err != nil {
		return want, err
	}
	want.within, err = withinOf(pod, args.TopologyLabels)
	return want, err
}

func sizeOf(ctx context.Context, pod *v1.Pod, client dynamic.Interface) (int, error) {
	if text := pod.Annotations[sizeNote]; text != "" {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > largestGroup {
			return 0, fmt.Errorf("%s is a number from 1 to %d, not %q", sizeNote, largestGroup, text)
		}
		return size, nil
	}
	name := pod.Labels[podGroupLabel]
	if name == "" {
		return sizeOfJob(ctx, pod, client)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	group, err := client.Resource(podGroups).Namespace(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("neither %s nor a PodGroup %s says how large the group is: %w", sizeNote, name, err)
	}
	size, found, err := unstructured.NestedInt64(group.Object, "spec", "minMember")
	if err != nil || !found || size < 1 || size > largestGroup {
		return 0, fmt.Errorf("minMember of PodGroup %s is no number from 1 to %d", name, largestGroup)
	}
	return int(size), nil
}

// withinOf turns Kueue's annotations into the engine's words: levels are counted from the nodes up.
func withinOf(pod *v1.Pod, keys []string) (string, error) {
	levels := switches(keys)
	for _, row := range []struct{ note, word string }{{requiredNote, "required"}, {preferredNote, "preferred"}} {
		key := pod.Annotations[row.note]
		if key == "" {
			continue
		}
		if key == hostnameLabel {
			return row.word + ":0", nil
		}
		place := slices.Index(levels, key)
		if place < 0 {
			return "", fmt.Errorf("%s is %q; topologyLabels of this scheduler are %s", row.note, key, strings.Join(keys, ", "))
		}
		return fmt.Sprintf("%s:%d", row.word, len(levels)-place), nil
	}
	if pod.Annotations[unconstrained] == "true" {
		return "unconstrained", nil
	}
	return "", nil
}

// switches is the levels of topology labels that are above nodes.
func switches(keys []string) []string {
	if last := len(keys) - 1; last >= 0 && keys[last] == hostnameLabel {
		return keys[:last]
	}
	return keys
}
