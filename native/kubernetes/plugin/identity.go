package plugin

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of controllers whose pods form a group although they have no common owner.
const (
	jobSetUID   = "jobset.sigs.k8s.io/jobset-uid"
	lwsName     = "leaderworkerset.sigs.k8s.io/name"
	lwsIndex    = "leaderworkerset.sigs.k8s.io/group-index"
	lwsGroupKey = "leaderworkerset.sigs.k8s.io/group-key"
	lwsWorker   = "leaderworkerset.sigs.k8s.io/worker-index"
	lwsSizeNote = "leaderworkerset.sigs.k8s.io/size"
)

// longestName is the most characters of a name in Kubernetes.
const longestName = 253

// groupKey is the identity of a group: NAMESPACE/NAME#KIND, or NAMESPACE/NAME#KIND.UID if an object owns the pods. Groups
// of one name and different kinds are different groups. python/topolane/kubernetes/objects.py has the same rule:
// tests/kubernetes/group_cases.json tests both.
type groupKey string

// String returns the group's name for people.
func (k groupKey) String() string {
	name, _, _ := strings.Cut(string(k), "#")
	return name
}

func keyFor(pod *v1.Pod, name, kind, id string) groupKey {
	if !slices.ContainsFunc([]string{name, kind, id}, isOdd) {
		if id != "" {
			kind += "." + id
		}
		return groupKey(pod.Namespace + "/" + name + "#" + kind)
	}
	return ""
}

// isOdd reports whether a word cannot be a name or a UID of Kubernetes. The API server does not check those of owners.
func isOdd(word string) bool {
	return len(word) > longestName || strings.ContainsFunc(word, func(letter rune) bool {
		isPlain := letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' || letter >= '0' && letter <= '9'
		return !isPlain && !strings.ContainsRune("-._:", letter)
	})
}

// groupOf returns the group that a pod's own labels name; empty for a pod in no group.
func groupOf(pod *v1.Pod) groupKey {
	if isPlacedByKueue(pod) {
		return ""
	}
	if name := gangOf(pod); name != "" {
		return keyFor(pod, name, "SchedulingGroup", "")
	}
	if name := pod.Labels[podGroupLabel]; name != "" {
		return keyFor(pod, name, "PodGroup", "")
	}
	isSized := pod.Annotations[sizeNote] != ""
	if name := pod.Labels[jobSetLabel]; name != "" && isSized {
		return keyFor(pod, name, "JobSet", pod.Labels[jobSetUID])
	}
	if id := pod.Labels[lwsGroupKey]; id != "" && isSized {
		return keyFor(pod, pod.Labels[lwsName]+"-"+pod.Labels[lwsIndex], "LeaderWorkerSet", id)
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && (isSized || isOfKueueJob(pod)) {
		return keyFor(pod, owner.Name, owner.Kind, string(owner.UID))
	}
	return ""
}

// gangOf returns the name of the PodGroup of Kubernetes that a pod refers to; empty if there is none.
func gangOf(pod *v1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return ""
}
