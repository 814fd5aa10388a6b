package plugin

import (
	"encoding/json"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// shared reads cases that the tests of the Python readers use as well.
func shared[Case any](t *testing.T, name string) (cases []Case) {
	t.Helper()
	text, err := os.ReadFile("../../../tests/kubernetes/" + name)
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatalf("%s: %d cases, %v", name, len(cases), err)
	}
	return cases
}

// The pods of one group: the same rule as in the Python readers, case by case.
func TestGroupsOfPods(t *testing.T) {
	for _, one := range shared[struct {
		What     string `json:"what"`
		Pod      v1.Pod `json:"pod"`
		Group    string `json:"group"`
		Together bool   `json:"together"`
	}](t, "group_cases.json") {
		want := groupKey("")
		if one.Together {
			want = groupKey(one.Group)
		}
		if got := groupOf(&one.Pod); got != want {
			t.Errorf("%s: group %q, not %q", one.What, string(got), string(want))
		}
	}
}

// Ranks follow the worker index of a LeaderWorkerSet, even if leader and workers are separate podsets.
func TestRanksOfWorkers(t *testing.T) {
	for _, one := range []struct {
		worker, whole string
		size, rank    int
		says          bool
	}{
		{"0", "4", 4, 0, true}, {"3", "4", 4, 3, true}, {"0", "4", 1, 0, true}, {"1", "4", 3, 0, true}, {"3", "4", 3, 2, true},
		{"4", "4", 4, 0, false}, {"x", "4", 4, 0, false}, {"2", "", 4, 2, true}, {"1", "999999999", 4, 0, false},
	} {
		pod := podWith(map[string]string{lwsGroupKey: "abc", lwsWorker: one.worker, podIndexLabel: "3"}, map[string]string{lwsSizeNote: one.whole})
		rank, says := rankOf(pod, one.size)
		if says != one.says || says && rank != one.rank {
			t.Errorf("worker %s of %s in a podset of %d: rank %d, %v", one.worker, one.whole, one.size, rank, says)
		}
	}
}

func podWith(labels, notes map[string]string) *v1.Pod {
	pod := &v1.Pod{}
	pod.Namespace, pod.Labels, pod.Annotations = "default", labels, notes
	return pod
}
