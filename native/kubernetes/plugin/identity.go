package plugin

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of controllers whose pods belong together although no single owner has them all.
const (
	jobSetUID   = "jobset.sigs.k8s.io/jobset-uid"
	lwsName     = "leaderworkerset.sigs.k8s.io/name"
	lwsIndex    = "leaderworkerset.sigs.k8s.io/group-index"
	lwsGroupKey = "leaderworkerset.sigs.k8s.io/group-key"
	lwsWorker   = "leaderworkerset.sigs.k8s.io/worker-index"
	lwsSizeNote = "leaderworkerset.sigs.k8s.io/size"
)

// longestName is how long a name in Kubernetes may be.
const longestName = 253

// groupKey is the identity of a group: NAMESPACE/NAME#KIND, or NAMESPACE/NAME#KIND.UID where an object owns the pods. Two groups of
// one name and different kinds are two groups. The rule is also in python/topolane/kubernetes/objects.py:
// tests/kubernetes/group_cases.json holds the two together.
type groupKey string

// String is what people call the group.
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

// isOdd says whether a word cannot be a name or a UID of Kubernetes. The API server does not check those of owners.
func isOdd(word string) bool {
	return len(word) > longestName || strings.ContainsFunc(word, func(letter rune) bool {
		isPlain := letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' || letter >= '0' && letter <= '9'
		return !isPlain && !strings.ContainsRune("-._:", letter)
	})
}

// groupOf is the group that a pod says it is in; empty for a pod that is in none.
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

// gangOf is the name of the PodGroup of Kubernetes that a pod refers to; empty if it refers to none.
func gangOf(pod *v1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return ""
}
