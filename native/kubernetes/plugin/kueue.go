package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Marks of pods for which Kueue's own topology is active: workloadNote since Kueue 0.15, tasLabel before.
const (
	workloadNote = "kueue.x-k8s.io/workload"
	tasLabel     = "kueue.x-k8s.io/tas"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// isOfKueueJob reports whether a pod belongs to a Job written for Kueue's topology. Such a Job is a group without further
// annotations.
func isOfKueueJob(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/") && asksKueue(pod)
}

// isPlacedByKueue reports whether Kueue chooses the node of a pod.
func isPlacedByKueue(pod *v1.Pod) bool {
	_, isLabelled := pod.Labels[tasLabel]
	return isLabelled || pod.Annotations[workloadNote] != "" && asksKueue(pod)
}

func asksKueue(pod *v1.Pod) bool {
	for _, note := range []string{requiredNote, preferredNote, unconstrained, sliceNote} {
		if pod.Annotations[note] != "" {
			return true
		}
	}
	return false
}

// sizeOfJob returns the number of pods that the pod's Job runs at once.
func sizeOfJob(ctx context.Context, pod *v1.Pod, client dynamic.Interface) (int, error) {
	owner := metav1.GetControllerOf(pod)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	job, err := client.Resource(jobs).Namespace(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("%s is missing, and Job %s cannot be read: %w", sizeNote, owner.Name, err)
	}
	size, found, err := unstructured.NestedInt64(job.Object, "spec", "parallelism")
	if err != nil || !found {
		size = 1
	}
	if completions, found, err := unstructured.NestedInt64(job.Object, "spec", "completions"); err == nil && found {
		size = min(size, completions)
	}
	if size < 1 || size > largestGroup {
		return 0, fmt.Errorf("parallelism of Job %s is no number from 1 to %d", owner.Name, largestGroup)
	}
	return int(size), nil
}
