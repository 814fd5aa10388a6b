package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestSizes(t *testing.T) {
	for _, one := range []struct {
		text string
		sets []podset
		most int
	}{
		{"8", []podset{{"", 8}}, 8},
		{" 4 - 8 ", []podset{{"", 4}}, 8},
		{"launcher=1, worker=4-8", []podset{{"launcher", 1}, {"worker", 4}}, 9},
	} {
		sets, most, err := readSizes(one.text)
		if err != nil || most != one.most || !slices.Equal(sets, one.sets) {
			t.Errorf("%q: %v, %d, %v", one.text, sets, most, err)
		}
	}
	for _, text := range []string{
		"", "x", "0", "-1", "+1", "1,2", "a=1,a=1", "a=1-2,b=1", "8-4", "=1", "1000001", "99999999999999999999", "a=1000000,b=1",
	} {
		if sets, _, err := readSizes(text); err == nil {
			t.Errorf("%q is read as %v", text, sets)
		}
	}
}

// A size may be as long as a pod's annotations. Too long ones are refused unread, in a sentence that fits into an Event.
func TestLongSizesAreRefusedByLength(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("1", 250*1024), strings.Repeat("a=1,", 60*1024), "a=" + strings.Repeat(" ", 250*1024) + "1",
		strings.Repeat("x", longestWord+1) + "=1", podsets(mostPodsets + 1),
	} {
		work := testing.AllocsPerRun(1, func() {
			if _, _, err := readSizes(text); err == nil || len(err.Error()) > 300 {
				t.Errorf("%.20s... of %d bytes: %v", text, len(text), err)
			}
		})
		if work > 200 {
			t.Errorf("%d bytes cost %v allocations", len(text), work)
		}
	}
}

// The work for a size grows in proportion to its length, not to its square: twice the podsets cost at most about twice
// the allocations, and no part of the text is copied for each podset.
func TestSizesAreReadInLinearTime(t *testing.T) {
	work := func(count int) float64 {
		text := podsets(count)
		return testing.AllocsPerRun(10, func() {
			if _, _, err := readSizes(text); err != nil {
				t.Error(err)
			}
		})
	}
	if few, many := work(mostPodsets/8), work(mostPodsets); many > 12*few {
		t.Errorf("%v allocations for %d podsets, %v for %d", few, mostPodsets/8, many, mostPodsets)
	}
}

func podsets(count int) string {
	var parts []string
	for index := range count {
		parts = append(parts, fmt.Sprintf("p%d=1", index))
	}
	return strings.Join(parts, ",")
}

// A rank that a pod states is ignored unless it lies in the pod's podset, whatever numbers users write.
func TestRanksStayInTheirPodset(t *testing.T) {
	for _, numbers := range [][3]string{
		{"9223372036854775807", "2", "9223372036854775807"}, {"1", "2", "4611686018427387904"}, {"-1", "", ""}, {"4", "", ""},
		{"0", "2", "2"}, {strings.Repeat("1", 250*1024), "", ""}, {"3", "2", "1"},
	} {
		pod := podWith(map[string]string{
			completionNote: numbers[0], jobSetReplicas: numbers[1], jobSetJob: numbers[2],
		}, nil)
		if rank, says := rankOf(pod, 4); says {
			t.Errorf("%.20s: rank %d of 4", numbers, rank)
		}
	}
	pod := podWith(map[string]string{completionNote: "1", jobSetReplicas: "2", jobSetJob: "1"}, nil)
	if rank, says := rankOf(pod, 4); rank != 3 || !says {
		t.Errorf("job 1 of 2, pod 1: rank %d, %v", rank, says)
	}
}

// The master of a Kubeflow job has rank 0, and worker i the rank i+1, whichever pod comes first. An MPIJob has roles only.
func TestTheMasterOfAKubeflowJobHasRank0(t *testing.T) {
	notes := map[string]string{sizeNote: "4"}
	for lead, label := range map[string]string{"master": kubeflowType, "launcher": kubeflowRole} {
		worker := podWith(map[string]string{label: "worker", kubeflowIndex: "2"}, notes)
		leader := podWith(map[string]string{label: lead}, notes)
		sets, why := podsetsNow("default/g#PyTorchJob", asked{size: 4, most: 4}, []*v1.Pod{worker, worker, worker, leader})
		if !slices.Equal(sets, []podset{{lead, 1}, {"worker", 3}}) {
			t.Errorf("%v: %s", sets, why)
		}
		if rank, says := rankOf(worker, 3); rank != 2 || !says {
			t.Errorf("worker 2 has rank %d of the workers, %v", rank, says)
		}
	}
}

// If pods each name a podset of their own, the filters must not run once for each.
func TestPodsetsAreFew(t *testing.T) {
	var members []*v1.Pod
	for index := range mostPodsets + 1 {
		members = append(members, podWith(nil, map[string]string{sizeNote: "65", podsetNote: strconv.Itoa(index)}))
	}
	for _, pods := range [][]*v1.Pod{members, {podWith(nil, map[string]string{sizeNote: "1", podsetNote: strings.Repeat("x", 9999)})}} {
		sets, why := podsetsNow("default/g#PodGroup", asked{size: len(pods), most: len(pods)}, pods)
		if sets != nil || !strings.Contains(why, "a group has at most 64") || len(why) > 300 {
			t.Errorf("%d podsets: %s", len(sets), why)
		}
	}
}

// Sentences about users' texts fit into an Event and have no control characters.
func TestSentencesAreShort(t *testing.T) {
	for _, text := range []string{strings.Repeat("\u202e", 90_000), strings.Repeat("x", 250*1024), "\x1b[31m"} {
		said := shown(text)
		if len(said) > 300 || strings.ContainsAny(said, "\x1b\u202e") {
			t.Errorf("%.40q of %d bytes", said, len(said))
		}
	}
}
